"""The rules of an audit that both engines run, written once, in SQL that both understand.

Owns which values are looked at one by one, and what is found in all that is known of one. The functions are Spark's;
DuckDB has macros of these names (`by_duckdb.connection`). What is known of a value is a row with

* `sent`, `acknowledged` (with acks=all), `failed`, `unknown`, `aborted`, `unordered`: of its sends;
* `polled`, `polled_committed`, `seen` (the offsets), `readers`: of those who were given it;
* `held`, `places`, and of records that a marker has aborted `held_aborted`, `aborted_places`: of the leader's log;
* `acked_offset`, and of the partition `start` and `high_watermark`, null if no replica is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tanist.lab.anomalies import Anomaly

FLAT_SHARE: Final = 0.25
"""If more buckets of the replicas' logs than this differ, all is read at once instead of twice."""
STRETCHES_MAX: Final = 100_000
PLACES_MAX: Final = 20_000
COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
OPEN: Final = "open"
OPEN_MAX: Final = 1000
"""So many open transactions are named."""
MOMENTS: Final = 200
"""The number of steps in which a partition's progress is shown."""
OFFSETS_SHOWN: Final = 20
"""Of one value: enough to understand the finding; a value may have been polled a million times."""

SUSPECT: Final = (
    "held > 1 or failed > 0 or sent > 1 or unplaced > 0 or (held = 0 and (acknowledged > 0 or polled > 0))"
    " or (polled > 0 and sent = 0) or (held > 0 and least <> most)"
)
"""Of a value: not simply one send, acknowledged where the log has it. `unplaced`: acknowledged without an offset;
`least`, `most`: of all offsets at which somebody has it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """SQL over what is known of a value: when there is a finding, and its columns."""

    kind: Anomaly
    when: str
    first: str
    last: str
    detail: str


def _listed(name: str) -> str:
    return f"array_join(slice({name}, 1, {OFFSETS_SHOWN}), ', ')"


def _ends(name: str) -> tuple[str, str]:
    return f"get({name}, 0)", f"get({name}, size({name}) - 1)"


_ABSENT: Final = "acknowledged > 0 and held = 0 and (acked_offset is null or start is null or acked_offset >= start)"
_GONE: Final = "array_except(array_except(seen, places), aborted_places)"
_READ_ABORTED: Final = "polled_committed > 0 and held = 0 and size(array_intersect(seen, aborted_places)) > 0"
_LOST: Final = (
    "case when start is null then 'no replica of the partition is here'"
    " when acked_offset is null then 'the client got no offset'"
    " when acked_offset < high_watermark then 'below the high watermark'"
    " else 'at or above the high watermark' end"
)
_FAILED: Final = "failed > 0 and acknowledged = 0 and unknown = 0"
_POLLED_BY: Final = f"concat('polled by ', {_listed('readers')})"

OF_VALUES: Final = (
    Rule(Anomaly.LOST_WRITE, f"{_ABSENT} and held_aborted = 0", "acked_offset", "acked_offset", _LOST),
    Rule(
        Anomaly.ABORTED_IN_LOG,
        f"{_ABSENT} and held_aborted > 0",
        *_ends("aborted_places"),
        "'lost to readers of committed records'",
    ),
    Rule(
        Anomaly.DUPLICATE,
        "held > 1 and sent > 0 and unordered = 0",
        *_ends("places"),
        f"concat('at offsets ', {_listed('places')})",
    ),
    Rule(
        Anomaly.READ_LOST,
        f"size({_GONE}) > 0 and (start is null or array_max({_GONE}) >= start)",
        f"get({_GONE}, 0)",
        f"get({_GONE}, 0)",
        f"concat('polled by ', {_listed('readers')}, if(held > 0, concat('; the log has it at ', {_listed('places')}),"
        " '; the log does not have it'))",
    ),
    Rule(
        Anomaly.PHANTOM,
        "sent = 0 and polled > 0 and size(array_except(seen, aborted_places)) > 0",
        *_ends("seen"),
        f"concat('polled by ', {_listed('readers')}, ', sent by nobody')",
    ),
    Rule(
        # The records of an aborted transaction are in the log by right, and for read_uncommitted to see.
        Anomaly.G1A,
        f"{_FAILED} and (polled_committed > 0 or (aborted = 0 and polled > 0 and held_aborted = 0))"
        f" or ({_READ_ABORTED})",
        *_ends("seen"),
        _POLLED_BY,
    ),
    Rule(
        Anomaly.FAILED_IN_LOG,
        f"{_FAILED} and aborted = 0 and held > 0",
        *_ends("places"),
        "'the producer got an error'",
    ),
)
