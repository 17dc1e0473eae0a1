"""Bugs of the active controller: requests and clocks that take it down, or have it fence who lives."""

from __future__ import annotations

from tanist.broker.metadata.controller_service import ControllerService
from tanist.controller.controller import Controller
from tanist.controller.heartbeats import HeartbeatTable
from tanist.events.metadata import ControllerResigned
from tanist.lab.mutations.patching import Patch, always, fixed
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.broker.cluster_rig import Cluster
from tests.controller import controller_double
from tests.field.catalogue import BOTH_HAVE_IT, bug

MANY_THROTTLED = ",".join(["0:1"] * 8_000)
"""A value of 32 KB, which is allowed."""


def _too_large_is_unexpected() -> tuple[Patch, ...]:
    def resigns(service: ControllerService, *_: object) -> None:
        service.stepped_down(service._metadata.image.copy())
        service._quorum.resign()

    return (Patch(ControllerService, "_refuse_too_large", resigns),)


@bug(
    "KAFKA-14996, AutoMQ #2057",
    planted=_too_large_is_unexpected,
    apache="has it for 8 MB; mended for 10,000 records",
    was_here=True,
    shown=BOTH_HAVE_IT,
)
def test_a_request_that_is_too_large_for_a_batch_does_not_end_a_controller() -> None:
    """A request whose records did not fit into one metadata batch made the active controller resign, and then the next
    one.
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


@bug("KAFKA-15019", planted=fixed(Controller, "contact", always(None)))
def test_a_heartbeat_that_waits_to_be_handled_counts() -> None:
    """An overloaded controller timed heartbeats out in its queue, and fenced brokers that were alive."""
    cluster = controller_double.Cluster()
    cluster.start(1)
    epoch = cluster.image.brokers[1].epoch
    for _ in range(30):
        cluster.now_ms += 1_000
        cluster.controller.contact(1, epoch, cluster.now_ms)  # it has arrived, and nobody has handled it
        cluster.commit(cluster.controller.tick(cluster.now_ms, len(cluster.log)))
    assert not cluster.image.brokers[1].fenced


@bug("etcd #15247, KAFKA-17793", planted=fixed(HeartbeatTable, "overslept", always(None)))
def test_a_controller_that_stood_still_fences_nobody_for_it() -> None:
    """A leader that had been stuck ended all leases at once, as none had been renewed."""
    cluster = controller_double.Cluster()
    cluster.start(1, 2, 3)
    cluster.advance(4_000, beating=(1, 2, 3))
    cluster.now_ms += 120_000
    cluster.commit(cluster.controller.tick(cluster.now_ms, len(cluster.log)))
    assert not any(broker.fenced for broker in cluster.image.brokers.values())
