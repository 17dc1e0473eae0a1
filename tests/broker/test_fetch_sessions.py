"""Incremental fetch sessions (KIP-227): what is said once is not said again, and nothing is ever missing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.broker.replication.fetch_sessions import LEAST_PARTITIONS, FetchSession, FetchSessions
from tanist.sim.world.clock import SimRandom, stream
from tanist.wire.batch import decode_batch, iterate_headers
from tanist.wire.errors import ErrorCode
from tanist.wire.fetch import FetchCall, FetchedPartition, FetchTarget
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.broker.cluster_rig import Cluster

COUNT = LEAST_PARTITIONS


def sessions(slots: int = 2) -> FetchSessions:
    return FetchSessions(SimRandom(stream(1, "fetch")), slots, 120_000)


def full(count: int = COUNT, *, session_id: int = 0, offset: int = 0) -> FetchCall:
    targets = [FetchTarget(index, fetch_offset=offset) for index in range(count)]
    return FetchCall(session_id=session_id, session_epoch=0, topics=[("t", targets)])


def begun(cache: FetchSessions, call: FetchCall | None = None, now_ms: int = 0) -> FetchSession:
    session = cache.resolve(call or full(), now_ms)
    assert isinstance(session, FetchSession)
    return session


def more(session: FetchSession, epoch: int, *targets: FetchTarget, forgotten: tuple[int, ...] = ()) -> FetchCall:
    return FetchCall(
        session_id=session.id,
        session_epoch=epoch,
        topics=[("t", list(targets))] if targets else [],
        forgotten=[("t", list(forgotten))] if forgotten else [],
    )


def places(call: FetchCall) -> dict[int, int]:
    return {target.partition: target.fetch_offset for _, parts in call.topics for target in parts}


def result(index: int, high_watermark: int = 5, records: Any = None, error: int = 0) -> FetchedPartition:
    return FetchedPartition(index, error, high_watermark, high_watermark, 0, records)


def reported(answers: Any) -> list[int]:
    return [each.partition for _, results in answers for each in results]


def test_few_partitions_get_no_session() -> None:
    assert sessions().resolve(full(COUNT - 1), 0) is None
    assert sessions(slots=0).resolve(full(), 0) is None


def test_a_request_in_a_session_is_completed_by_what_was_said_before() -> None:
    cache = sessions()
    session = begun(cache)
    call = more(session, 1, FetchTarget(3, fetch_offset=7), forgotten=(0, 1))
    assert cache.resolve(call, 1) is session
    assert places(call) == {3: 7, **dict.fromkeys([2, *range(4, COUNT)], 0)}
    again = more(session, 2)
    assert cache.resolve(again, 2) is session
    assert places(again) == places(call)


def test_who_is_out_of_step_begins_anew() -> None:
    cache = sessions()
    session = begun(cache)
    assert cache.resolve(more(session, 2), 0) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.resolve(more(session, 1), 0) is session
    assert cache.resolve(more(session, 1), 0) == ErrorCode.INVALID_FETCH_SESSION_EPOCH  # it comes twice
    other = FetchCall(session_id=session.id + 1, session_epoch=1)
    assert cache.resolve(other, 0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    successor = begun(cache, full(session_id=session.id))
    assert len(cache) == 1
    assert successor.id != session.id
    assert cache.resolve(FetchCall(session_id=successor.id, session_epoch=-1), 0) is None
    assert len(cache) == 0


def test_a_session_from_which_everything_is_forgotten_is_over() -> None:
    cache = sessions()
    session = begun(cache)
    call = more(session, 1, forgotten=tuple(range(COUNT)))
    assert cache.resolve(call, 0) is session
    assert call.topics == []
    assert len(cache) == 0


def test_the_oldest_gives_way_only_when_it_was_not_used_for_long() -> None:
    cache = sessions(slots=2)
    first, second = begun(cache, now_ms=0), begun(cache, now_ms=1_000)
    assert cache.resolve(full(), 120_000) is None
    assert cache.resolve(more(first, 1), 120_001) is first
    third = begun(cache, now_ms=121_001)
    assert cache.resolve(more(second, 1), 121_002) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.resolve(more(third, 1), 121_002) is third


def test_only_news_are_reported_and_errors_until_they_are_mended() -> None:
    session = begun(sessions())
    everything = [("t", [result(index) for index in range(COUNT)])]
    assert reported(session.news(everything, whole=True)) == list(range(COUNT))
    assert reported(session.news(everything, whole=False)) == []
    higher = [("t", [result(index, 6 if index == 2 else 5) for index in range(COUNT)])]
    assert reported(session.news(higher, whole=False)) == [2]
    failing = [("t", [result(4, error=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))])]
    assert reported(session.news(failing, whole=False)) == [4]
    assert reported(session.news(failing, whole=False)) == [4]
    assert reported(session.news([("t", [result(4)])], whole=False)) == [4]


def test_what_had_records_is_read_last_the_next_time() -> None:
    cache = sessions()
    session = begun(cache)
    session.news([("t", [result(0, records=memoryview(b"x")), result(1)])], whole=True)
    call = more(session, 1)
    cache.resolve(call, 0)
    assert list(places(call)) == [*range(1, COUNT), 0]


@given(st.lists(st.tuples(st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11))), max_size=8))
def test_a_session_reads_what_its_client_wants(steps: list[tuple[set[int], set[int]]]) -> None:
    cache = sessions()
    session = begun(cache)
    wanted = dict.fromkeys(range(COUNT), 0)
    for epoch, (moved, gone) in enumerate(steps, 1):
        gone -= moved
        call = more(session, epoch, *(FetchTarget(index, fetch_offset=epoch) for index in moved), forgotten=tuple(gone))
        wanted |= dict.fromkeys(moved, epoch)
        wanted = {index: offset for index, offset in wanted.items() if index not in gone}
        assert cache.resolve(call, 0) is session
        assert places(call) == wanted
        if not wanted:
            return


# -- on a broker


class Consumer:
    """Reads all partitions of `t` from one broker in a session, as Java's client does."""

    def __init__(self, cluster: Cluster, partitions: int) -> None:
        self.cluster = cluster
        self.client = cluster.new_client("consumer")
        self.offsets = dict.fromkeys(range(partitions), 0)
        self.values: dict[int, list[bytes | None]] = {index: [] for index in range(partitions)}
        self.session_id, self.epoch, self.changed = 0, 0, set(self.offsets)

    def poll(self, forget: tuple[int, ...] = ()) -> Any:
        asked = tuple(
            FetchPartition(
                partition=index,
                current_leader_epoch=-1,
                last_fetched_epoch=-1,
                fetch_offset=self.offsets[index],
                partition_max_bytes=1 << 20,
            )
            for index in sorted(self.changed)
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=300,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=(FetchTopic(topic="t", partitions=asked),) if asked else (),
            forgotten_topics_data=(ForgottenTopic(topic="t", partitions=forget),) if forget else (),
        )
        answers = self.cluster.send(request, 12, to=1, timeout_ms=15_000, client=self.client)
        self.cluster.run(400)
        (answer,) = answers
        self.changed.clear()
        if answer.error_code:
            return answer
        self.session_id, self.epoch = answer.session_id, self.epoch + 1 if answer.session_id else 0
        for topic in answer.responses:
            for each in topic.partitions:
                for _, header in iterate_headers(each.records or b""):
                    self.offsets[each.partition_index] = header.next_offset
                    self.changed.add(each.partition_index)
                self.values[each.partition_index] += [
                    record.value for record in (decode_batch(each.records) if each.records else ())
                ]
        if not self.session_id:
            self.changed = set(self.offsets)
        return answer


