"""A directory of a follower fails while its fetcher looks at what to ask for next."""

from __future__ import annotations

import errno

import pytest

from tanist.broker.replication.fetcher import Fetcher
from tests.broker.cluster_rig import Cluster

FOLLOWER = 2
TOPICS = tuple(f"t{number}" for number in range(6))


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(config={"log.dirs": "/data/1,/data/2"})
    for topic in TOPICS:
        cluster.create_topic(topic, assignment=[[1, 2, 3]])
    cluster.until(lambda: all(len(cluster.hosted(topic)) == 3 for topic in TOPICS))
    cluster.run(2_000)
    return cluster


def fetcher(cluster: Cluster) -> Fetcher:
    return cluster.node(FOLLOWER).components.fetchers._by_leader[1]


def asked(cluster: Cluster) -> set[str]:
    """The topics that the leader takes to be followed."""
    names = cluster.node(FOLLOWER).metadata.image.topics
    return {names[topic_id].name for topic_id, _ in fetcher(cluster)._session.asked}


@pytest.mark.parametrize("anew", [False, True])
def test_what_a_look_takes_offline_is_not_asked_for_any_more(cluster: Cluster, *, anew: bool) -> None:
    """`anew`: the look is for a full request, of all partitions: others of the directory are looked at before."""
    node = cluster.node(FOLLOWER)
    assert asked(cluster) == set(TOPICS)
    failed = max(node.replicas, key=lambda hosted: hosted.topic)
    gone = {hosted.topic for hosted in node.replicas if hosted.directory is failed.directory}
    left = set(TOPICS) - gone
    assert len(gone) > 1
    assert left
    cluster.host(FOLLOWER).disk.failing.append(failed.directory.path)
    failed.log._appender.failed = OSError(errno.EIO, "Input/output error")  # the next caller meets it
    if anew:
        fetcher(cluster)._begin_anew()
    node.components.fetchers.resume(failed)
    cluster.until(lambda: {hosted.topic for hosted in node.replicas} == left)
    cluster.run(1_000)
    assert asked(cluster) == left
    for topic in sorted(left):
        assert cluster.produce(topic, [b"value"], acks=1).error_code == 0
    cluster.run(1_000)
    assert {cluster.hosted(topic)[FOLLOWER].log.log_end_offset for topic in left} == {1}
