"""The report of a failed test: what happened to the partitions of its topics, the faults, and where the data is.

It looks at a cluster that may be broken in any way, so each part is given up by itself when it cannot be had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from shlex import quote

from tanist.runtime.client.client import KafkaError, Unreachable
from tanist.testing.errors import ClusterError, NotAvailable
from tanist.testing.namespace import Kafka
from tanist.testing.observations import SalvageEntry
from tanist.text import counted

Section = tuple[str, str]

_EVENTS_MAX = 60
_RECORDS_MAX = 50
_SHOWN_CHARS_MAX = 80


def sections(kafka: Kafka) -> tuple[list[Section], Path | None]:
    """What a report says about the cluster, and the data folder that is kept for it."""
    topics = _topics(kafka)
    parts = [
        ("tanist: no quorum", _given(lambda: _without_quorum(kafka))),
        ("tanist: what happened", _given(lambda: _events(kafka, topics))),
        ("tanist: partitions now", _given(lambda: [_state(kafka, topic) for topic in topics])),
        ("tanist: records that replicas dropped", _given(lambda: _dropped(kafka.salvage(), topics))),
        ("tanist: faults in force", _given(kafka.faults)),
    ]
    refused = sorted(kafka.backend.refused)
    if refused:
        parts.append(
            ("tanist: not available", [f"{kafka.bootstrap} is not a cluster of tanist.testing: {', '.join(refused)}"])
        )
    folder = _kept(kafka)
    if folder is not None:
        parts.append(
            (
                "tanist: data folder",
                [f"{folder} (kept: `tanist up --data {quote(str(folder))}` starts the cluster again)"],
            )
        )
    return [(title, "\n".join(lines)) for title, lines in parts if lines], folder


def _given(lines: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return list(lines())
    except NotAvailable:
        return []
    except (ClusterError, KafkaError, Unreachable, OSError, TimeoutError) as error:
        return [f"not known: {error}"]


def _without_quorum(kafka: Kafka) -> list[str]:
    """First, for nothing that needs a controller can have worked since."""
    local = kafka.backend.local
    return [] if local is None else local.status().without_quorum


def _topics(kafka: Kafka) -> list[str]:
    try:
        return kafka.own_topics
    except (ClusterError, OSError):
        return kafka.named_topics  # no broker answers


def _events(kafka: Kafka, topics: list[str]) -> list[str]:
    """From the first thing that concerns the test."""
    found = kafka.happened(*topics)
    own = [event.wall_ms for event in found if event.subject.rpartition("-")[0] in topics]
    first = min([*own, *(event.wall_ms for event in kafka.did)], default=0)
    shown = [event for event in found if event.wall_ms >= first]
    width = max((len(event.subject) for event in shown), default=0)
    lines = [event.line(width) for event in shown]
    if len(lines) > _EVENTS_MAX:
        half = _EVENTS_MAX // 2
        lines = [*lines[:half], f"... {len(lines) - 2 * half} more ...", *lines[-half:]]
    return lines


def _state(kafka: Kafka, topic: str) -> str:
    return "\n".join(str(state) for state in kafka.partition_states(topic))


def _dropped(entries: list[SalvageEntry], topics: list[str]) -> list[str]:
    lines = []
    for entry in entries:
        if entry.topic not in topics:
            continue
        lines.append(
            f"{entry.topic}-{entry.partition}: broker {entry.broker} dropped {counted(len(entry.records), 'record')} "
            f"({entry.why})"
        )
        for record in entry.records[:_RECORDS_MAX]:
            lines.append(f"    offset {record.offset}, epoch {record.leader_epoch}: {_shown(record.key, record.value)}")
        if len(entry.records) > _RECORDS_MAX:
            lines.append(f"    ... {len(entry.records) - _RECORDS_MAX} more: `tanist salvage show {entry.entry_id}`")
    return lines


def _shown(key: bytes | None, value: bytes | None) -> str:
    text = repr(value) if key is None else f"{key!r}: {value!r}"
    return text if len(text) <= _SHOWN_CHARS_MAX else text[: _SHOWN_CHARS_MAX - 1] + "…"


def _kept(kafka: Kafka) -> Path | None:
    try:
        return kafka.cluster.keep()
    except (ClusterError, OSError):
        return None
