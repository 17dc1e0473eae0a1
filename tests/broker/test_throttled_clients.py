"""Who exceeds a quota learns how long to wait, and is not heard for so long; everybody else is (KIP-13, 124, 219)."""

from __future__ import annotations

import pytest

from tanist.sim.world.clock import SimClock
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.broker.cluster_rig import Cluster
from tests.broker.throttle_rig import BOUND, Caller, Sent, fetch_request, produce_request, set_quota

VERSIONS = (3, 8, 9, 10)


def one_node(partitions: int = 1) -> Cluster:
    cluster = Cluster(nodes=1, config={"min.insync.replicas": "1"})
    cluster.create_topic("t", partitions=partitions, factor=1)
    return cluster


def end_offset(cluster: Cluster) -> int:
    return cluster.hosted("t")[1].log.log_end_offset


def expected_ms(*sent: Sent) -> int:
    """The first samples of a rate, of which none is old."""
    rate = sum(each.size_bytes for each in sent) / 10
    return round((rate - BOUND) / BOUND * 10_000)


# -- Produce


@pytest.mark.parametrize("version", VERSIONS)
def test_a_producer_has_its_answer_and_is_then_not_heard(version: int) -> None:
    cluster = one_node()
    set_quota(cluster, {"client-id": "a"}, producer_byte_rate=BOUND)
    caller, other = Caller(cluster, "a"), Caller(cluster, "b")
    first = caller.ask(produce_request(9_000), version)
    assert first.throttle_ms == 0
    second = caller.ask(produce_request(9_000), version)
    assert abs(second.throttle_ms - expected_ms(first, second)) <= 20  # the window is longer by what has passed
    assert end_offset(cluster) == 2  # it is done, and then throttled
    third = caller.send(produce_request(10), version)
    cluster.run(second.throttle_ms - 500)
    assert not third.answered
    assert end_offset(cluster) == 2
    assert other.ask(produce_request(100_000), version).throttle_ms == 0
    cluster.until(lambda: third.answered)
    assert third.at_ms >= second.at_ms + second.throttle_ms - 100  # a little before the answer arrived
    assert end_offset(cluster) == 4


def test_a_default_is_a_rule_for_each_client_id() -> None:
    cluster = one_node()
    set_quota(cluster, {"client-id": None}, producer_byte_rate=BOUND)
    for client_id in ("a", "b"):
        caller = Caller(cluster, client_id)
        assert caller.ask(produce_request(9_000), 9).throttle_ms == 0
        assert caller.ask(produce_request(9_000), 9).throttle_ms > 5_000


def test_a_quota_of_a_user_is_for_all_its_clients() -> None:
    cluster = one_node()
    set_quota(cluster, {"user": "ANONYMOUS"}, producer_byte_rate=BOUND)
    assert Caller(cluster, "a").ask(produce_request(9_000), 9).throttle_ms == 0
    assert Caller(cluster, "b").ask(produce_request(9_000), 9).throttle_ms > 5_000


def test_another_users_quota_is_nobodys() -> None:
    cluster = one_node()
    set_quota(cluster, {"user": "alice"}, producer_byte_rate=1.0)
    assert Caller(cluster, "a").ask(produce_request(100_000), 9).throttle_ms == 0


def test_without_acknowledgements_there_is_no_word_but_the_pause() -> None:
    cluster = one_node()
    set_quota(cluster, {"client-id": "a"}, producer_byte_rate=BOUND)
    caller = Caller(cluster, "a")
    caller.send(produce_request(20_000, acks=0), 9)
    cluster.until(lambda: end_offset(cluster) == 1)
    caller.send(produce_request(10, acks=0), 9)
    cluster.run(9_000)
    assert end_offset(cluster) == 1
    cluster.until(lambda: end_offset(cluster) == 2)


def test_a_producer_that_waits_for_replicas() -> None:
    cluster = Cluster()
    cluster.create_topic("t")
    leader = cluster.leader("t") or 1
    set_quota(cluster, {"client-id": "a"}, producer_byte_rate=BOUND)
    sent = Caller(cluster, "a").ask(produce_request(20_000, acks=-1), 9, to=leader)
    assert sent.response.responses[0].partition_responses[0].error_code == 0
    assert sent.throttle_ms == expected_ms(sent)


