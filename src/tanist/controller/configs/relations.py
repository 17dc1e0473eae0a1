"""Rules between a broker's properties when some of them change at run time.

Owns Kafka's rules that depend on the broker's other values, its properties file included, so that only the broker
itself can judge. `validation` judges single values. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from .definitions import split_list
from .settings import Levels, resolve_broker_config

_POOLS = frozenset(
    (
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    )
)
"""Numbers of threads that may at most double, and at most be halved, at once."""
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENDPOINT = re.compile(r"([^:]*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_CLEANER_THREADS, _CLEANER_BUFFER = "log.cleaner.threads", "log.cleaner.dedupe.buffer.size"
_MEBIBYTE = 1 << 20
_HOUR_MS, _MINUTE_MS = 3_600_000, 60_000


def complaint(changed: Collection[str], before: Levels, after: Levels) -> str | None:
    """The first rule that the changed names break, in Kafka's words, or None. All values have been judged alone."""
    for rule in (_intervals, _times, _addresses, _connections, _directories):
        found = rule(changed, after)
        if found is not None:
            return found
    found = (
        _cleaner(changed, before, after)
        or _threads(changed, before, after)
        or _limits(changed, after)
        or _local_retention(changed, after)
    )
    return None if found is None else refusal_of(found)


def refusal_of(what: str) -> str:
    """Kafka's wording of refusals by parts of a broker."""
    if what.startswith("requirement failed") or what == "/ by zero":
        return what
    refused = f"Invalid value org.apache.kafka.common.config.ConfigException: {what}"
    return f"{refused} for configuration Invalid dynamic configuration"


def _number(name: str, levels: Levels) -> int:
    return int(resolve_broker_config(name, levels).value or 0)


def _intervals(changed: Collection[str], after: Levels) -> str | None:
    for kind in ("consumer", "share", "streams"):
        name = f"group.{kind}.assignment.interval.ms"
        if name in changed:
            for bound, word, wrong in (("max", "less", 1), ("min", "greater", -1)):
                limit = f"group.{kind}.{bound}.assignment.interval.ms"
                if (_number(name, after) - _number(limit, after)) * wrong > 0:
                    return f"{name} must be {word} than or equal to {limit}"
    return None


def _times(changed: Collection[str], after: Levels) -> str | None:
    if "log.roll.ms" in changed and _is_below("log.roll.ms", 1, after):
        return "requirement failed: log.roll.ms must be greater than or equal to 1"
    if "log.roll.jitter.ms" in changed and _is_below("log.roll.jitter.ms", 0, after):
        return "requirement failed: log.roll.jitter.ms must be greater than or equal to 0"
    retention = resolve_broker_config("log.retention.ms", after).value if "log.retention.ms" in changed else None
    if retention is not None and int(retention) == 0:
        # Everything negative is unlimited.
        return "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    return None


def _is_below(name: str, least: int, levels: Levels) -> bool:
    value = resolve_broker_config(name, levels).value
    return value is not None and int(value) < least


def _addresses(changed: Collection[str], after: Levels) -> str | None:
    names, protocols = "listeners", "listener.security.protocol.map"
    if names not in changed and protocols not in changed:
        return None
    known: dict[str, str] = {}
    for each in split_list(resolve_broker_config(protocols, after).value or ""):
        listener, separator, protocol = each.rpartition(":")
        if not separator:
            return f"Error parsing configuration property '{protocols}': begin 0, end -1, length {len(each)}"
        if protocol.upper() not in _PROTOCOLS:
            return f"Invalid security protocol `{protocol}` defined in {protocols}"
        known[listener.upper()] = protocol
    listeners = tuple(dict.fromkeys(split_list(resolve_broker_config(names, after).value or "")))
    refused = f"Error creating broker listeners from '[{', '.join(listeners)}]'"
    bound = []
    for each in listeners:
        parsed = _ENDPOINT.fullmatch(each)
        if parsed is None:
            return f"{refused}: Unable to parse {each} to a broker endpoint"
        bound.append(parsed[1].upper())
        if bound[-1] not in known:
            return f"{refused}: No security protocol defined for listener {bound[-1]}"
    controllers = {each.upper() for each in split_list(after.static.get("controller.listener.names", ""))}
    if "controller" in split_list(after.static.get("process.roles", "")) and not controllers <= set(bound):
        return (
            f"requirement failed: controller.listener.names must only contain values appearing in the '{names}' "
            "configuration when running the KRaft controller role"
        )
    return None


