"""Situations of the controller: stale requests, fencing and its causes, recoveries and the replicas they wait for.

And of partitions in the committed metadata: the changes of ISR and ELR under KIP-966.
"""

from __future__ import annotations

from typing import Final

from tanist.events.metadata import (
    AlterPartitionRefused,
    DirectoriesLost,
    ElrsEmptied,
    FencingBegun,
    FencingInterrupted,
    LogEndsAsked,
    LogInfoDropped,
    LogInfoUnanswered,
    PartitionChanged,
    RecoveriesBegunAnew,
    RecoveryDecided,
    RecoveryPhaseEntered,
    RegistrationRefused,
    RegistrationRepeated,
    SessionExpired,
    ShutdownAllowed,
    StaleBrokerEpochRefused,
)
from tanist.sim.situations.counting import Situation

_REQUESTS: Final = (
    Situation(
        "controller: stale AlterPartition refused",
        "of an older partition epoch",
        AlterPartitionRefused,
        lambda event: event.error == "INVALID_UPDATE_VERSION",
    ),
    Situation(
        "controller: AlterPartition of an older leader epoch refused",
        "its sender has been succeeded, perhaps by itself",
        AlterPartitionRefused,
        lambda event: event.error == "FENCED_LEADER_EPOCH",
    ),
    Situation(
        "controller: AlterPartition with an ineligible member refused",
        "fenced, shutting down, or of another life",
        AlterPartitionRefused,
        lambda event: event.error == "INELIGIBLE_REPLICA",
    ),
    Situation(
        "controller: AlterPartition that takes its sender's leadership",
        "it completes a reassignment away from the sender",
        AlterPartitionRefused,
        lambda event: event.error == "NEW_LEADER_ELECTED",
    ),
    Situation(
        "controller: AlterPartition of an older broker epoch refused",
        "sent before its sender registered anew",
        StaleBrokerEpochRefused,
        lambda event: event.request == "AlterPartition",
    ),
    Situation(
        "controller: heartbeat of an older broker epoch refused",
        "the broker must register anew",
        StaleBrokerEpochRefused,
        lambda event: event.request == "BrokerHeartbeat",
    ),
    Situation(
        "controller: registration refused, a former life may be alive",
        "its session has not expired",
        RegistrationRefused,
        lambda event: event.error == "DUPLICATE_BROKER_REGISTRATION",
    ),
    Situation(
        "controller: registration of the same life again",
        "the answer to the first one was lost",
        RegistrationRepeated,
    ),
    Situation("controller: broker fenced by the end of its session", "no heartbeat in time", SessionExpired),
    Situation(
        "controller: broker fenced by an operator's restart",
        "in good order: the broker said that it goes",
        ShutdownAllowed,
        lambda event: event.fenced,
    ),
    Situation(
        "controller: broker fenced in parts",
        "it has more partitions than one decision takes",
        FencingBegun,
    ),
    Situation(
        "controller: broker heard of while it is fenced in parts",
        "it stays, and leads and follows what is left to it",
        FencingInterrupted,
    ),
    Situation(
        "controller: ELR emptied by a lower min.insync.replicas",
        "the configuration alone makes the ISR large enough",
        ElrsEmptied,
    ),
    Situation(
        "controller: log directories lost",
        "a broker says that some of its directories are offline",
        DirectoriesLost,
    ),
)

