"""The citations of evidence: the lines that say that a record was sent, where it stands, and that it was polled."""

from __future__ import annotations

from tanist.lab.history.partition import PartitionHistory
from tanist.lab.history.sends import OK, PLACED
from tanist.lab.history.tally import Cite


def cite_send(partition: PartitionHistory, row: int) -> Cite:
    return Cite(partition.sends.lines(row), partition.name, sent=True)


def cite_read(partition: PartitionHistory, slot: int) -> Cite:
    return Cite((partition.offsets.reads[slot],), partition.name, partition.offsets.offset_of(slot))


def cite_committed_read(partition: PartitionHistory, slot: int) -> Cite:
    return Cite((partition.offsets.committed_reads[slot],), partition.name, partition.offsets.offset_of(slot))


def cite_claim(partition: PartitionHistory, slot: int) -> Cite:
    """The source of a claim: the acknowledgement, or the first poll."""
    offsets, sends = partition.offsets, partition.sends
    row = offsets.senders[slot] - 1
    if row >= 0 and sends.flags[row] & (OK | PLACED) == OK and sends.offsets[row] == offsets.offset_of(slot):
        return cite_send(partition, row)
    return cite_read(partition, slot)


def cite_place(partition: PartitionHistory, row: int) -> tuple[Cite, Cite]:
    """The evidence of a send's offset: its acknowledgement, or the send and a poll."""
    slot = partition.offsets.find(partition.sends.offsets[row], partition.sends.values[row])
    if slot is None:
        raise RuntimeError(f"{partition.name}: row {row} is at {partition.sends.offsets[row]}, and nobody says so")
    return cite_send(partition, row), cite_claim(partition, slot)
