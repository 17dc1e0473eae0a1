"""What a Streams group's member hears of the group beside its tasks (KIP-1071), in Apache Kafka's words."""

from __future__ import annotations

from collections.abc import Sequence

from tanist.coordinator.streams.topology import StatusCode
from tanist.wire.messages.streams_group_heartbeat_response import Status
from tanist.wire.streams_group_records import StreamsMemberValue


def shutdown(member_id: str) -> Status:
    """A member wants all to shut down."""
    detail = f"Streams group member {member_id} encountered a fatal error and requested a shutdown for the entire "
    return Status(status_code=StatusCode.SHUTDOWN_APPLICATION, status_detail=f"{detail}application.")


def stale_topology(member_epoch: int, group_epoch: int) -> list[Status]:
    """A member whose topology is older than the group's has no tasks."""
    if member_epoch >= group_epoch:
        return []
    detail = f"The member's topology epoch {member_epoch} is behind the group's topology epoch {group_epoch}."
    return [Status(status_code=StatusCode.STALE_TOPOLOGY, status_detail=detail)]


def missing_tags(member: StreamsMemberValue, tags: Sequence[str]) -> list[Status]:
    """A member lacks tags by which standbys are spread. Apache Kafka 4.4 does no more with the tags than that."""
    has = {each.key for each in member.client_tags}
    missing = [tag for tag in tags if tag not in has]
    if not missing:
        return []
    detail = (
        f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. Configure them via "
        "'client.tag.<tagKey>' in your Streams config."
    )
    return [Status(status_code=StatusCode.MISSING_CLIENT_TAGS, status_detail=detail)]


def delayed(cause: str) -> Status:
    """The assignment waits, because of this setting."""
    detail = f"Assignment delayed due to the configured {cause}."
    return Status(status_code=StatusCode.ASSIGNMENT_DELAYED, status_detail=detail)