_RECOVERIES: Final = (
    Situation(
        "recovery: members of the ELR are waited for",
        "leader election 3b",
        RecoveryPhaseEntered,
        lambda event: event.phase == "ELIGIBLE_AWAITED",
    ),
    Situation(
        "recovery: an operator is waited for",
        "leader election 4c, strategy None",
        RecoveryPhaseEntered,
        lambda event: event.phase == "OPERATOR_AWAITED",
    ),
    Situation(
        "recovery: members of LastKnownElr are waited for",
        "leader election 4b, Balanced",
        RecoveryPhaseEntered,
        lambda event: event.phase == "LAST_KNOWN_AWAITED",
    ),
    Situation(
        "recovery: logs are compared",
        "leader election 3a, 4a, or 4b with all of them back",
        RecoveryPhaseEntered,
        lambda event: event.phase == "COMPARING",
    ),
    Situation(
        "recovery: answer of an older broker epoch dropped",
        "U3: who gave it has registered anew since",
        LogInfoDropped,
        lambda event: event.other_registration,
    ),
    Situation(
        "recovery: answer of another leader epoch dropped",
        "U3: it may still append; it is asked again",
        LogInfoDropped,
        lambda event: not event.other_registration,
    ),
    Situation("recovery: asked without an answer", "it is asked again", LogInfoUnanswered),
    Situation(
        "recovery: log end asked for by ListOffsets and Fetch",
        "the broker has no GetReplicaLogInfo",
        LogEndsAsked,
    ),
    Situation(
        "recovery: begun anew by another controller",
        "what the one before knew of it is forgotten",
        RecoveriesBegunAnew,
    ),
    Situation(
        "recovery: decided without all live replicas",
        "the time for answers that are not needed is over",
        RecoveryDecided,
        lambda event: bool(event.unheard),
    ),
)

_PARTITIONS: Final = (
    Situation(
        "partition: ISR empty with several eligible",
        "the first to return may lead",
        PartitionChanged,
        lambda event: not event.isr and len(event.elr) > 1,
    ),
    Situation(
        "partition: ISR too small, made up for by the ELR",
        "together they are min.insync.replicas",
        PartitionChanged,
        lambda event: bool(event.elr) and len(event.isr) < event.min_isr <= len({*event.isr, *event.elr}),
    ),
    Situation(
        "partition: ELR emptied by an ISR that is large enough",
        "the high watermark moves on without them",
        PartitionChanged,
        lambda event: (
            bool(event.elr_before)
            and not event.elr
            and len(event.isr) >= event.min_isr
            and len(event.isr) > len(event.isr_before)
        ),
    ),
    Situation(
        "partition: rest of the ELR kept at an election from it",
        "they have everything until records are committed again",
        PartitionChanged,
        lambda event: _elected(event) and event.leader in event.elr_before and not _apart(event.elr, event.elr_before),
    ),
    Situation(
        "partition: member of the ELR back in the ISR",
        "by fetching, or by being elected",
        PartitionChanged,
        lambda event: not _apart(event.isr, event.elr_before),
    ),
    Situation(
        "partition: member of the ELR moved to LastKnownElr",
        "its end was unclean",
        PartitionChanged,
        lambda event: not _apart(event.last_known_elr, event.elr_before),
    ),
    Situation(
        "partition: leader elected to succeed itself",
        "another epoch, the same leader",
        PartitionChanged,
        lambda event: _elected(event) and event.leader == event.leader_before,
    ),
    Situation(
        "partition: leader handed over to a member of the ISR",
        "a clean election with the old leader alive or not",
        PartitionChanged,
        lambda event: _elected(event) and event.leader != event.leader_before and event.leader in event.isr_before,
    ),
    Situation(
        "partition: recovery ended by its leader",
        "the first change of the ISR after an unclean election says so",
        PartitionChanged,
        lambda event: event.recovering_before and not event.recovering,
    ),
    Situation(
        "partition: member of ISR or ELR dropped by a reassignment",
        "it is no replica any more",
        PartitionChanged,
        lambda event: not {*event.isr_before, *event.elr_before} <= set(event.replicas),
    ),
    Situation(
        "partition: last member of the ISR kept without ELR",
        "eligible leader replicas are off: it alone may lead again",
        PartitionChanged,
        lambda event: not event.elr_enabled and event.leader < 0 and bool(event.isr),
    ),
)

CONTROLLER_SITUATIONS: Final = (*_REQUESTS, *_RECOVERIES, *_PARTITIONS)


def _elected(event: PartitionChanged) -> bool:
    return event.leader >= 0 and event.leader_epoch > event.leader_epoch_before


def _apart(some: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return set(some).isdisjoint(others)
