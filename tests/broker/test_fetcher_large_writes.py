"""A follower that writes a large append off its loop goes on with its other partitions meanwhile."""

from __future__ import annotations

import pytest

from tanist.broker.replication.fetcher import Fetcher
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.cluster_rig import Cluster
from tests.log.log_disks import LateWrites

LARGE = 2_000
FOLLOWERS = (2, 3)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def held(cluster: Cluster) -> LateWrites:
    """The large writes of the followers."""
    held = LateWrites()
    for node_id in FOLLOWERS:
        node = cluster.node(node_id)
        cluster.host(node_id).disk.large_write_bytes = node.components.turn.large_bytes = LARGE
        node.context.disk.write_later = held.write_later  # type: ignore[method-assign]
    for topic in ("large", "small"):
        cluster.create_topic(topic, assignment=[[1, 2, 3]])
    cluster.until(lambda: len(cluster.hosted("small")) == 3 == len(cluster.hosted("large")))
    cluster.run(2_000)
    return held


def produce(cluster: Cluster, sizes: dict[str, int]) -> None:
    """One request with a record for each topic, of so many bytes, that waits for the leader only."""
    wall_ms = cluster.client.clock.wall_ms()
    topics = tuple(
        TopicProduceData(
            name=topic,
            partition_data=(
                PartitionProduceData(
                    index=0, records=bytes(encode_batch([NewRecord(timestamp=wall_ms, key=None, value=b"v" * size)]))
                ),
            ),
        )
        for topic, size in sizes.items()
    )
    response = cluster.ask(ProduceRequest(acks=1, timeout_ms=1_000, topic_data=topics), 9)
    assert not any(part.error_code for topic in response.responses for part in topic.partition_responses)


def committed(cluster: Cluster, topic: str) -> int:
    leader = cluster.hosted(topic)[1].leader
    assert leader is not None
    return leader.high_watermark


def fetcher(cluster: Cluster, node_id: int) -> Fetcher:
    return cluster.node(node_id).components.fetchers._by_leader[1]


def test_small_appends_are_acknowledged_while_large_ones_are_written(cluster: Cluster, held: LateWrites) -> None:
    produce(cluster, {"large": 3 * LARGE, "small": 10})
    cluster.run(1_000)
    assert len(held.late_writes) == len(FOLLOWERS)
    assert (committed(cluster, "large"), committed(cluster, "small")) == (0, 1)
    assert [cluster.hosted("large")[node_id].log.written_end_offset for node_id in FOLLOWERS] == [0, 0]
    held.end_writes()
    cluster.run(100)
    assert (committed(cluster, "large"), committed(cluster, "small")) == (1, 1)


def test_the_session_goes_on(cluster: Cluster, held: LateWrites) -> None:
    before = [fetcher(cluster, node_id)._session for node_id in FOLLOWERS]
    for number in range(1, 6):
        produce(cluster, {"large": 3 * LARGE, "small": 10})
        cluster.run(100)
        held.end_writes()
        cluster.run(100)
        assert (committed(cluster, "large"), committed(cluster, "small")) == (number, number)
    assert all(session.id for session in before)
    assert [fetcher(cluster, node_id)._session for node_id in FOLLOWERS] == before


def test_a_large_append_alone_does_not_keep_others_from_being_followed_after(
    cluster: Cluster, held: LateWrites
) -> None:
    produce(cluster, {"large": 3 * LARGE})
    cluster.run(100)
    produce(cluster, {"small": 10})
    cluster.run(100)
    assert (committed(cluster, "large"), committed(cluster, "small")) == (0, 0)
    held.end_writes()
    cluster.run(100)
    assert (committed(cluster, "large"), committed(cluster, "small")) == (1, 1)


def test_a_partition_that_is_being_written_is_not_asked_for_whatever_wakes_the_fetcher(
    cluster: Cluster, held: LateWrites
) -> None:
    produce(cluster, {"large": 3 * LARGE, "small": 10})
    cluster.run(100)
    for node_id in FOLLOWERS:
        cluster.node(node_id).components.fetchers.resume(cluster.hosted("small")[node_id])
    cluster.run(1_000)
    assert committed(cluster, "large") == 0
    assert len(held.late_writes) == len(FOLLOWERS)
    held.end_writes()
    cluster.run(100)
    assert committed(cluster, "large") == 1


def test_followers_stay_in_sync_while_a_large_write_takes_long(cluster: Cluster, held: LateWrites) -> None:
    produce(cluster, {"large": 3 * LARGE, "small": 10})
    cluster.run(20_000)
    held.end_writes()
    cluster.run(1_000)
    leader = cluster.hosted("large")[1].leader
    assert leader is not None
    assert set(leader.isr) == {1, 2, 3}
    assert committed(cluster, "large") == 1


def test_a_large_append_is_acknowledged_as_soon_as_it_is_written(cluster: Cluster, held: LateWrites) -> None:
    produce(cluster, {"large": 3 * LARGE})
    cluster.run(100)
    held.end_writes()
    cluster.run(20)
    assert committed(cluster, "large") == 1
