"""The anomalies of whole transactions: torn ones, reads before the commit, and commits that readers do not get.

Owns what follows from isolation. A reader of committed records gets a transaction's records after its commit, all of
them in the end, and those of an aborted one never (G1a, in `judgement`).

A poll of read_committed that gives nothing may wait for an open transaction, so it shows the end of a partition in one
case only: the last stable offset was at the end before it began, with all records that matter counted
(`_settled_at`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tanist.lab.anomalies import Anomaly
from tanist.lab.history.citations import cite_committed_read, cite_send
from tanist.lab.history.partition import PartitionHistory
from tanist.lab.history.sends import FAILED, OK, READ, TRANSACTIONAL
from tanist.lab.history.tally import Citations, Cite, Tally
from tanist.lab.history.transactions import UNKNOWN_END, Transactions


def judge_atomicity(
    transactions: Transactions,
    partitions: Sequence[PartitionHistory],
    lost: Mapping[str, set[int]],
    tally: Tally,
) -> set[str]:
    """Add the anomalies to the tally; `lost` has the rows of each partition that are reported as lost already.

    Returns the partitions that were read to their end by readers of committed records.
    """
    torn = _Torn(transactions)
    settled: set[str] = set()
    for partition in partitions:
        if not partition.has_transactions:
            continue
        seen = _seen(partition)
        torn.take(partition, seen)
        _precommitted(transactions, partition, seen, tally)
        _own_records(partition, tally)
        if _uncommitted(partition, seen, lost[partition.name], tally):
            settled.add(partition.name)
    torn.judge(tally)
    return settled


def _seen(partition: PartitionHistory) -> dict[int, int]:
    """Rows of transactions -> the slot of a claim that a reader of committed records got; the one it got first."""
    offsets, flags = partition.offsets, partition.sends.flags
    found: dict[int, int] = {}
    for slot in offsets.slots():
        row = offsets.senders[slot] - 1
        if row < 0 or not flags[row] & TRANSACTIONAL or not offsets.committed_reads[slot]:
            continue
        first = found.setdefault(row, slot)
        if offsets.committed_ends_at[slot] < offsets.committed_ends_at[first]:
            found[row] = slot
    return found


# -- reads before the commit


def _precommitted(
    transactions: Transactions, partition: PartitionHistory, seen: Mapping[int, int], tally: Tally
) -> None:
    """No poll of committed records ends with a record whose client has not asked for the commit yet."""
    offsets, sends = partition.offsets, partition.sends
    for row, slot in seen.items():
        ending_at = transactions.ending_at[sends.transaction(row)]
        if sends.flags[row] & FAILED or ending_at == UNKNOWN_END or offsets.committed_ends_at[slot] >= ending_at:
            continue
        tally.add(
            Anomaly.PRECOMMITTED_READ,
            partition.name,
            f"offset {offsets.offset_of(slot)} was polled before the commit of its transaction was asked for",
            cite_send(partition, row),
            cite_committed_read(partition, slot),
        )


def _own_records(partition: PartitionHistory, tally: Tally) -> None:
    """No transaction polls what it has sent itself."""
    offsets, sends = partition.offsets, partition.sends
    done: set[int] = set()
    for transaction, slot in zip(*partition.transactional_reads, strict=True):
        row = offsets.senders[slot] - 1
        if row < 0 or row in done or sends.transaction(row) != transaction:
            continue
        done.add(row)
        tally.add(
            Anomaly.PRECOMMITTED_READ,
            partition.name,
            f"offset {offsets.offset_of(slot)} was polled by the transaction that sent it",
            cite_send(partition, row),
            Cite((sends.end_lines[row],), partition.name, offsets.offset_of(slot)),
        )


# -- commits without an effect


def _uncommitted(partition: PartitionHistory, seen: Mapping[int, int], lost: set[int], tally: Tally) -> bool:
    """A commit that was acknowledged, and has no effect for readers of committed records. Returns whether these have
    come to the end.

    Records that nobody polled at all are in `judgement` where a reader of uncommitted records looked for them.
    """
    offsets, sends = partition.offsets, partition.sends
    beyond = max(
        (slot for slot in offsets.slots() if offsets.committed_reads[slot]), key=offsets.offset_of, default=None
    )
    end = -1 if beyond is None else offsets.offset_of(beyond)
    judged_unread = partition.final_poll().at > partition.acknowledged_until_at
    settled = _reached_end_after(partition, partition.acknowledged_until_at)
    for row, flags in enumerate(sends.flags):
        transactional = flags & TRANSACTIONAL
        if not flags & OK or row in seen or (flags & READ and not transactional):
            continue
        offset = sends.offsets[row]
        if beyond is not None and transactional and flags & READ and offset <= end:
            if row in lost:
                continue
            tally.add(
                Anomaly.LOST_WRITE,
                partition.name,
                f"offset {offset} was committed, and readers of committed records got {end} without it",
                cite_send(partition, row),
                Cite((offsets.reads[_slot_of(partition, row)],), partition.name, offset),
                cite_committed_read(partition, beyond),
            )
        elif settled and (flags & READ or not judged_unread):
            tally.add(
                Anomaly.UNSEEN,
                partition.name,
                "committed and never polled as such, though somebody polled all that is committed, and got nothing",
                cite_send(partition, row),
                *settled,
            )
    return bool(settled)


def _slot_of(partition: PartitionHistory, row: int) -> int:
    """The slot of a claim of a record that was polled."""
    offsets, sends = partition.offsets, partition.sends
    slot = offsets.find(sends.offsets[row], sends.values[row])
    if slot is not None and offsets.reads[slot]:
        return slot
    return next(slot for slot in offsets.slots() if offsets.senders[slot] == row + 1 and offsets.reads[slot])


def _reached_end_after(partition: PartitionHistory, since: int) -> Citations:
    """The evidence that readers of committed records have come to the end of what was in the partition at a time: an
    end that was asked for later, a last stable offset no less, and an empty poll after that. Empty if there is none."""
    poll = partition.final_polls[True]
    ends, stable = partition.ends, partition.stable_ends
    asked = [at for at, asked_at in enumerate(ends.starts_at) if asked_at > since]
    if not asked:
        return ()
    lowest = min(asked, key=ends.offsets.__getitem__)
    reached = [at for at, offset in enumerate(stable.offsets) if offset >= ends.offsets[lowest]]
    first = min(reached, key=stable.ends_at.__getitem__, default=-1)
    if first < 0 or poll.at < stable.ends_at[first]:
        return ()
    return ends.cite(lowest, partition.name), stable.cite(first, partition.name), *poll.citations


# -- torn transactions


class _Torn:
    """Transactions that were not aborted, of which readers of committed records got one record and not another."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._first_seen: dict[int, tuple[int, PartitionHistory, int, int]] = {}
        """Transaction -> when the first of its records was polled, and where it is."""
        self._missing: dict[int, list[tuple[PartitionHistory, int]]] = {}

    def take(self, partition: PartitionHistory, seen: Mapping[int, int]) -> None:
        sends, offsets = partition.sends, partition.offsets
        for row, transaction in enumerate(sends.transactions):
            if not transaction or self._transactions.failed[transaction]:
                continue
            slot = seen.get(row)
            if slot is None:
                self._missing.setdefault(transaction, []).append((partition, row))
                continue
            polled_at = offsets.committed_ends_at[slot]
            if transaction not in self._first_seen or polled_at < self._first_seen[transaction][0]:
                self._first_seen[transaction] = polled_at, partition, row, slot

    def judge(self, tally: Tally) -> None:
        for transaction, missing in self._missing.items():
            if transaction not in self._first_seen:
                continue
            polled_at, partition, row, slot = self._first_seen[transaction]
            # Its records were in the log when its client asked for the end.
            ending_at = self._transactions.ending_at[transaction]
            since = polled_at if ending_at == UNKNOWN_END else ending_at
            for other, lacking in missing:
                settled = _reached_end_after(other, since)
                if settled:
                    tally.add(
                        Anomaly.TORN,
                        other.name,
                        f"readers of committed records got offset {partition.offsets.offset_of(slot)} of "
                        f"{partition.name}, and never what the same transaction sent here",
                        cite_send(other, lacking),
                        cite_send(partition, row),
                        cite_committed_read(partition, slot),
                        *settled,
                    )
                    break