def reported_of(answer: Any) -> list[int]:
    return [each.partition_index for topic in answer.responses for each in topic.partitions]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    cluster = Cluster(nodes=1)
    cluster.create_topic("t", partitions=12, factor=1)
    cluster.run(1_000)
    return cluster


def test_a_consumer_gets_all_of_it_and_hears_of_what_is_new_only(cluster: Cluster) -> None:
    consumer = Consumer(cluster, 12)
    assert reported_of(consumer.poll()) == list(range(12))
    assert consumer.session_id > 0
    assert reported_of(consumer.poll()) == []
    for index in (3, 7):
        assert cluster.produce("t", [b"one", b"two"], partition=index).error_code == 0
    assert sorted(reported_of(consumer.poll())) == [3, 7]
    assert consumer.offsets[3] == 2
    assert reported_of(consumer.poll()) == []
    assert cluster.produce("t", [b"three"], partition=3).error_code == 0
    assert reported_of(consumer.poll(forget=(3,))) == []
    consumer.changed.add(3)
    assert reported_of(consumer.poll()) == [3]
    consumer.epoch += 1  # an answer was lost
    assert consumer.poll().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    consumer.epoch, consumer.changed = 0, set(consumer.offsets)
    assert sorted(reported_of(consumer.poll())) == list(range(12))