def _limits(changed: Collection[str], after: Levels) -> str | None:
    """Kafka lets a file say 0, and does not let it be set."""
    for name in ("max.connections", "max.connection.creation.rate"):
        if name in changed and _number(name, after) == 0:
            return f"Invalid {name} 0"
    return None


def _connections(changed: Collection[str], after: Levels) -> str | None:
    overrides = "max.connections.per.ip.overrides"
    if overrides in changed:
        for each in split_list(resolve_broker_config(overrides, after).value or ""):
            if ":" not in each:
                return f"Error parsing configuration property '{overrides}': begin 0, end -1, length {len(each)}"
    name = "max.connections.per.ip"
    if name in changed and _number(name, after) == 0 and not resolve_broker_config(overrides, after).value:
        return f"requirement failed: {name} can be set to zero only if {name}.overrides property is set."
    return None


def _directories(changed: Collection[str], after: Levels) -> str | None:
    name = "cordoned.log.dirs"
    if name not in changed:
        return None
    known = split_list(after.static.get("log.dirs") or resolve_broker_config("log.dir", after).value or "")
    cordoned = dict.fromkeys(split_list(resolve_broker_config(name, after).value or ""))
    missing = [each for each in cordoned if each not in known and each != "*"]
    if missing:
        return (
            f"requirement failed: All entries in {name} must be present in log.dirs or log.dir. "
            f"Missing entries : {', '.join(missing)}"
        )
    return None


def _threads(changed: Collection[str], before: Levels, after: Levels) -> str | None:
    for name in changed:
        if name in _POOLS:
            had, has = _number(name, before), _number(name, after)
            refused = f"Dynamic thread count update validation failed for {name}={has}"
            if has < had // 2:
                return f"{refused}, value should be at least half the current value {had}"
            if has > had * 2:
                return f"{refused}, value should not be greater than double the current value {had}"
    return None


def _cleaner(changed: Collection[str], before: Levels, after: Levels) -> str | None:
    if _CLEANER_THREADS not in changed and _CLEANER_BUFFER not in changed:
        return None
    had, has = _number(_CLEANER_THREADS, before), _number(_CLEANER_THREADS, after)
    if has == 0:
        return "/ by zero"
    if _number(_CLEANER_BUFFER, after) // has <= _MEBIBYTE:
        return f"requirement failed: {_CLEANER_BUFFER} must be at least 1MB per cleaner thread."
    if has < had // 2:
        return f"Log cleaner threads cannot be reduced to less than half the current value {had}"
    if has > had * 2:
        return f"Log cleaner threads cannot be increased to more than double the current value {had}"
    return None


def _local_retention(changed: Collection[str], after: Levels) -> str | None:
    """Kafka's words name the value that is fixed by the other one."""
    for local, total in (("log.local.retention.ms", _retention_ms(after)), ("log.local.retention.bytes", None)):
        whole = "log.retention.ms" if local.endswith("ms") else "log.retention.bytes"
        if local not in changed and whole not in changed:
            continue
        limit = _number(whole, after) if total is None else total
        value = _number(local, after)
        if value == -2 or limit == -1:
            continue
        shown = f"Invalid value {value} for configuration {local}: Value must not be"
        if value == -1:
            return f"{shown} -1 as {whole} value is set as {limit}."
        if value > limit:
            return f"{shown} more than {whole} property value: {limit}"
    return None


def _retention_ms(levels: Levels) -> int:
    """`log.retention.ms`, or the file's value in a coarser unit; negative is unlimited."""
    for name, factor in (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ):
        value = resolve_broker_config(name, levels).value
        if value is not None:
            return int(value) * factor if int(value) >= 0 else -1
    return -1
