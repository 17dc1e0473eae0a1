"""Questions about many partitions, one request for each leader: offsets, and where leader epochs end.

Owns ListOffsets and OffsetForLeaderEpoch of a query's planner. A stream asks the first at every trigger, so that it
must cost one exchange, whatever the number of partitions; it must never fetch records to learn where a log ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tanist.client import positions
from tanist.client.positions import list_offsets_request
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.wire.messages.list_offsets_response import ListOffsetsResponse
from tanist.wire.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse

UNKNOWN = -1
_REQUEST_TIMEOUT_MS = 10_000


@dataclass(frozen=True)
class OffsetAndEpoch:
    """An offset, and a leader epoch that no record below it exceeds."""

    offset: int
    epoch: int


Answers = Iterable[tuple[TopicPartition, int, OffsetAndEpoch]]
"""For each partition an error code, and the offset."""


def list_offsets(
    client: Client, wanted: Mapping[TopicPartition, int], *, committed: bool = False
) -> dict[TopicPartition, OffsetAndEpoch]:
    """For each partition, the offset of a timestamp, `EARLIEST` or `LATEST`; -1 if all records are older.

    `committed`: the latest is where the first transaction that is still open begins.
    """

    def ask(leader: int, partitions: list[TopicPartition]) -> Answers:
        request = list_offsets_request(
            {where: wanted[where] for where in partitions}, read_committed=committed, timeout_ms=_REQUEST_TIMEOUT_MS
        )
        answer = client.ask(request, ListOffsetsResponse, node_id=leader)
        for topic in answer.topics:
            for each in topic.partitions:
                yield (
                    (topic.name, each.partition_index),
                    each.error_code,
                    OffsetAndEpoch(each.offset, each.leader_epoch),
                )

    return _of_leaders(client, wanted, ask)


def epoch_ends(client: Client, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndEpoch]:
    """For each partition, the largest epoch of its leader's log that is not above this one, and the offset where it
    ends there (KIP-320). `UNKNOWN` if the log has no such epoch.
    """

    def ask(leader: int, partitions: list[TopicPartition]) -> Answers:
        request = positions.epoch_ends_request({where: epochs[where] for where in partitions})
        answer = client.ask(request, OffsetForLeaderEpochResponse, node_id=leader)
        for topic in answer.topics:
            for each in topic.partitions:
                yield (topic.topic, each.partition), each.error_code, OffsetAndEpoch(each.end_offset, each.leader_epoch)

    return _of_leaders(client, epochs, ask)


def offset_at(client: Client, where: TopicPartition, timestamp: int, *, committed: bool = False) -> int:
    """Of one partition."""
    return list_offsets(client, {where: timestamp}, committed=committed)[where].offset


def by_leader(client: Client, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """The partitions to ask of each leader. Raises `KafkaError` for a partition without a leader."""
    listed = sorted(partitions)
    topics = {topic for topic, _ in listed}
    if not topics <= client.view.topics.keys():
        # An answer replaces the client's view: all at once, or the topics would drive out each other.
        client.metadata(topics)
    partitions_led: dict[int, list[TopicPartition]] = {}
    for topic, partition in listed:
        partitions_led.setdefault(client.leader_of(topic, partition), []).append((topic, partition))
    return partitions_led


def _of_leaders(
    client: Client, wanted: Iterable[TopicPartition], ask: Callable[[int, list[TopicPartition]], Answers]
) -> dict[TopicPartition, OffsetAndEpoch]:
    done: dict[TopicPartition, OffsetAndEpoch] = {}
    everything = set(wanted)

    def attempt() -> dict[TopicPartition, OffsetAndEpoch]:
        trouble: KafkaError | None = None
        for leader, partitions in by_leader(client, everything - done.keys()).items():
            try:
                answers = list(ask(leader, partitions))
            except Unreachable:
                for topic, _ in partitions:
                    client.forget(topic)
                raise
            for (topic, partition), code, offset in answers:
                if code:
                    client.forget(topic)
                    trouble = KafkaError(code, f"{topic}-{partition}")
                else:
                    done[topic, partition] = offset
        if trouble is not None:
            raise trouble
        return done

    return client.persist(attempt)
