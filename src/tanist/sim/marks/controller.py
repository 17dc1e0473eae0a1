"""Situations of the controller: stale requests, fencing and its causes, recoveries and the replicas they wait for.

And of partitions in the committed metadata: the changes of ISR and ELR under KIP-966.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tanist.broker.metadata.replica_log_end import ReplicaLogEnds
from tanist.controller import controller, elections, unclean_recovery
from tanist.controller.alter_partition import _IsrChange
from tanist.controller.brokers import Brokers
from tanist.controller.heartbeats import HeartbeatTable
from tanist.controller.image import MetadataImage
from tanist.controller.partition_state import PartitionState
from tanist.controller.unclean_recovery import LogInfo, Phase, UncleanRecoveries
from tanist.sim.marks.marks import Marks
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest

_REFUSALS = {
    ErrorCode.INVALID_UPDATE_VERSION: "controller: stale AlterPartition refused",
    ErrorCode.FENCED_LEADER_EPOCH: "controller: AlterPartition of an older leader epoch refused",
    ErrorCode.INELIGIBLE_REPLICA: "controller: AlterPartition with an ineligible member refused",
    ErrorCode.NEW_LEADER_ELECTED: "controller: AlterPartition that takes its sender's leadership",
}
_PHASES = {
    Phase.ELIGIBLE_AWAITED: "recovery: members of the ELR are waited for",
    Phase.OPERATOR_AWAITED: "recovery: an operator is waited for",
    Phase.LAST_KNOWN_AWAITED: "recovery: members of LastKnownElr are waited for",
    Phase.COMPARING: "recovery: logs are compared",
}

CONTROLLER_SITUATIONS: dict[str, str] = {
    "controller: stale AlterPartition refused": "of an older partition epoch",
    "controller: AlterPartition of an older leader epoch refused": "its sender has been succeeded, perhaps by itself",
    "controller: AlterPartition with an ineligible member refused": "fenced, shutting down, or of another life",
    "controller: AlterPartition that takes its sender's leadership": "it completes a reassignment away from the sender",
    "controller: AlterPartition of an older broker epoch refused": "sent before its sender registered anew",
    "controller: heartbeat of an older broker epoch refused": "the broker must register anew",
    "controller: registration refused, a former life may be alive": "its session has not expired",
    "controller: registration of the same life again": "the answer to the first one was lost",
    "controller: broker fenced by the end of its session": "no heartbeat in time",
    "controller: broker fenced by an operator's restart": "in good order: the broker said that it goes",
    "controller: broker fenced in parts": "it has more partitions than one decision takes",
    "controller: broker heard of while it is fenced in parts": "it stays, and leads and follows what is left to it",
    "controller: ELR emptied by a lower min.insync.replicas": "the configuration alone makes the ISR large enough",
    "controller: log directories lost": "a broker says that some of its directories are offline",
    "recovery: members of the ELR are waited for": "leader election 3b",
    "recovery: an operator is waited for": "leader election 4c, strategy None",
    "recovery: members of LastKnownElr are waited for": "leader election 4b, Balanced",
    "recovery: logs are compared": "leader election 3a, 4a, or 4b with all of them back",
    "recovery: answer of an older broker epoch dropped": "U3: who gave it has registered anew since",
    "recovery: answer of another leader epoch dropped": "U3: it may still append; it is asked again",
    "recovery: asked without an answer": "it is asked again",
    "recovery: log end asked for by ListOffsets and Fetch": "the broker has no GetReplicaLogInfo",
    "recovery: begun anew by another controller": "what the one before knew of it is forgotten",
    "recovery: decided without all live replicas": "the time for answers that are not needed is over",
    "partition: ISR empty with several eligible": "the first to return may lead",
    "partition: ISR too small, made up for by the ELR": "together they are min.insync.replicas",
    "partition: ELR emptied by an ISR that is large enough": "the high watermark moves on without them",
    "partition: rest of the ELR kept at an election from it": "they have everything until records are committed again",
    "partition: member of the ELR back in the ISR": "by fetching, or by being elected",
    "partition: member of the ELR moved to LastKnownElr": "its end was unclean",
    "partition: leader elected to succeed itself": "another epoch, the same leader",
    "partition: leader handed over to a member of the ISR": "a clean election with the old leader alive or not",
    "partition: recovery ended by its leader": "the first change of the ISR after an unclean election says so",
    "partition: member of ISR or ELR dropped by a reassignment": "it is no replica any more",
    "partition: last member of the ISR kept without ELR": "eligible leader replicas are off: it alone may lead again",
}


def watch_controllers(marks: Marks) -> None:
    _watch_requests(marks)
    _watch_recoveries(marks)


def _watch_requests(marks: Marks) -> None:
    def decided(result: Any, *_: Any) -> None:
        name = _REFUSALS.get(result.error_code)
        if name is not None:
            marks.hit(name)

    def heartbeat(result: Any, *_: Any) -> None:
        if result.response.error_code == ErrorCode.STALE_BROKER_EPOCH:
            marks.hit("controller: heartbeat of an older broker epoch refused")
        elif result.response.should_shut_down and result.records:
            marks.hit("controller: broker fenced by an operator's restart")

    def register(brokers: Brokers, image: MetadataImage, request: Any, *_: Any) -> bool:
        stored = image.brokers.get(request.broker_id)
        return stored is not None and stored.incarnation_id == request.incarnation_id

    def registered(again: bool, result: Any, *_: Any) -> None:
        if result.response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            marks.hit("controller: registration refused, a former life may be alive")
        elif again and not result.response.error_code:
            marks.hit("controller: registration of the same life again")

    def expired(result: Any, *_: Any) -> None:
        if result is not None:
            marks.hit("controller: broker fenced by the end of its session")

    # The table of requests has `alter_partition` in a lambda, which looks it up in the module at each call.
    def altered(result: Any, image: MetadataImage, request: AlterPartitionRequest, *_: Any) -> None:
        if result.response.error_code == ErrorCode.STALE_BROKER_EPOCH:
            marks.hit("controller: AlterPartition of an older broker epoch refused")

    marks.after(_IsrChange, "decide", decided)
    marks.after(controller, "alter_partition", altered)
    marks.after(Brokers, "heartbeat", heartbeat)
    marks.around(Brokers, "register", register, registered)
    marks.after(Brokers, "fence_expired", expired)

    def fenced(result: tuple[list[Any], bool], *_: Any) -> None:
        if result[1]:
            marks.hit("controller: broker fenced in parts")

    def heard(table: HeartbeatTable, broker_id: int, epoch: int, *_: Any) -> None:
        contact_ms = table.contact_time_ms(broker_id, epoch)
        if contact_ms is not None and contact_ms < 0:
            marks.hit("controller: broker heard of while it is fenced in parts")

    marks.after(elections, "broker_fenced_in_part", fenced)
    marks.before(HeartbeatTable, "contact", heard)

    def min_isr_changed(result: list[Any], *_: Any) -> None:
        if any(record.eligible_leader_replicas == () for record in result):
            marks.hit("controller: ELR emptied by a lower min.insync.replicas")

    marks.after(elections, "min_isr_changed", min_isr_changed)
    marks.before(Brokers, "_directories_lost", lambda *_: marks.hit("controller: log directories lost"))


def _watch_recoveries(marks: Marks) -> None:
    def fresh(result: bool, answer: LogInfo, broker_id: int, state: PartitionState, image: MetadataImage) -> None:
        if result:
            return
        registration = image.brokers.get(broker_id)
        if registration is None or registration.epoch != answer.broker_epoch:
            marks.hit("recovery: answer of an older broker epoch dropped")
        else:
            marks.hit("recovery: answer of another leader epoch dropped")

    def enough(result: bool, recovery: Any, live: list[int], *_: Any) -> None:
        if result and not all(broker_id in recovery.answers for broker_id in live):
            marks.hit("recovery: decided without all live replicas")

    def activated(recoveries: UncleanRecoveries, image: MetadataImage) -> None:
        if next(iter(image.leaderless_partitions()), None) is not None:
            marks.hit("recovery: begun anew by another controller")

    def plain(*_: Any) -> None:
        marks.hit("recovery: log end asked for by ListOffsets and Fetch")

    marks.before(ReplicaLogEnds, "begin", plain)
    marks.after(unclean_recovery, "_phase", lambda result, *_: marks.hit(_PHASES[result]))
    marks.after(unclean_recovery, "_fresh", fresh)
    marks.after(unclean_recovery, "_enough", enough)
    marks.before(UncleanRecoveries, "unanswered", lambda *_: marks.hit("recovery: asked without an answer"))
    marks.before(UncleanRecoveries, "activate", activated)


def mark_partition(
    counts: Counter[str], before: PartitionState, after: PartitionState, *, min_isr: int, elr_enabled: bool
) -> None:
    """One committed change of a partition."""
    isr, elr = set(after.isr), set(after.elr)
    elected = after.leader >= 0 and after.leader_epoch > before.leader_epoch
    large_enough = len(isr) >= min_isr
    gone = {*before.isr, *before.elr} - set(after.replicas)
    found = {
        "partition: ISR empty with several eligible": not isr and len(elr) > 1,
        "partition: ISR too small, made up for by the ELR": not large_enough
        and bool(elr)
        and len(isr | elr) >= min_isr,
        "partition: ELR emptied by an ISR that is large enough": bool(before.elr and not elr)
        and large_enough
        and len(isr) > len(before.isr),
        "partition: rest of the ELR kept at an election from it": elected
        and after.leader in before.elr
        and bool(elr & set(before.elr)),
        "partition: member of the ELR back in the ISR": bool(isr & set(before.elr)),
        "partition: member of the ELR moved to LastKnownElr": bool(set(after.last_known_elr) & set(before.elr)),
        "partition: leader elected to succeed itself": elected and after.leader == before.leader,
        "partition: leader handed over to a member of the ISR": elected
        and after.leader != before.leader
        and after.leader in before.isr,
        "partition: recovery ended by its leader": before.recovering and not after.recovering,
        "partition: member of ISR or ELR dropped by a reassignment": bool(gone),
        "partition: last member of the ISR kept without ELR": not elr_enabled and after.leader < 0 and bool(isr),
    }
    for name, so in found.items():
        if so:
            counts[name] += 1
