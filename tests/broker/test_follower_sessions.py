"""Fetch sessions of followers: what is idle is not looked at, nothing that a follower must know is left out, and a
session that has lost step begins anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tanist.broker.replication.fetch_reads import PartitionReads
from tanist.broker.replication.fetcher_session import Asked, FetcherSession
from tanist.broker.replication.follower_sessions import FollowedPartition, FollowerSession, FollowerSessions
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.replica.follower import FetchPosition, FollowerState
from tanist.replica.leader import LeaderState
from tanist.wire.errors import ErrorCode
from tanist.wire.fetch import FetchCall, FetchedPartition, FetchTarget
from tanist.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest
from tests.broker.cluster_rig import Cluster

PARTITIONS = 12
LAG_MS = 30_000


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes, and a topic that nobody has written to for a while."""
    cluster = Cluster()
    cluster.create_topic("t", partitions=PARTITIONS)
    cluster.run(5_000)
    return cluster


@contextmanager
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """(leader, partition) of each read for a follower while it lasts."""
    found: list[tuple[int, int]] = []
    read = PartitionReads.for_follower

    def counted(reads: Any, hosted: HostedPartition, *rest: Any) -> Any:
        if hosted.topic == "t":
            assert hosted.leader is not None
            found.append((hosted.leader.broker_id, hosted.index))
        return read(reads, hosted, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(PartitionReads, "for_follower", counted)
        yield found


def sessions_of(cluster: Cluster, leader: int) -> list[FollowerSession]:
    return list(cluster.node(leader).components.follower_sessions)


def lose_sessions(cluster: Cluster, leader: int) -> None:
    for connection in cluster.node(leader).components.connections:
        if connection.follower_session is not None:
            connection.follower_session.close()
            connection.follower_session = None


def apart_from_the_controller(cluster: Cluster) -> tuple[int, int, int]:
    """(leader, follower, partition): the active controller is the third node, and goes on hearing of both."""
    controller = cluster.controller()
    leader, follower = (node_id for node_id in (1, 2, 3) if node_id != controller)
    return leader, follower, next(index for index in range(PARTITIONS) if cluster.leader("t", index) == leader)


def isr(cluster: Cluster, partition: int = 0) -> set[int]:
    return set(cluster.partition("t", partition).isr)


def test_partitions_without_news_are_not_looked_at(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for node_id in (1, 2, 3):
        assert [len(session.active) for session in sessions_of(cluster, node_id)] == [0, 0]
    before = {node_id: cluster.node(node_id).context.metrics.fetch_requests for node_id in (1, 2, 3)}
    with looks(monkeypatch) as found:
        cluster.run(10_000)
    assert found == []
    # Two followers ask twice a second each.
    asked = {node_id: cluster.node(node_id).context.metrics.fetch_requests - before[node_id] for node_id in before}
    assert all(36 <= count <= 44 for count in asked.values()), asked


def test_only_the_partition_that_grows_is_looked_at(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with looks(monkeypatch) as found:
        assert cluster.produce("t", [b"value"], partition=7).error_code == 0
        cluster.run(3_000)
    assert {partition for _, partition in found} == {7}
    assert len(found) < 20
    cluster.run(2_000)
    assert {each.replica.high_watermark for each in cluster.hosted("t", 7).values()} == {1}
    assert all(not session.active for node_id in (1, 2, 3) for session in sessions_of(cluster, node_id))


def test_partitions_that_are_asked_for_again_later_are_not_looked_at_before(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that does not know its leadership yet, of thousands of new partitions, must not slow the others down."""
    grows, *refused = (index for index in range(PARTITIONS) if cluster.leader("t", index) == 1)
    for index in refused:
        hosted = cluster.hosted("t", index)[1]
        hosted.leader = None
        for watch in hosted.followers:
            watch.activate()
    cluster.run(5_000)
    looked: list[int] = []
    may_fetch = FollowerState.may_fetch

    def counted(follower: FollowerState, now_ms: int) -> bool:
        if follower.metadata.partition in refused:
            looked.append(follower.metadata.partition)
        return may_fetch(follower, now_ms)

    monkeypatch.setattr(FollowerState, "may_fetch", counted)
    asked_before = cluster.node(1).context.metrics.fetch_requests
    for _ in range(50):
        assert cluster.produce("t", [b"value"], partition=grows).error_code == 0
    assert cluster.node(1).context.metrics.fetch_requests - asked_before >= 100
    assert len(looked) < 50
    cluster.run(5_000)
    assert set(looked) == set(refused)  # asked for again when their time had come


def test_an_idle_follower_was_there_until_its_last_request(cluster: Cluster) -> None:
    """Its partitions are not named for minutes. When the log grows, it is late only if its requests have stopped."""
    leader, other, partition = apart_from_the_controller(cluster)
    cluster.run(3 * LAG_MS)
    cluster.cut(leader, other)
    cluster.run(1_000)
    assert cluster.produce("t", [b"value"], partition=partition, acks=1).error_code == 0
    cluster.node(leader).components.housekeeping.check_lag()
    cluster.run(2_000)
    assert isr(cluster, partition) == {1, 2, 3}
    cluster.heal()
    cluster.run(5_000)
    assert isr(cluster, partition) == {1, 2, 3}
    assert {each.log.log_end_offset for each in cluster.hosted("t", partition).values()} == {1}


def test_a_follower_that_stays_away_leaves_the_isr_and_comes_back(cluster: Cluster) -> None:
    leader, other, partition = apart_from_the_controller(cluster)
    cluster.cut(leader, other)
    cluster.run(1_000)
    assert cluster.produce("t", [b"value"], partition=partition, acks=1).error_code == 0
    cluster.until(lambda: other not in isr(cluster, partition), 3 * LAG_MS)
    cluster.heal()
    cluster.until(lambda: isr(cluster, partition) == {1, 2, 3}, 20_000)
    assert {each.log.log_end_offset for each in cluster.hosted("t", partition).values()} == {1}


def test_a_session_that_the_leader_has_lost_begins_anew(cluster: Cluster) -> None:
    leader = cluster.leader("t", 4)
    assert leader is not None
    before = sessions_of(cluster, leader)
    lose_sessions(cluster, leader)
    cluster.run(2_000)
    after = sessions_of(cluster, leader)
    assert len(after) == 2
    assert not set(before) & set(after)
    assert cluster.produce("t", [b"value"], partition=4).error_code == 0
    cluster.run(100)
    assert {each.replica.high_watermark for each in cluster.hosted("t", 4).values()} == {1}


def test_a_leader_that_keeps_no_sessions_is_asked_in_full() -> None:
    cluster = Cluster(config={"max.incremental.fetch.session.cache.slots": "0"})
    cluster.create_topic("t", partitions=PARTITIONS)
    cluster.run(3_000)
    assert sessions_of(cluster, 1) == []
    for partition in range(PARTITIONS):
        assert cluster.produce("t", [b"value"], partition=partition).error_code == 0
    cluster.run(1_000)
    for partition in range(PARTITIONS):
        assert {each.replica.high_watermark for each in cluster.hosted("t", partition).values()} == {1}


def test_followers_hear_of_deleted_records_though_nothing_else_happens(cluster: Cluster) -> None:
    assert cluster.produce("t", [b"a", b"b"], partition=3).error_code == 0
    cluster.run(5_000)
    wanted = DeleteRecordsPartition(partition_index=3, offset=2)
    topic = DeleteRecordsTopic(name="t", partitions=(wanted,))
    answer: Any = cluster.ask(
        DeleteRecordsRequest(topics=(topic,), timeout_ms=10_000), 2, to=cluster.leader("t", 3) or 1
    )
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.low_watermark) == (0, 2)
    assert {each.log.log_start_offset for each in cluster.hosted("t", 3).values()} == {2}


@pytest.mark.parametrize("loses", [False, True], ids=["the sessions go on", "the sessions begin anew meanwhile"])
def test_a_follower_does_not_rest_when_the_log_of_its_leader_is_to_come(cluster: Cluster, loses: bool) -> None:
    """Of thousands of new partitions, whose logs are made some in a turn, each broker's order is its own."""
    leader = cluster.node(1)
    failed_before = leader.context.metrics.failed_fetches
    leader.replicas.new_logs.turn_max = 0
    cluster.create_topic("late", assignment=[[2, 1, 3]] + [[1, 2, 3]] * 5)
    cluster.run(3_000)
    assert 1 not in cluster.hosted("late", 5)
    assert leader.context.metrics.failed_fetches == failed_before
    sessions = sessions_of(cluster, 1)
    assert [len(session.active) for session in sessions] == [0, 0], "nobody looks at them again and again"
    if loses:
        # A full request is answered for each partition, as Apache Kafka's followers want it; then they rest.
        lose_sessions(cluster, 1)
        cluster.run(3_000)
        assert leader.context.metrics.failed_fetches > failed_before
    leader.replicas.new_logs.turn_max = 64
    cluster.until(lambda: 1 in cluster.hosted("late", 5), 10)
    began_ms = cluster.client.clock.now_ms()
    for partition in range(1, 6):
        assert cluster.produce("late", [b"value"], partition=partition).error_code == 0
    assert cluster.client.clock.now_ms() - began_ms < 200, "a follower that rests takes a second"
    cluster.run(1_000)
    for partition in range(1, 6):
        assert {each.replica.high_watermark for each in cluster.hosted("late", partition).values()} == {1}


def test_a_session_has_to_hear_of_a_log_that_is_made_later(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that the follower waits for ever: it named the partition once, and it had no answer."""
    monkeypatch.setattr(FollowerSessions, "made", lambda *_: None)
    leader = cluster.node(1)
    leader.replicas.new_logs.turn_max = 0
    cluster.create_topic("late", assignment=[[2, 1, 3], [1, 2, 3]])
    cluster.run(1_000)
    leader.replicas.new_logs.turn_max = 64
    cluster.until(lambda: 1 in cluster.hosted("late", 1), 10)
    assert cluster.produce("late", [b"value"], partition=1, timeout_ms=5_000).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_topic_that_is_deleted_before_its_logs_are_made_leaves_nothing(cluster: Cluster) -> None:
    leader = cluster.node(1)
    leader.replicas.new_logs.turn_max = 0
    cluster.create_topic("late", assignment=[[2, 1, 3]] + [[1, 2, 3]] * 5)
    cluster.run(1_000)
    cluster.ask(DeleteTopicsRequest(topic_names=("late",), timeout_ms=5_000), 5)
    leader.replicas.new_logs.turn_max = 64
    cluster.run(2_000)
    assert not cluster.hosted("late")
    counts = [len(session.partitions) for node_id in (1, 2, 3) for session in sessions_of(cluster, node_id)]
    assert sum(counts) == 2 * PARTITIONS


def test_logs_that_are_made_one_in_a_turn_are_followed(cluster: Cluster) -> None:
    for node_id in (1, 2, 3):
        cluster.node(node_id).replicas.new_logs.turn_max = 1
    cluster.create_topic("late", partitions=40)
    cluster.until(lambda: len(cluster.hosted("late", 39)) == 3)
    for partition in range(40):
        assert cluster.produce("late", [b"value"], partition=partition).error_code == 0


def test_topics_that_come_and_go_are_in_sessions_and_out_of_them(cluster: Cluster) -> None:
    for number in range(3):
        cluster.create_topic(f"more{number}", partitions=3)
    cluster.run(3_000)
    counts = [len(session.partitions) for node_id in (1, 2, 3) for session in sessions_of(cluster, node_id)]
    assert sum(counts) == 2 * (PARTITIONS + 9)
    for partition in range(3):
        assert cluster.produce("more1", [b"value"], partition=partition).error_code == 0
    cluster.ask(DeleteTopicsRequest(topic_names=("more0", "more1", "more2"), timeout_ms=5_000), 5)
    cluster.run(3_000)
    counts = [len(session.partitions) for node_id in (1, 2, 3) for session in sessions_of(cluster, node_id)]
    assert sum(counts) == 2 * PARTITIONS
    assert all(not session.active for node_id in (1, 2, 3) for session in sessions_of(cluster, node_id))


# ---- a session by itself

TOPIC = UUID(int=7)


def call(*targets: FetchTarget, session_id: int = 0, epoch: int = 0, forgotten: tuple[int, ...] = ()) -> FetchCall:
    return FetchCall(
        replica_id=2,
        replica_epoch=5,
        session_id=session_id,
        session_epoch=epoch,
        topics=[(TOPIC, list(targets))] if targets else [],
        forgotten=[(TOPIC, list(forgotten))] if forgotten else [],
    )


def begun(count: int = 3) -> tuple[FollowerSessions, Any, FollowerSession]:
    random: Any = SimpleNamespace(below=lambda _n: 41)
    sessions, connection = FollowerSessions(random, 2), SimpleNamespace(follower_session=None)
    session = sessions.resolve(call(*(FetchTarget(index) for index in range(count))), connection, 0)
    assert isinstance(session, FollowerSession)
    return sessions, connection, session


def test_requests_are_numbered() -> None:
    sessions, connection, session = begun()
    assert (session.id, session.epoch) == (42, 1)
    assert sessions.resolve(call(session_id=42, epoch=1), connection, 10) is session
    assert session.last_fetch_ms == 10
    assert sessions.resolve(call(session_id=42, epoch=1), connection, 20) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.resolve(call(session_id=43, epoch=2), connection, 20) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    other: Any = SimpleNamespace(follower_session=None)
    assert sessions.resolve(call(session_id=42, epoch=2), other, 20) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert session.last_fetch_ms == 10


def test_names_and_ids_are_not_mixed() -> None:
    sessions, connection, _ = begun()
    named = FetchCall(replica_id=2, session_id=42, session_epoch=1, topics=[("t", [FetchTarget(0)])])
    assert sessions.resolve(named, connection, 0) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_request_ends_the_session_before_it() -> None:
    sessions, connection, session = begun()
    again = sessions.resolve(call(FetchTarget(0)), connection, 0)
    assert isinstance(again, FollowerSession)
    assert again is not session
    assert list(sessions) == [again]
    assert not session.partitions


def test_there_are_so_many_at_most() -> None:
    sessions, _, _ = begun()
    others: list[Any] = [SimpleNamespace(follower_session=None) for _ in range(2)]
    assert isinstance(sessions.resolve(call(FetchTarget(0)), others[0], 0), FollowerSession)
    assert sessions.resolve(call(FetchTarget(0)), others[1], 0) is None
    others[0].follower_session.close()
    assert isinstance(sessions.resolve(call(FetchTarget(0)), others[1], 0), FollowerSession)


def test_what_is_named_is_active_and_what_is_forgotten_is_gone() -> None:
    sessions, connection, session = begun()
    session.active.clear()
    sessions.resolve(call(FetchTarget(1, fetch_offset=9), session_id=42, epoch=1, forgotten=(0, 8)), connection, 0)
    assert [(each.target.partition, each.target.fetch_offset) for each in session.active] == [(1, 9)]
    assert [index for _, index in session.partitions] == [1, 2]


def test_a_broker_that_has_registered_anew_is_looked_at_in_full() -> None:
    sessions, connection, session = begun()
    session.active.clear()
    anew = call(session_id=42, epoch=1)
    anew.replica_epoch = 6
    sessions.resolve(anew, connection, 0)
    assert len(session.active) == 3


def test_news_is_what_was_not_reported() -> None:
    _, _, session = begun(1)
    (followed,) = session.partitions.values()

    def result(**fields: Any) -> FetchedPartition:
        return FetchedPartition(0, **{"error": 0, "high_watermark": 5, "last_stable_offset": 5, **fields})

    assert followed.has_news(result())
    followed.report(result())
    assert not followed.has_news(result())
    assert followed.has_news(result(high_watermark=6))
    assert followed.has_news(result(log_start_offset=3))
    assert followed.has_news(result(records=b"x"))
    assert followed.has_news(result(diverging_epoch=(1, 2)))
    failed = result(error=6)
    assert followed.has_news(failed)
    followed.report(failed)
    assert followed.has_news(failed)
    assert followed.has_news(result())


# ---- the follower's side


def asked(offset: int, follower: Any = "role", high_watermark: int = 0) -> Asked:
    position = FetchPosition(offset, 0, 0, 0)
    return Asked(follower, position, FetchTarget(0, fetch_offset=offset, high_watermark=high_watermark))


def test_the_follower_names_what_the_leader_does_not_know() -> None:
    session = FetcherSession(before=17)
    one, two = (TOPIC, 0), (TOPIC, 1)
    session.ask(one, asked(3))
    session.ask(two, asked(4))
    session_id, epoch, topics, forgotten = session.request()
    assert (session_id, epoch, len(topics[0][1]), forgotten) == (17, 0, 2, [])
    assert session.unanswered
    assert session.handle_response(99)
    session.ask(one, asked(3))
    session.ask(two, asked(4, high_watermark=1))
    session_id, epoch, topics, _ = session.request()
    assert (session_id, epoch) == (99, 1)
    assert [target.high_watermark for _, targets in topics for target in targets] == [1]
    session.forget(one)
    session.forget(one)
    assert session.request()[1:] == (2, [], [(TOPIC, [0])])
    assert not session.replaces(one, asked(3))
    assert session.replaces(two, asked(5))
    assert session.replaces(two, asked(4, follower="another role"))
    assert not session.replaces(two, asked(4, high_watermark=1))
    assert session.handle_response(99)
    assert not session.handle_response(0)


def test_a_leader_may_decline() -> None:
    session = FetcherSession()
    session.ask((TOPIC, 0), asked(0))
    session.request()
    assert not session.handle_response(0)


# ---- its rules, broken one by one


def forgets_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    take = FollowerSession.take

    def takes(session: FollowerSession, call: FetchCall) -> None:
        take(session, call)
        session.active.clear()

    monkeypatch.setattr(FollowerSession, "take", takes)


def leaves_the_high_watermark_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FollowedPartition, "has_news", lambda _followed, result: result.records is not None)


def hears_of_no_appends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FollowedPartition, "activate", lambda _followed: None)


@pytest.mark.parametrize(
    "breaks",
    [
        None,
        forgets_what_is_named,
        leaves_the_high_watermark_out,
        hears_of_no_appends,
    ],
)
def test_each_rule_is_needed_for_a_record_to_be_committed_everywhere(breaks: Any, cluster: Cluster) -> None:
    with pytest.MonkeyPatch.context() as patched:
        if breaks is not None:
            breaks(patched)
        cluster.produce("t", [b"value"], partition=5, timeout_ms=1_000)
        cluster.run(1_000)
        marks = {each.replica.high_watermark for each in cluster.hosted("t", 5).values()}
    assert (marks == {1}) == (breaks is None), marks


def test_who_was_there_is_counted_when_the_log_grows(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, a follower that idles for longer than `replica.lag.time.max.ms` is late with the first record."""
    leader, other, partition = apart_from_the_controller(cluster)
    cluster.run(3 * LAG_MS)
    monkeypatch.setattr(LeaderState, "follower_was_there", lambda *_: None)
    cluster.cut(leader, other)
    cluster.run(1_000)
    assert cluster.produce("t", [b"value"], partition=partition, acks=1).error_code == 0
    cluster.node(leader).components.housekeeping.check_lag()
    cluster.run(2_000)
    assert other not in isr(cluster, partition)
