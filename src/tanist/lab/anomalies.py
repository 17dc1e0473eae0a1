"""The table of anomalies: what can be wrong with a log, for both judges of it.

The history checker (`tanist.lab.history`) judges by the clients' operations alone. The audit
(`tanist.spark.jobs.audit`) has the logs of the replicas as well. Each has rules of its own, so one checks the other.
Owns names, texts and definitions, with Jepsen's names where Jepsen has the anomaly. Must never import a judge. The
tables in docs/history.md and docs/pipeline.md are these rows.
"""

from __future__ import annotations

from enum import Enum, Flag, auto
from typing import Final


class Judge(Flag):
    """The judge that finds the anomaly."""

    HISTORY = auto()
    """The history checker."""
    AUDIT = auto()
    """The audit of replicas' logs."""


_HISTORY, _AUDIT, _BOTH = Judge.HISTORY, Judge.AUDIT, Judge.HISTORY | Judge.AUDIT


class Anomaly(Enum):
    """In the order of the reports: the worst first, and what concerns replicas alone last.

    A row: the name, the judges, what is counted, the text of reports, the definition, and the audit's name for people.
    """

    LOST_WRITE = (
        "lost-write", _BOTH, "sends",
        "acknowledged, and not there where somebody looked for it later",
        "acknowledged with acks=all, and missing for a later reader, or in the leader's log",
        "lost acknowledged records",
    )  # fmt: skip
    ABORTED_IN_LOG = (
        "aborted-in-log", _AUDIT, "sends",
        "committed for its producer, and only in an aborted transaction of the log",
        "the producer got a commit, and the log has an abort",
        "acknowledged records that the log has aborted",
    )  # fmt: skip
    READ_LOST = (
        "read-lost", _AUDIT, "values",
        "a consumer was given it at an offset where the log does not have it",
        "polled at an offset where the log does not have it",
        "lost records that were read",
    )  # fmt: skip
    INCONSISTENT_OFFSETS = (
        "inconsistent-offsets", _HISTORY, "offsets",
        "one offset with different values",
        "with claims of different values",
    )  # fmt: skip
    DUPLICATE = (
        "duplicate", _BOTH, "values",
        "one value at different offsets",
        "at different offsets, unless it was sent with `idempotent: false` or without acks=all",
        "duplicated records",
    )  # fmt: skip
    TORN = (
        "torn", _HISTORY, "transactions",
        "a transaction with records that readers of committed records got, and others that they did not",
        "neither aborted nor failed; `read_committed` polled one of its records and never another, though the other's "
        "partition was read to the end of all that is committed as of its `ending_ns`; if that is not known, as of "
        "that poll",
    )  # fmt: skip
    G1A = (
        "G1a", _BOTH, "sends",
        "polled, though its send failed, or its transaction was aborted",
        "failed, and its value was polled; one of an aborted transaction by `read_committed`",
        "read records that had failed",
    )  # fmt: skip
    PRECOMMITTED_READ = (
        "precommitted-read", _HISTORY, "sends",
        "polled as committed, before its transaction was",
        "of a transaction that did not fail; polled by `read_committed` in that very transaction, or by a poll that "
        "ended before its `ending_ns`",
    )  # fmt: skip
    G1C = (
        "G1c", _HISTORY, "cycles",
        "transactions that read each other's records, in a cycle",
        "of transactions that did not fail, each of which sent what the next one polled (`read_committed`)",
    )  # fmt: skip
    PHANTOM = (
        "phantom", _BOTH, "values",
        "polled, and nobody sent it",
        "polled, but never sent to this partition",
        "read records that nobody sent",
    )  # fmt: skip
    FAILED_IN_LOG = (
        "failed-in-log", _AUDIT, "sends",
        "its send failed, and it is in the log",
        "failed without being of an aborted transaction, and the log has it",
        "failed sends in the log",
    )  # fmt: skip
    REALTIME_ORDER = (
        "realtime-order", _HISTORY, "sends",
        "sent after another was acknowledged, and stands before it",
        "began after another had been acknowledged, and have a claim at its offset or before it",
    )  # fmt: skip
    STALE_END = (
        "stale-end", _HISTORY, "`end`s",
        "an end that does not count what had been acknowledged before it was asked for",
        "asked after a record had been acknowledged, and do not count it (`read_uncommitted` only)",
    )  # fmt: skip
    NONMONOTONIC_SEND = (
        "nonmonotonic-send", _HISTORY, "sends",
        "stands before what its producer sent earlier",
        "stand before, or where, the producer's last send with a known place stands. Idempotent ones, not failed",
    )  # fmt: skip
    INT_NONMONOTONIC_SEND = (
        "int-nonmonotonic-send", _HISTORY, "sends",
        "stands before what its transaction sent earlier",
        "the same, where both are of one transaction",
    )  # fmt: skip
    REORDERED = (
        "reordered", _AUDIT, "sends",
        "stands before what its producer had sent, and been acknowledged, earlier",
        "first stand before any record of the producer that had been acknowledged when they began. Idempotent ones, "
        "acknowledged",
        "records out of order",
    )  # fmt: skip
    NONMONOTONIC_POLL = (
        "nonmonotonic-poll", _HISTORY, "steps",
        "a consumer went back",
        "a consumer got an offset below the next one, within a poll or across polls",
    )  # fmt: skip
    INT_NONMONOTONIC_POLL = (
        "int-nonmonotonic-poll", _HISTORY, "steps",
        "a consumer went back within a transaction",
        "the same, where both records were polled by one transaction",
    )  # fmt: skip
    POLL_SKIP = (
        "poll-skip", _HISTORY, "steps",
        "a consumer left out what is there",
        "a consumer got an offset above the next one, with a claim between (for `read_committed`: one that is not only "
        "of aborted sends)",
    )  # fmt: skip
    INT_POLL_SKIP = (
        "int-poll-skip", _HISTORY, "steps",
        "a consumer left out what is there, within a transaction",
        "the same, where both records were polled by one transaction",
    )  # fmt: skip
    UNSEEN = (
        "unseen", _HISTORY, "sends",
        "acknowledged and never polled, though somebody polled until nothing came",
        "acknowledged, never polled, although a consumer of this partition began a poll after its last acknowledgement "
        "and got no records at all",
    )  # fmt: skip
    G0 = (
        "G0", _HISTORY, "cycles",
        "transactions whose records stand before each other's, in a cycle",
        "of transactions, each of which has a record right before one of the next; allowed",
    )  # fmt: skip
    INT_SEND_SKIP = (
        "int-send-skip", _HISTORY, "pairs",
        "another record stands between those of one transaction",
        "of consecutive sends of one transaction to a partition, with a claim between their offsets; allowed",
    )  # fmt: skip
    MISSING = (
        "missing", _AUDIT, "offsets",
        "below the high watermark, and not on every replica",
        "below the high watermark, and not on every replica; not judged in compacted topics",
        "committed records not on every replica",
    )  # fmt: skip
    DIVERGENT = (
        "divergent", _AUDIT, "offsets",
        "one offset, and replicas that hold other epochs or other bytes there",
        "with other leader epochs or other bytes on other replicas",
        "replicas that disagree",
    )  # fmt: skip
    DAMAGED = (
        "damaged", _AUDIT, "places",
        "bytes in a replica's file that are no sound batch",
        "of bytes in a replica's file that are no sound batch",
        "damage in a replica's file",
    )  # fmt: skip

    _value_: str
    judges: Judge
    counted: str
    meaning: str
    definition: str
    title: str

    def __new__(
        cls,
        name: str,
        judges: Judge = Judge.HISTORY,
        counted: str = "",
        meaning: str = "",
        definition: str = "",
        title: str = "",
    ) -> Anomaly:
        """All rows are full. The defaults are for `Anomaly("lost-write")`, as the type checker sees it."""
        row = object.__new__(cls)
        row._value_ = name
        row.judges, row.counted, row.meaning, row.definition = judges, counted, meaning, definition
        row.title = title or name
        return row


OF_HISTORIES: Final = tuple(each for each in Anomaly if Judge.HISTORY in each.judges)
OF_AUDITS: Final = tuple(each for each in Anomaly if Judge.AUDIT in each.judges)
