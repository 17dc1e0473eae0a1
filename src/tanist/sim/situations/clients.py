"""Situations of clients: the answers that they do not hope for. The workload's clients count them as they come."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tanist.wire.errors import ErrorCode

CLIENT_SITUATIONS: Final[dict[str, str]] = {
    "producer: answer lost": "it sends the same again",
    "producer: sent to who does not lead": "NOT_LEADER_OR_FOLLOWER",
    "producer: too few in sync": "NOT_ENOUGH_REPLICAS",
    "producer: timed out at the leader": "REQUEST_TIMED_OUT: appended, and not committed in time",
    "producer: begins anew": "under another producer id, as the log has lost what came before",
    "consumer: answer lost": "it asks again",
    "consumer: asked who does not lead": "NOT_LEADER_OR_FOLLOWER",
    "consumer: fenced by a newer leader epoch": "it must look for the leader (KIP-320)",
    "consumer: ahead of the leader it asks": "UNKNOWN_LEADER_EPOCH",
    "consumer: offset not there": "OFFSET_OUT_OF_RANGE",
}
"""Name -> meaning."""

Answers = dict[int | None, str]
"""Error of an answer, None without one -> the situation."""

PRODUCED: Final[Answers] = {
    None: "producer: answer lost",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "producer: sent to who does not lead",
    ErrorCode.NOT_ENOUGH_REPLICAS: "producer: too few in sync",
    ErrorCode.REQUEST_TIMED_OUT: "producer: timed out at the leader",
}
FETCHED: Final[Answers] = {
    None: "consumer: answer lost",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "consumer: asked who does not lead",
    ErrorCode.FENCED_LEADER_EPOCH: "consumer: fenced by a newer leader epoch",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "consumer: ahead of the leader it asks",
    ErrorCode.OFFSET_OUT_OF_RANGE: "consumer: offset not there",
}


def count(counts: Counter[str], answers: Answers, error: int | None) -> None:
    """Also of an answer that has come too late."""
    name = answers.get(error)
    if name is not None:
        counts[name] += 1
