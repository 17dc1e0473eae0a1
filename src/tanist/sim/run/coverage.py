"""Coverage: named counters of the situations that runs have exercised.

A run in which nothing happened proves nothing, and a thousand such runs prove no more. `tanist lab run` adds and prints
the counters of all seeds; over a large range none of `EXPECTED` may be zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from tanist.faults import FAULTS
from tanist.sim.faults.schedule import KINDS
from tanist.sim.planted import PLACES
from tanist.sim.situations import SITUATIONS

Counts = Counter[str]

ACCESS_EXPECTED: dict[str, str] = {
    "access: authenticated by PLAIN": "a broker believes a password",
    "access: authenticated by SCRAM-SHA-256": "or a proof: of a user, or of a delegation token",
    "access: authenticated again": "on the same connection, before the session ends (KIP-368)",
    "access: authentications refused": "an old password, a token that was revoked or has expired, a guess",
    "access: strangers turned away": "a request before an authentication has no answer",
    "access: allowed": "the entries allow what a request needs",
    "access: denied": "and do not",
    "access: changed meanwhile": "the answer to a request has changed between its arrival and its answer",
    "access: records of subjects committed": "and each was allowed",
    "access: entries of subjects committed": "and each was allowed",
    "quotas: within a quota": "a client has one, and does not exceed it",
    "quotas: throttled PRODUCE": "a client exceeds producer_byte_rate",
    "quotas: throttled FETCH": "or consumer_byte_rate",
    "quotas: throttled CREATE_TOPICS": "or controller_mutation_rate",
    "quotas: changes refused": "a change that comes when tokens are owed: THROTTLING_QUOTA_EXCEEDED",
    "quotas: changed meanwhile": "the quota of a client has changed between the arrival of its request and the answer",
    "quotas: connections within a quota": "an address has a quota, and its connection is taken",
    "quotas: connections refused": "or exceeds it",
}
"""Of secured runs."""

EXPECTED: dict[str, str] = {
    "elections": "a broker was elected",
    "elections from the ELR": "a clean one, of a member of the ELR, with nobody in sync",
    "unclean elections": "nobody was left who surely had everything",
    "Balanced recoveries": "an unclean recovery that asked all of LastKnownElr",
    "Aggressive recoveries": "an unclean recovery that asked the live replicas",
    "last known leaders": "the KIP's first phase: the last leader is taken back, or anybody where that is allowed",
    "operators' elections": "an unclean election that was asked for",
    "lossless recoveries": "an unclean election of a replica that had everything all the same",
    "losses": "an unclean election that gave committed records up, as it must",
    "into the ELR": "a member left the ISR while it was too small, and stays eligible",
    "into LastKnownElr": "a member of the ELR had an unclean shutdown, or a leader is gone with nobody behind it",
    "ISR empty": "nobody is in sync",
    "ISR expanded": "a replica joined",
    "ISR shrunk": "a replica left",
    "registered after a clean end": "a broker came back with its clean-shutdown mark",
    "registered after an unclean end": "a broker came back without",
    "high watermark held": "all of the maximal ISR had more, and the committed ISR was too small",
    "logs truncated": "a replica cut off what diverged",
    "logs recovered with a loss": "a loss of power took records that were not synced",
    "two leaders": "a leader of old acted beside the new one",
    "controllers elected": "the quorum's leaders after the first",
    "reassignments begun": "other replicas are wanted",
    "reassignments completed": "the new replicas are in sync, the old ones let go",
    "reassignments cancelled": "back to the replicas there were",
    "reassignments throttled": "with a rate for the replicas that are not in sync (KIP-73)",
    "replicas moved between directories": "and their logs were found the same",
    "min.insync.replicas changed": "of a topic or of the cluster",
    "strategies changed": "unclean.recovery.strategy, or unclean.leader.election.enable in the first phase",
    "preferred elections asked for": "by an operator",
    "brokers unregistered": "by an operator",
    "produce refused: too few in sync": "NOT_ENOUGH_REPLICAS",
    "produce retried": "an answer did not come, or said to try again",
    "end not known yet": "ListOffsets of a new leader: OFFSET_NOT_AVAILABLE",
    "consumers ahead of the log": "a consumer found its offset gone, after a loss",
    "left out at the healing": "a broker stayed down, and the rest had to do",
    "excused: no leader possible": "the strategy is to wait for who is left out",
    "ELR switched off": "eligible.leader.replicas.version 0, by an operator",
    "ELR switched on": "and 1 again",
    "logs configured": "flush.messages or segment.ms of a topic, by an operator",
    "voters: one more": "a set with another controller is committed",
    "voters: one less": "a set without one of its controllers is committed",
    "voters: one less, which had lost its disk": "so that its successor can be added",
    "voters: metadata log lost with its disk": "of a controller, which starts with an empty one",
    "voters: led by a removed one": "nobody else has the record that removes it",
    "trimming: log starts moved": "by retention or DeleteRecords",
    "trimming: segments dropped by retention": "too old, or too many",
    "trimming: all committed records deleted": "DeleteRecords with offset -1",
    "trimming: DeleteRecords acknowledged": "all live replicas begin there",
    "trimming: DeleteRecords refused": "beyond the high watermark",
    "trimming: logs begun anew at the leader's start": "a follower had only what the leader has deleted",
    "trimming: consumers behind the log start": "their offset is gone, and they go on at the start",
    "rotten batches refused by consumers": "their CRC does not match",
    "rotten logs thrown away": "by an operator; they are fetched from others",
    **ACCESS_EXPECTED,
    **{f"fault: {kind}": FAULTS[kind].does for kind in KINDS},
    **{f"raised: {place}": "an exception that the run has planted there" for place in PLACES},
    **SITUATIONS,
}
"""Counters that must not be zero over a large range of seeds, and their meanings."""


SELDOM: frozenset[str] = frozenset(
    (
        "controller: AlterPartition of an older broker epoch refused",
        "follower: a further round of truncation",
        "follower: salvage overtaken by a new role",
        "leader: fetch of a broker's former life refused",
        "recovery: answer of an older broker epoch dropped",
        "recovery: decided without all live replicas",
    )
)
"""Counted and printed like the others, but a thousand seeds may miss them: each takes two rare events at once."""


def added(each: Iterable[Counts]) -> tuple[Counts, Counts]:
    """Name -> how often in all of these seeds together; name -> in how many of them."""
    counts: Counts = Counter()
    seeds: Counts = Counter()
    for found in each:
        counts.update(found)
        seeds.update(name for name, count in found.items() if count)
    return counts, seeds


def lacking(counts: Counts, expected: Mapping[str, str] = EXPECTED) -> list[str]:
    """Expected situations that did not occur."""
    return [name for name in expected if not counts[name] and name not in SELDOM]