def test_a_refused_producer_is_counted() -> None:
    cluster = one_node()
    set_quota(cluster, {"client-id": "a"}, producer_byte_rate=BOUND)
    sent = Caller(cluster, "a").ask(produce_request(20_000, acks=5), 9)
    assert sent.response.responses[0].partition_responses[0].error_code == 21
    assert sent.throttle_ms == expected_ms(sent)


def test_a_quota_that_goes_leaves_no_trace() -> None:
    cluster = one_node()
    set_quota(cluster, {"client-id": "a"}, producer_byte_rate=BOUND)
    caller = Caller(cluster, "a")
    assert caller.ask(produce_request(20_000), 9).throttle_ms > 5_000
    set_quota(cluster, {"client-id": "a"}, producer_byte_rate=None)
    throttles = cluster.node(1).components.client_throttles
    assert throttles.for_produce is throttles.for_fetch is None
    sent = caller.ask(produce_request(20_000), 9)  # the pause that has begun goes on to its end
    assert sent.throttle_ms == 0
    assert throttles.throttled["Produce"] == 1


# -- Fetch


@pytest.mark.parametrize("version", [4, 7, 11, 12])
def test_a_consumer_gets_nothing_but_when_to_come_again(version: int) -> None:
    cluster = one_node()
    for _ in range(3):
        assert cluster.produce("t", [bytes(8_000)]).error_code == 0
    set_quota(cluster, {"client-id": "a"}, consumer_byte_rate=BOUND)
    caller, other = Caller(cluster, "a"), Caller(cluster, "b")
    first = caller.ask(fetch_request(0), version)
    assert 8_000 < first.records_bytes < 9_000  # not all of the 24,000: more than 10,000 would never come
    assert first.throttle_ms == 0
    second = caller.ask(fetch_request(1), version)
    assert second.records_bytes == 0
    assert 5_000 < second.throttle_ms < 7_000
    third = caller.send(fetch_request(1), version)
    cluster.run(second.throttle_ms - 500)
    assert not third.answered
    assert other.ask(fetch_request(1), version).records_bytes > 16_000
    cluster.until(lambda: third.answered)
    # The first ten seconds count as ten, so it has to wait as long again; what was not given is not counted.
    assert third.records_bytes == 0
    assert 5_000 < third.throttle_ms <= second.throttle_ms
    fourth = caller.ask(fetch_request(1), version)
    assert fourth.throttle_ms == 0
    assert fourth.records_bytes > 8_000


def test_a_consumer_that_waits_is_throttled_when_something_comes() -> None:
    cluster = one_node()
    set_quota(cluster, {"client-id": "a"}, consumer_byte_rate=BOUND)
    caller = Caller(cluster, "a")
    waiting = caller.send(fetch_request(0, max_wait_ms=60_000), 12)
    cluster.run(500)
    assert not waiting.answered
    assert cluster.produce("t", [bytes(30_000)]).error_code == 0
    cluster.until(lambda: waiting.answered)
    assert waiting.records_bytes == 0
    assert waiting.throttle_ms > 15_000


def test_a_consumer_does_not_wait_for_more_than_it_may_have() -> None:
    cluster = one_node()
    set_quota(cluster, {"client-id": "a"}, consumer_byte_rate=BOUND)
    assert cluster.produce("t", [bytes(5_000)]).error_code == 0
    waiting = Caller(cluster, "a").send(fetch_request(0, max_wait_ms=600_000, min_bytes=1 << 20), 12)
    cluster.run(500)
    assert not waiting.answered
    assert cluster.produce("t", [bytes(5_500)]).error_code == 0
    cluster.until(lambda: waiting.answered, within_ms=2_000)


