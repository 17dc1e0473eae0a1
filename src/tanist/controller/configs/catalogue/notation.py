"""The notation of the catalogue's tables, and its parser.

A table is text: for each property a line of words, and below it, indented, its documentation.

    retention.ms long 604800000 medium >=-1 from:log.retention.ms,log.retention.minutes*60000
        Age beyond which segments are dropped; -1 is no limit.

The words are name, type, default (`-` for none, `""` for the empty text), on brokers how it may be changed
(`read-only`, `per-broker`, `cluster-wide`), importance, and then, in any order: a check, `from:` with the broker
properties it falls back to (each with the factor of its unit), `internal` (not described, but on brokers if it can be
set dynamically, and is), `dynamic-only` (not read from a broker's file) and `no-effect` (a valid property of Kafka's
that has no effect here).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..definitions import (
    AtLeast,
    Between,
    BetweenOr,
    Check,
    ConfigKey,
    ConfigType,
    EachOf,
    Importance,
    NonEmpty,
    NotInternal,
    OffsetReset,
    OneOf,
    OneOfAnyCase,
    PlainList,
    Synonym,
    ThrottledReplicas,
    Update,
)

NO_EFFECT_DOC = "A property of Apache Kafka's. It is kept and described, and has no effect in tanist"

_FLAGS = frozenset(("internal", "dynamic-only", "no-effect"))
_AT_LEAST = re.compile(r">=(-?\d+)")
_BETWEEN = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)")
_BETWEEN_OR = re.compile(r"(-?\d+)\.\.(-?\d+)\|(-?\d+)")
_NAMED: dict[str, Callable[[str], Check]] = {
    "list": PlainList,
    "non-empty": lambda name: NonEmpty(),
    "not-internal": NotInternal,
    "offset-reset": OffsetReset,
    "throttled-replicas": ThrottledReplicas,
}


def read(table: str, *, on_brokers: bool = False, because: str | None = None) -> dict[str, ConfigKey]:
    """The settings of a table. `because`: none of them has an effect, and why."""
    settings: dict[str, ConfigKey] = {}
    for line, doc in _entries(table):
        words = line.split()
        name, kind, default = words[:3]
        update = Update(words[3]) if on_brokers else Update.CLUSTER_WIDE
        rest = words[4:] if on_brokers else words[3:]
        flags = {word for word in rest[1:] if word in _FLAGS}
        fallbacks = [word.removeprefix("from:") for word in rest[1:] if word.startswith("from:")]
        checks = [word for word in rest[1:] if word not in flags and not word.startswith("from:")]
        has_effect = because is None and "no-effect" not in flags
        if name in settings or len(checks) > 1 or len(fallbacks) > 1:
            raise ValueError(f"catalogue: {line}")
        if not has_effect:
            doc = f"{doc} {NO_EFFECT_DOC}{f' ({because})' if because else ''}.".strip()
        settings[name] = ConfigKey(
            name,
            ConfigType[kind.upper()],
            None if default == "-" else "" if default == '""' else default,
            doc,
            _check(name, checks[0]) if checks else None,
            update,
            tuple(_synonym(word) for word in fallbacks[0].split(",")) if fallbacks else (),
            "internal" in flags,
            Importance(rest[0]),
            has_effect,
            "dynamic-only" in flags,
        )
    return settings


def _entries(table: str) -> Iterator[tuple[str, str]]:
    """Each line of words, with the indented lines below it."""
    line, doc = "", []
    for raw in table.splitlines():
        if raw.startswith(" "):
            doc.append(raw.strip())
        elif raw.strip():
            if line:
                yield line, " ".join(doc)
            line, doc = raw, []
    if line:
        yield line, " ".join(doc)


def _synonym(word: str) -> Synonym:
    name, _, factor = word.partition("*")
    return Synonym(name, int(factor or 1))


def _check(name: str, word: str) -> Check:
    if (found := _AT_LEAST.fullmatch(word)) is not None:
        return AtLeast(int(found[1]))
    if (found := _BETWEEN_OR.fullmatch(word)) is not None:
        return BetweenOr(int(found[1]), int(found[2]), int(found[3]))
    if (found := _BETWEEN.fullmatch(word)) is not None:
        return Between(float(found[1]), float(found[2]))
    if word in _NAMED:
        return _NAMED[word](name)
    kind, _, words = word.partition(":")
    if kind == "one":
        return OneOf(tuple(words.split(",")))
    if kind == "any-case":
        return OneOfAnyCase(tuple(words.split(",")))
    if kind == "each":
        return EachOf(name, tuple(words.split(",")))
    raise ValueError(f"catalogue: {name} has a check {word!r} that is not known")
