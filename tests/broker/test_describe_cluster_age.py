"""How old a broker's metadata is, as it says itself when it hears from no active controller."""

from __future__ import annotations

from tanist.sim.world.world import CONTROLLER_PORT
from tanist.wire.ids import KNOWS_NOTHING_MS
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tests.broker.cluster_rig import Cluster


def age_ms(cluster: Cluster, node_id: int) -> int:
    age: int = cluster.ask(DescribeClusterRequest(), 2, to=node_id).metadata_age_ms
    return age


def test_what_is_current_has_no_age() -> None:
    cluster = Cluster()
    cluster.run(20_000)
    assert [age_ms(cluster, node_id) for node_id in (1, 2, 3)] == [-1, -1, -1]


def test_without_a_quorum_it_grows_and_with_one_it_ends() -> None:
    cluster = Cluster()
    left = next(node_id for node_id in (1, 2, 3) if node_id != cluster.controller())
    for other in {1, 2, 3} - {left}:
        cluster.host(other).kill()
    cluster.run(5_000)
    first = age_ms(cluster, left)
    assert 4_000 <= first <= 7_000
    cluster.run(10_000)
    assert first + 10_000 <= age_ms(cluster, left) <= first + 10_100
    for other in {1, 2, 3} - {left}:
        cluster.host(other).start()
    cluster.until(lambda: age_ms(cluster, left) == -1)


def test_a_leader_without_followers_comes_to_know_it() -> None:
    cluster = Cluster()
    alone = cluster.controller()
    for other in {1, 2, 3} - {alone}:
        cluster.host(other).kill()
    cluster.until(lambda: age_ms(cluster, alone) >= 0, within_ms=10_000)


def test_a_former_controller_is_as_old_as_its_own_leadership() -> None:
    """It has heard from no other controller since it was elected, and it was one itself until a moment ago."""
    cluster = Cluster()
    first = cluster.controller()
    cluster.host(first).kill()
    others = [cluster.node(node_id) for node_id in (1, 2, 3) if node_id != first]
    cluster.until(lambda: any(node.quorum.raft.is_leader for node in others))
    alone = cluster.controller()
    cluster.host(first).start()
    cluster.run(60_000)  # it leads
    cluster.cut(alone, *{1, 2, 3} - {alone})
    cluster.until(lambda: age_ms(cluster, alone) >= 0, within_ms=10_000)
    assert age_ms(cluster, alone) <= 1_000
    cluster.run(10_000)
    assert 10_000 <= age_ms(cluster, alone) <= 11_100


def test_who_is_cut_off_says_so_and_the_others_do_not() -> None:
    cluster = Cluster()
    apart = next(node_id for node_id in (1, 2, 3) if node_id != cluster.controller())
    cluster.cut(apart, *{1, 2, 3} - {apart})
    cluster.run(10_000)
    assert age_ms(cluster, apart) >= 8_000
    assert [age_ms(cluster, other) for other in sorted({1, 2, 3} - {apart})] == [-1, -1]


def test_a_node_that_starts_alone_knows_nothing() -> None:
    cluster = Cluster()
    leader = cluster.controller()
    for node_id in (1, 2, 3):
        cluster.host(node_id).kill()
    cluster.run(60_000)
    follower = next(node_id for node_id in (1, 2, 3) if node_id != leader)
    cluster.host(follower).start()  # its quorum-state names the leader that it had
    cluster.until(lambda: cluster.host(follower).node is not None)
    quorum = cluster.node(follower).quorum
    assert quorum.silence_ms == KNOWS_NOTHING_MS  # from the start, though it has just read who led
    cluster.run(5_000)
    assert quorum.silence_ms == KNOWS_NOTHING_MS
    asked = cluster.ask(DescribeClusterRequest(endpoint_type=2), 2, to=follower, port=CONTROLLER_PORT)
    assert asked.metadata_age_ms == KNOWS_NOTHING_MS


def test_a_broker_that_remembers_its_controller_is_not_deceived() -> None:
    """A node that has no vote keeps its leader in mind, however long that one has been silent."""
    cluster = Cluster(roles={1: "controller", 2: "broker", 3: "broker"})
    broker = cluster.node(2)
    assert broker.quorum.silence_ms is None
    cluster.cut(1, 2)
    cluster.run(10_000)
    assert broker.quorum.silence_ms is not None
    assert 9_000 <= broker.quorum.silence_ms <= 11_000
