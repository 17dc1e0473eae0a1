"""The operator's lines of `events.metadata`. What is committed has none, but for an unclean election: it is many a
second in a large cluster, and `tanist events` shows it."""

from __future__ import annotations

from tanist.events.metadata import (
    BrokerGone,
    ControllerActivated,
    ControllerResigned,
    FeatureLeftOut,
    FencingLearned,
    ForwardingRefused,
    InternalTopicNotCreated,
    LogInfoUnanswered,
    LogInfoUnsupported,
    MetadataLogMissing,
    QuorumStateMissing,
    RegistrationAccepted,
    RegistrationLost,
    UncleanElection,
    UnfencingLearned,
)
from tanist.events.text.line import Line, Lines, and_more
from tanist.text import counted


def _unclean_election(event: UncleanElection) -> Line:
    reasons = []
    if event.asked_for:
        by = f": {event.asked_by}" if event.asked_by else ""
        reasons.append(f"an operator asked for {event.asked_for}{by}")
    if event.strategy:
        logs = ", ".join(f"{broker_id}: epoch {epoch} end {end}" for broker_id, epoch, end in event.logs)
        reasons.append(f"{event.strategy} unclean recovery compared the logs of {{{logs}}}")
    why = "; ".join(reasons) or "nobody eligible is left"
    return (
        "WARN",
        f"POSSIBLE DATA LOSS: {event.partition} is led by {event.leader} from leader epoch {event.leader_epoch} on, "
        f"by an unclean election; committed records that it lacks are lost ({why})",
    )


def _controller_activated(event: ControllerActivated) -> Line:
    return "INFO", f"controller {event.node_id} is active in epoch {event.epoch}"


def _controller_resigned(event: ControllerResigned) -> Line:
    return "INFO", f"controller {event.node_id} resigns epoch {event.epoch}"


def _broker_gone(event: BrokerGone) -> Line:
    return "WARN", f"broker {event.broker_id} is gone (connection refused): fenced"


def _log_info_unanswered(event: LogInfoUnanswered) -> Line | None:
    """One line when a broker begins to be silent about its logs, however often it is asked."""
    if event.again:
        return None
    return (
        "WARN",
        f"broker {event.broker_id} does not say where its logs end, for the unclean recovery of "
        f"{counted(event.partitions, 'partition')}: it is asked again, less and less often",
    )


def _log_info_unsupported(event: LogInfoUnsupported) -> Line:
    return (
        "INFO",
        f"broker {event.broker_id} does not have GetReplicaLogInfo: it is asked for the ends of its logs by "
        "ListOffsets and Fetch",
    )


def _registration_accepted(event: RegistrationAccepted) -> Line:
    return "INFO", f"registered broker {event.broker_id} with epoch {event.broker_epoch}"


def _registration_lost(event: RegistrationLost) -> Line:
    return "WARN", f"broker {event.broker_id}: epoch {event.broker_epoch} is stale, registering anew"


def _unfencing_learned(event: UnfencingLearned) -> Line:
    return "INFO", f"broker {event.broker_id} is unfenced"


def _fencing_learned(event: FencingLearned) -> Line:
    return "WARN", f"broker {event.broker_id} was fenced"


def _forwarding_refused(event: ForwardingRefused) -> Line:
    return "WARN", f"the controller refuses a forwarded request: {event.error}"


def _internal_topic_not_created(event: InternalTopicNotCreated) -> Line:
    more = and_more(event.left_out)
    return "WARN", f"{event.topic} can't be created: {event.error or 'no controller answers'}{more}"


def _feature_left_out(event: FeatureLeftOut) -> Line:
    return "WARN", f"{event.path}: {event.feature} {event.level} is left out; tanist does not have it"


def _quorum_state_missing(event: QuorumStateMissing) -> Line:
    return "WARN", f"{event.path} is gone: a vote that this node has given may be given again"


def _metadata_log_missing(event: MetadataLogMissing) -> Line:
    return "WARN", f"{event.path} is gone, and records of it that this node has confirmed: it begins without any"


LINES: Lines = {
    UncleanElection: _unclean_election,
    ControllerActivated: _controller_activated,
    ControllerResigned: _controller_resigned,
    BrokerGone: _broker_gone,
    LogInfoUnanswered: _log_info_unanswered,
    LogInfoUnsupported: _log_info_unsupported,
    RegistrationAccepted: _registration_accepted,
    RegistrationLost: _registration_lost,
    UnfencingLearned: _unfencing_learned,
    FencingLearned: _fencing_learned,
    ForwardingRefused: _forwarding_refused,
    InternalTopicNotCreated: _internal_topic_not_created,
    FeatureLeftOut: _feature_left_out,
    QuorumStateMissing: _quorum_state_missing,
    MetadataLogMissing: _metadata_log_missing,
}
