"""Committed offsets: the requests of a group's members, and of those who are none, and what is in the answers.

The requests have the fields of all versions up to `VERSION_MAX`: those for one group, and those for several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tanist.client.topic_partition import TopicPartition
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tanist.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

VERSION_MAX: Final = 9
"""Of both requests: later ones name a topic by its id."""
NO_EPOCH: Final = -1


def offset_fetch(
    group: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    member_id: str | None = None,
    epoch: int = NO_EPOCH,
    require_stable: bool = False,
) -> OffsetFetchRequest:
    """The group's offsets of these partitions, or of all that it has.

    `require_stable`: only when no transaction is open that may change them (KIP-447).
    """
    wanted = None if partitions is None else indexes_by_topic(partitions)
    one, several = None, None
    if wanted is not None:
        one = tuple(OffsetFetchRequestTopic(name=name, partition_indexes=tuple(wanted[name])) for name in wanted)
        several = tuple(OffsetFetchRequestTopics(name=name, partition_indexes=tuple(wanted[name])) for name in wanted)
    asked = OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=epoch, topics=several)
    return OffsetFetchRequest(group_id=group, topics=one, groups=(asked,), require_stable=require_stable)


def offsets_in(answer: Any) -> dict[TopicPartition, tuple[int, str]]:
    """Offset and metadata of each partition in an answer, -1 where nothing is committed. Those with errors are not."""
    (found,) = answer.groups or (answer,)
    return {
        (topic.name, each.partition_index): (each.committed_offset, each.metadata or "")
        for topic in found.topics
        for each in topic.partitions
        if not each.error_code
    }


def offset_commit(
    group: str,
    offsets: Mapping[TopicPartition, int],
    *,
    member_id: str = "",
    epoch: int = NO_EPOCH,
    metadata: str = "",
) -> OffsetCommitRequest:
    """As a member in its epoch (or generation), or from outside."""
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offsets[topic, index], committed_metadata=metadata
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in indexes_by_topic(offsets).items()
        ),
    )