def test_sessions_go_on_after_a_pause() -> None:
    cluster = one_node(partitions=10)
    for partition in range(10):
        assert cluster.produce("t", [bytes(1_500)], partition=partition).error_code == 0
    caller = Caller(cluster, "a")
    known = caller.ask(fetch_request(1, partitions=range(10), session_epoch=0), 12)
    session_id = known.response.session_id
    assert session_id > 0
    set_quota(cluster, {"client-id": "a"}, consumer_byte_rate=100.0)
    sessions = cluster.node(1).components.fetch_sessions
    throttled = caller.ask(fetch_request(0, partitions=range(4), session_id=session_id, session_epoch=1), 12)
    assert throttled.throttle_ms > 0
    assert (throttled.response.session_id, throttled.response.error_code) == (session_id, 0)
    assert throttled.response.responses == ()
    again = caller.ask(fetch_request(0, partitions=(), session_id=session_id, session_epoch=2), 12)
    assert again.response.error_code == 0
    # A new session of which its client has not heard is none.
    fresh = caller.ask(fetch_request(0, partitions=range(10), session_epoch=0), 12)
    assert fresh.throttle_ms > 0
    assert fresh.response.session_id == 0
    assert len(sessions) == 1


def test_followers_have_no_quota() -> None:
    cluster = Cluster()
    cluster.create_topic("t")
    set_quota(cluster, {"client-id": None}, consumer_byte_rate=1.0, request_percentage=0.001)
    set_quota(cluster, {"user": None}, consumer_byte_rate=1.0)
    leader = cluster.leader("t") or 1
    for _ in range(3):
        sent = Caller(cluster, "a").ask(produce_request(50_000, acks=-1), 9, to=leader)
        assert sent.response.responses[0].partition_responses[0].error_code == 0


# -- time


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock finds it ten milliseconds later: a request takes some."""
    looks = iter(range(0, 10**13, 10_000_000))
    monkeypatch.setattr(SimClock, "now_ns", lambda _: next(looks) + 1)


@pytest.mark.usefixtures("busy")
def test_requests_that_take_time_are_throttled_for_a_second_at_most() -> None:
    cluster = one_node()
    set_quota(cluster, {"client-id": "a"}, request_percentage=0.01)  # 1 ms in the ten seconds that count at first
    caller, other = Caller(cluster, "a"), Caller(cluster, "b")
    by_name, everything = MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), MetadataRequest(topics=None)
    for request in (by_name, everything):
        sent = caller.ask(request, 9)
        assert sent.throttle_ms == 1_000
        assert sent.response.topics[0].name == "t"
        began_ms = cluster.world.now_ms
        again = caller.ask(request, 9)
        assert again.at_ms >= began_ms + 900
        assert other.ask(request, 9).throttle_ms == 0
    throttles = cluster.node(1).components.client_throttles
    assert throttles.throttled["Request"] == 4
    assert throttles.throttled_ms["Request"] == 4_000


@pytest.mark.usefixtures("busy")
def test_time_counts_for_produce_and_fetch() -> None:
    cluster = one_node()
    assert cluster.produce("t", [bytes(1_000)]).error_code == 0
    set_quota(cluster, {"client-id": "a"}, request_percentage=0.01)
    caller = Caller(cluster, "a")
    assert caller.ask(produce_request(10), 9).throttle_ms == 1_000
    fetched = caller.ask(fetch_request(0), 12)
    assert fetched.throttle_ms == 1_000
    assert fetched.records_bytes == 0
    # Without acknowledgements only bytes count.
    free = Caller(cluster, "c")
    set_quota(cluster, {"client-id": "c"}, request_percentage=0.01)
    before = end_offset(cluster)
    free.send(produce_request(10, acks=0), 9)
    free.send(produce_request(10, acks=0), 9)
    cluster.run(500)
    assert end_offset(cluster) == before + 2


@pytest.mark.usefixtures("busy")
def test_the_time_of_others_and_of_nodes_is_free() -> None:
    cluster = Cluster()
    set_quota(cluster, {"client-id": None}, request_percentage=0.01)
    cluster.create_topic("t")  # forwarded, replicated, led: heartbeats and the rest are not held up
    cluster.run(20_000)
    assert all(node.lifecycle.state.value == "RUNNING" for node in cluster.world.nodes())
