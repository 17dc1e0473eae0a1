"""What was acknowledged, what the log holds in the end, and whether the two agree.

Pure: no cluster, no clock. The promises checked are those of acks=all with an idempotent producer:

* no acknowledged record is lost: it stands at the offset that was acknowledged (or anywhere, if none was told);
* none is duplicated, acknowledged or not;
* none is out of order: within a partition the log holds records in the order they were sent.

A record whose delivery failed or was never told may be in the log or not: its outcome is unknown, not failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import quantiles


@dataclass(frozen=True, slots=True)
class Ack:
    """One acknowledged record: the number it had in its partition, its offset, and when the producer learned of it."""

    partition: int
    number: int
    offset: int | None
    """None if the producer knows that it is in the log, but not where: librdkafka concludes that of a batch whose
    answer it missed, when one behind it is acknowledged."""
    at_s: float


@dataclass(frozen=True, slots=True)
class Stored:
    """One record that the log holds."""

    offset: int
    number: int


@dataclass(slots=True)
class Verdict:
    """What is wrong, in words; nothing when all is well."""

    acknowledged: int = 0
    stored: int = 0
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    disordered: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)

    @property
    def violations(self) -> list[str]:
        return [*self.lost, *self.duplicated, *self.disordered, *self.invented]


def judge(acks: Sequence[Ack], log: Mapping[int, Sequence[Stored]], sent: Mapping[int, int]) -> Verdict:
    """Compare. `sent` is how many records each partition was given: their numbers are 0, 1, 2, ..."""
    verdict = Verdict(acknowledged=len(acks), stored=sum(len(records) for records in log.values()))
    at_offset: dict[tuple[int, int], int] = {}
    for partition, records in log.items():
        seen: dict[int, int] = {}
        last = -1
        for record in records:
            at_offset[partition, record.offset] = record.number
            where = f"partition {partition}, offset {record.offset}: record {record.number}"
            if not 0 <= record.number < sent.get(partition, 0):
                verdict.invented.append(f"{where} was never sent")
            elif record.number in seen:
                verdict.duplicated.append(f"{where} is also at offset {seen[record.number]}")
            elif record.number < last:
                verdict.disordered.append(f"{where} comes after record {last}")
            seen.setdefault(record.number, record.offset)
            last = max(last, record.number)
    stored = {(partition, record.number) for partition, records in log.items() for record in records}
    for ack in acks:
        if ack.offset is None:
            if (ack.partition, ack.number) not in stored:
                verdict.lost.append(f"partition {ack.partition}: acknowledged record {ack.number} is nowhere")
            continue
        found = at_offset.get((ack.partition, ack.offset))
        if found != ack.number:
            instead = "nothing" if found is None else f"record {found}"
            verdict.lost.append(
                f"partition {ack.partition}, offset {ack.offset}: {instead} instead of acknowledged record {ack.number}"
            )
    return verdict


def longest_gap_s(times_s: Sequence[float], start_s: float, end_s: float) -> float:
    """The longest silence between two acknowledgements that overlaps [start_s, end_s].

    If none came after the start, the silence lasts at least to the end.
    """
    ordered = sorted(times_s)
    before = [time_s for time_s in ordered if time_s <= start_s]
    after = [time_s for time_s in ordered if start_s < time_s <= end_s]
    edges = [before[-1] if before else start_s, *after]
    if not after:
        return end_s - edges[0]
    return max(later - earlier for earlier, later in pairwise(edges))


@dataclass(frozen=True, slots=True)
class Spread:
    """p50, p90 and the maximum of some measured values, in the values' unit."""

    p50: float
    p90: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        if not values:
            raise ValueError("no values to describe")
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        cuts = quantiles(values, n=10, method="inclusive")
        return cls(cuts[4], cuts[8], max(values))

    def __str__(self) -> str:
        return f"p50 {self.p50:.2f}  p90 {self.p90:.2f}  max {self.max:.2f}"
