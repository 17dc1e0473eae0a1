"""The metrics that clients have pushed, as a scrape shows them.

Owns the last numbers of each client. Clients push what has come since their last push, and a scrape shows sums, so
counters are summed up here. A client is forgotten when it has not pushed for three intervals, and one minute at least:
so long its last push can be seen after its end. What all together may hold is bounded; the client that has been silent
for longest goes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from uuid import UUID

from tanist.text import label_text
from tanist.wire.otlp import Number

_NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
_KEY_LENGTH_MAX = 1024
_WORD_LENGTH_MAX = 200
_OURS = "tanist_"
_INFO = "tanist_client_info"
_LEAST_KEPT_MS = 60_000

_Key = tuple[str, str]
"""A metric's name, and its labels as they are written."""


@dataclass(slots=True)
class _Pushed:
    """One client's."""

    labels: dict[str, str]
    info: str
    forget_ms: int
    gauges: dict[_Key, float] = field(default_factory=dict)
    counters: dict[_Key, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return 1 + len(self.gauges) + len(self.counters)


class ReceivedMetrics:
    """All clients', the one that has pushed last at the end."""

    MAX_OF_CLIENT = 10_000
    MAX = 100_000

    def __init__(self) -> None:
        self._clients: dict[UUID, _Pushed] = {}
        self.count = 0

    def take(
        self, instance_id: UUID, attributes: Mapping[str, str], numbers: Iterable[Number], interval_ms: int, now_ms: int
    ) -> None:
        """A push. `attributes`: who it is. An exception of `numbers` leaves everything as it was."""
        given = list(numbers)
        forget_ms = now_ms + max(_LEAST_KEPT_MS, 3 * interval_ms)
        before = self._clients.pop(instance_id, None)
        self.count -= 0 if before is None else len(before)
        words = {name: value[:_WORD_LENGTH_MAX] for name, value in attributes.items()}
        named = {name: words.get(name, "") for name in ("client_id", "client_instance_id")}
        pushed = _Pushed(named, _labels(words), forget_ms, counters={} if before is None else before.counters)
        for number in given:
            self._add(pushed, before, number)
        self._clients[instance_id] = pushed
        self.count += len(pushed)
        while self.count > self.MAX and len(self._clients) > 1:
            self._drop(next(iter(self._clients)))

    def render(self, now_ms: int) -> str:
        """Prometheus' text format."""
        for instance_id in [each for each, pushed in self._clients.items() if pushed.forget_ms <= now_ms]:
            self._drop(instance_id)
        lines: dict[str, list[str]] = {}
        kinds: dict[str, str] = {}
        for pushed in self._clients.values():
            lines.setdefault(_INFO, []).append(f"{_INFO}{{{pushed.info}}} 1\n")
            for kind, samples in (("counter", pushed.counters), ("gauge", pushed.gauges)):
                for (name, labels), value in samples.items():
                    if kinds.setdefault(name, kind) == kind:  # else two clients do not mean the same by it
                        lines.setdefault(name, []).append(f"{name}{{{labels}}} {value}\n")
        parts = []
        for name in sorted(lines):
            parts.append(f"# HELP {name} Pushed by clients.\n# TYPE {name} {kinds.get(name, 'gauge')}\n")
            parts += lines[name]
        return "".join(parts)

    def _add(self, pushed: _Pushed, before: _Pushed | None, number: Number) -> None:
        key = _name(number.metric), _labels({**number.attributes, **pushed.labels})
        samples = pushed.counters if number.is_counter else pushed.gauges
        if key not in samples and (len(pushed) >= self.MAX_OF_CLIENT or sum(map(len, key)) > _KEY_LENGTH_MAX):
            return
        value = number.value
        if number.is_delta:
            sums = pushed.counters if number.is_counter else before.gauges if before is not None else {}
            value += sums.get(key, 0)
        if isfinite(value) and value >= (0 if number.is_counter else value) and not key[0].startswith(_OURS):
            samples[key] = value

    def _drop(self, instance_id: UUID) -> None:
        self.count -= len(self._clients.pop(instance_id))


def _name(text: str) -> str:
    """What Prometheus takes for a name: `org.apache.kafka.producer.record.send.total` with underscores."""
    name = _NO_NAME.sub("_", text).lstrip("_")
    return f"_{name}" if not name or name[0].isdecimal() else name


def _labels(attributes: Mapping[str, str]) -> str:
    pairs = {_name(name): value for name, value in attributes.items()}
    return ",".join(f'{name}="{label_text(value)}"' for name, value in sorted(pairs.items()))
