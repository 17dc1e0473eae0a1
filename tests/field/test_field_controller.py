"""Bugs of the active controller: requests and clocks that take it down, or have it fence who lives."""

from __future__ import annotations

from tanist.broker.metadata.controller_service import ControllerService
from tanist.events.metadata import ControllerResigned
from tanist.lab.mutations.patching import Patch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.broker.cluster_rig import Cluster
from tests.field.catalogue import bug

MANY_THROTTLED = ",".join(["0:1"] * 8_000)
"""A value of 32 KB, which is allowed."""


def _too_large_is_unexpected() -> tuple[Patch, ...]:
    def resigns(service: ControllerService, *_: object) -> None:
        service.stepped_down(service._metadata.image.copy())
        service._quorum.resign()

    return (Patch(ControllerService, "_refuse_too_large", resigns),)


@bug("KAFKA-14996, AutoMQ #2057", planted=_too_large_is_unexpected, was_here=True)
def test_a_request_that_is_too_large_for_a_batch_does_not_end_a_controller() -> None:
    """A request whose records did not fit into one batch of the metadata log made the active controller resign, and
    when the client asked again the next one.
    """
    cluster = Cluster()
    topics = tuple(
        CreatableTopic(
            name=f"t{number}",
            num_partitions=1,
            replication_factor=1,
            configs=tuple(
                CreatableTopicConfig(name=f"{side}.replication.throttled.replicas", value=MANY_THROTTLED)
                for side in ("leader", "follower")
            ),
        )
        for number in range(140)
    )
    answer = cluster.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
    assert cluster.seen(ControllerResigned) == []
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.POLICY_VIOLATION}
    half = CreateTopicsRequest(topics=topics[:70], timeout_ms=10_000)
    assert {topic.error_code for topic in cluster.ask(half, 7).topics} == {0}
