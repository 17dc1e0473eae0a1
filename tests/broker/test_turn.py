"""The end of a turn, by itself."""

from __future__ import annotations

import pytest

from tanist.broker.turn import Turn
from tanist.log.config import LogConfig
from tests.broker.turn_rig import FULL, LARGE, Bench, Client, Later, Watch
from tests.log.log_batches import batch

DURABLE = LogConfig(flush_messages=1)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def later(bench: Bench) -> Later:
    return bench.later


@pytest.fixture
def turn(bench: Bench) -> Turn:
    return bench.turn


def test_what_is_gathered_is_written_in_its_turn_and_reported_after(turn: Turn, later: Later) -> None:
    seen: list[str] = []
    turn.after_writes(lambda: seen.append("answered"))
    turn.before_writes(lambda: seen.append("gathered"))
    later.run()
    assert seen == ["gathered", "answered"]
    assert later.turns == 1


def test_what_comes_up_while_it_is_gathered_is_of_the_same_turn(turn: Turn, later: Later) -> None:
    seen: list[str] = []
    turn.before_writes(lambda: turn.before_writes(lambda: seen.append("second")))
    later.run()
    assert seen == ["second"]
    assert later.turns == 1


def test_what_is_gathered_after_the_writes_has_a_turn_of_its_own(turn: Turn, later: Later) -> None:
    """Though nothing else ever happens."""
    seen: list[str] = []
    turn.after_writes(lambda: turn.before_writes(lambda: seen.append("gathered")))
    later.run()
    assert seen == ["gathered"]
    assert later.turns == 2


def test_where_a_partition_is_dirty_the_turn_has_begun_whatever_a_follower_raises(bench: Bench) -> None:
    """A produce to it does not look twice."""

    class Failing(Watch):
        def activate(self) -> None:
            raise RuntimeError("planted")

    hosted = bench.host("p")
    hosted.followers.append(Failing())
    with pytest.raises(RuntimeError, match="planted"):
        bench.turn.mark_dirty(hosted)
    assert hosted.dirty
    assert bench.turn.begun
    hosted.followers.clear()
    bench.later.run()
    assert not hosted.dirty


# -- large appends


def test_answers_of_a_turn_with_a_large_append_wait_until_it_is_written(bench: Bench) -> None:
    hosted, client, other = bench.host("p"), Client(bench), Client(bench)
    other.respond([b"of the same turn"])
    frame = client.append(hosted, b"appended")
    bench.end_turn()
    assert (client.sent, other.sent, bench.content(hosted)) == ([], [], b"")
    assert bench.turn.late == 1
    bench.end_writes()
    assert (client.sent, other.sent) == ([b"appended"], [b"of the same turn"])
    assert bench.content(hosted) == bytes(frame)
    assert bench.unwritten == [0, 0]
    assert bench.turn.late == 0


def test_a_turn_with_small_appends_alone_writes_them_and_answers(bench: Bench) -> None:
    hosted, client = bench.host("p"), Client(bench)
    client.append(hosted, b"appended", size=100)
    bench.end_turn()
    assert (client.sent, bench.disk.late_writes, bench.turn.late) == ([b"appended"], [], 0)
    assert bench.unwritten == [0]
    assert client.wire.reading


def test_many_small_appends_are_written_at_once_for_their_memory_is_not_lent(bench: Bench) -> None:
    hosted, client = bench.host("p"), Client(bench)
    frames = [client.append(hosted, size=100) for _ in range(30)]
    assert hosted.log.pending_bytes > LARGE
    bench.end_turn()
    assert bench.disk.late_writes == []
    assert bench.content(hosted) == b"".join(map(bytes, frames))


def test_later_answers_of_the_same_connection_come_behind_those_that_wait(bench: Bench) -> None:
    hosted, client = bench.host("p"), Client(bench)
    client.respond([b"1"])
    client.append(hosted, b"2")
    bench.end_turn()
    client.respond([b"3"])
    slot = client.reserve()
    client.respond([b"5"])
    bench.end_turn()
    assert client.sent == []
    client.complete(slot, [b"4"])
    bench.end_turn()
    assert client.sent == []
    bench.end_writes()
    assert client.sent == [b"1", b"2", b"3", b"4", b"5"]


def test_answers_of_other_connections_in_later_turns_do_not_wait(bench: Bench) -> None:
    hosted, other_hosted = bench.host("p"), bench.host("q")
    client, other = Client(bench), Client(bench)
    client.append(hosted, b"large")
    bench.end_turn()
    other.append(other_hosted, b"small", size=100)
    bench.end_turn()
    other.respond([b"of a read"])
    bench.end_turn()
    assert (client.sent, other.sent) == ([], [b"small", b"of a read"])
    assert other_hosted.log.pending_bytes == 0
    assert hosted.log.written_end_offset == 0
    bench.end_writes()
    assert client.sent == [b"large"]


def test_connections_whose_frames_are_written_are_not_read_from_until_then(bench: Bench) -> None:
    hosted, client, second, other = bench.host("p"), Client(bench), Client(bench), Client(bench)
    client.append(hosted, b"appended")
    client.append(hosted)
    second.append(hosted)
    other.respond([b"of the same turn"])
    assert client.wire.reading
    bench.end_turn()
    assert [each.wire.reading for each in (client, second, other)] == [False, False, True]
    bench.later.run()
    assert not client.wire.reading
    bench.end_writes()
    assert [each.wire.reading for each in (client, second, other)] == [True, True, True]


def test_a_connection_that_is_held_for_another_reason_stays_held(bench: Bench) -> None:
    hosted, client = bench.host("p"), Client(bench)
    client.hold()
    client.append(hosted, b"appended")
    bench.end_turn()
    bench.end_writes()
    assert client.sent == [b"appended"]
    assert not client.wire.reading
    client.release()
    assert client.wire.reading


def test_a_connection_that_has_closed_meanwhile_is_left_alone(bench: Bench) -> None:
    hosted, client = bench.host("p"), Client(bench)
    client.append(hosted, b"appended")
    bench.end_turn()
    client.close()
    client.on_close("closed by the other side")
    bench.end_writes()
    assert (client.sent, client.wire.reading) == ([], False)
    assert hosted.log.written_end_offset == 1


def test_a_later_turn_that_touches_the_partition_ends_the_write_before_its_answers_are_sent(bench: Bench) -> None:
    hosted, client, other = bench.host("p"), Client(bench), Client(bench)
    frames = [client.append(hosted, b"large")]
    bench.end_turn()
    frames.append(other.append(hosted, b"small", size=100))
    bench.end_turn()
    assert (client.sent, other.sent, bench.unwritten) == ([], [b"small"], [0])
    assert bench.content(hosted) == b"".join(map(bytes, frames))
    assert not client.wire.reading  # its end is reported later
    bench.end_writes()
    assert client.sent == [b"large"]
    assert bench.content(hosted) == b"".join(map(bytes, frames))


def test_news_of_the_partition_alone_end_the_write_as_well(bench: Bench) -> None:
    """Such as a high watermark that has moved: what it lets be answered may lie in what is being written."""
    hosted, client, other = bench.host("p"), Client(bench), Client(bench)
    client.append(hosted)
    bench.end_turn()
    bench.turn.mark_dirty(hosted)
    other.respond([b"committed"])
    bench.end_turn()
    assert (other.sent, bench.unwritten) == ([b"committed"], [0])
    assert hosted.log.written_end_offset == 1


def test_answers_wait_for_all_large_appends_of_their_turn(bench: Bench) -> None:
    partitions, client, other = [bench.host("p"), bench.host("q")], Client(bench), Client(bench)
    client.append(partitions[0], b"p")
    other.append(partitions[1], b"q")
    bench.end_turn()
    bench.disk.end_one(1)
    bench.end_turn()
    assert (client.sent, other.sent, bench.turn.late) == ([], [], 1)
    assert not other.wire.reading
    bench.disk.end_one(0)
    bench.end_turn()
    assert (client.sent, other.sent, bench.turn.late) == ([b"p"], [b"q"], 0)
    assert client.wire.reading
    assert other.wire.reading


def test_turns_with_large_appends_are_answered_as_their_writes_end(bench: Bench) -> None:
    partitions, client, other = [bench.host("p"), bench.host("q")], Client(bench), Client(bench)
    client.append(partitions[0], b"p")
    bench.end_turn()
    other.append(partitions[1], b"q")
    bench.end_turn()
    assert bench.turn.late == 2
    bench.disk.end_one(1)
    bench.end_turn()
    assert (client.sent, other.sent, bench.turn.late) == ([], [b"q"], 1)
    bench.end_writes()
    assert (client.sent, other.sent, bench.turn.late) == ([b"p"], [b"q"], 0)


def test_a_second_large_append_to_a_partition_ends_the_first(bench: Bench) -> None:
    hosted, client, other = bench.host("p"), Client(bench), Client(bench)
    frames = [client.append(hosted, b"first")]
    bench.end_turn()
    frames.append(other.append(hosted, b"second"))
    bench.end_turn()
    assert bench.content(hosted) == bytes(frames[0])
    assert (client.sent, other.sent) == ([], [])
    bench.end_writes()
    assert (client.sent, other.sent) == ([b"first"], [b"second"])
    assert bench.content(hosted) == b"".join(map(bytes, frames))


def test_small_appends_of_the_same_turn_to_other_partitions_are_written_at_once(bench: Bench) -> None:
    hosted, small = bench.host("p"), bench.host("q")
    watches = [Watch(), Watch()]
    small.fetch_waiters.append(watches[0])
    hosted.fetch_waiters.append(watches[1])
    client, other = Client(bench), Client(bench)
    client.append(hosted, b"large")
    frame = other.append(small, b"small", size=100)
    bench.end_turn()
    assert bench.content(small) == bytes(frame)
    assert [each.completions for each in watches] == [1, 0]
    assert bench.counted == [("q", 1)]
    bench.end_writes()
    assert (client.sent, other.sent) == ([b"large"], [b"small"])


def test_what_waits_for_the_writes_of_the_turn_runs_when_they_have_ended(bench: Bench) -> None:
    hosted, client = bench.host("p"), Client(bench)
    seen: list[str] = []
    bench.turn.after_writes(lambda: seen.append(f"of its turn, {hosted.log.written_end_offset} written"))
    client.append(hosted)
    bench.end_turn()
    bench.turn.after_writes(lambda: seen.append("of a later turn"))
    bench.end_turn()
    assert seen == ["of a later turn"]
    bench.end_writes()
    assert seen == ["of a later turn", "of its turn, 1 written"]


def test_what_is_beside_large_writes_runs_once_the_small_ones_of_its_turn_are_made(bench: Bench) -> None:
    hosted, small, client = bench.host("p"), bench.host("q"), Client(bench)
    seen: list[tuple[int, int]] = []
    bench.turn.beside_large(lambda: seen.append((hosted.log.written_end_offset, small.log.written_end_offset)))
    client.append(hosted)
    client.append(small, size=100)
    bench.end_turn()
    assert seen == [(0, 1)]
    bench.end_writes()
    assert seen == [(0, 1)]


def test_what_is_beside_large_writes_is_forgotten_where_there_are_none(bench: Bench) -> None:
    hosted, client = bench.host("p"), Client(bench)
    seen: list[str] = []
    bench.turn.beside_large(lambda: seen.append("of a turn without"))
    bench.end_turn()
    client.append(hosted)
    bench.end_turn()
    bench.end_writes()
    assert seen == []


def test_what_is_marked_while_the_answers_of_a_turn_wait_has_a_turn_of_its_own(bench: Bench) -> None:
    hosted, client = bench.host("p"), Client(bench)
    client.append(hosted)
    bench.end_turn()
    turns = bench.later.turns
    bench.end_writes()
    assert bench.later.turns == turns + 1
    assert not bench.turn.begun


def test_a_leader_counts_a_large_append_and_its_readers_look_when_it_is_written(bench: Bench) -> None:
    hosted, client, waiter, follower = bench.host("p"), Client(bench), Watch(), Watch()
    hosted.fetch_waiters.append(waiter)
    hosted.followers.append(follower)
    client.append(hosted, b"appended")
    bench.end_turn()
    assert (bench.counted, waiter.completions, follower.completions) == ([], 0, 0)
    assert not hosted.dirty
    bench.end_writes()
    assert (bench.counted, waiter.completions, follower.completions) == ([("p", 1)], 1, 1)
    assert (hosted.dirty, hosted.grown) == (False, False)


def test_a_follower_has_nothing_to_count(bench: Bench) -> None:
    hosted, client, waiter = bench.host("p"), Client(bench), Watch()
    hosted.log.queue_large(LARGE)
    hosted.fetch_waiters.append(waiter)
    bench.turn.lend(client)
    hosted.log.append_as_follower(batch([b"v" * LARGE], leader_epoch=0), 9)
    bench.turn.mark_lent(hosted, hosted.log.pending_bytes)
    bench.turn.mark_dirty(hosted)
    bench.end_turn()
    assert hosted.log.written_end_offset == 0
    bench.end_writes()
    assert hosted.log.written_end_offset == 1
    assert (bench.counted, waiter.completions) == ([], 1)


def test_nothing_is_late_in_a_turn_whose_answers_wait_for_a_sync(bench: Bench) -> None:
    durable, hosted, client = bench.host("d", DURABLE), bench.host("p"), Client(bench)
    client.append(durable, b"durable", size=100)
    frame = client.append(hosted, b"large")
    bench.end_turn()
    assert bench.disk.late_writes == []
    assert bench.content(hosted) == bytes(frame)
    assert (client.sent, bench.turn.held, bench.turn.late) == ([], 1, 0)
    assert client.wire.reading
    bench.disk.syncs.pop()()
    assert client.sent == [b"durable", b"large"]


def test_nothing_is_late_behind_answers_that_wait_for_a_sync(bench: Bench) -> None:
    durable, hosted = bench.host("d", DURABLE), bench.host("p")
    client, other = Client(bench), Client(bench)
    client.append(durable, b"durable", size=100)
    bench.end_turn()
    frame = other.append(hosted, b"large")
    bench.end_turn()
    assert bench.disk.late_writes == []
    assert bench.content(hosted) == bytes(frame)
    assert (other.sent, bench.turn.held) == ([], 2)
    bench.disk.syncs.pop()()
    assert (client.sent, other.sent, bench.turn.held) == ([b"durable"], [b"large"], 0)


@pytest.mark.parametrize("sync_first", [True, False])
def test_answers_that_wait_for_a_sync_keep_their_order_behind_those_of_a_late_write(
    bench: Bench, sync_first: bool
) -> None:
    durable, hosted = bench.host("d", DURABLE), bench.host("p")
    client = Client(bench)
    client.append(hosted, b"large")
    bench.end_turn()
    client.append(durable, b"durable", size=100)
    bench.end_turn()
    ends = [bench.disk.syncs.pop(), bench.end_writes]
    for end in ends if sync_first else ends[::-1]:
        assert client.sent == []
        end()
    bench.end_turn()
    assert client.sent == [b"large", b"durable"]


def test_a_late_write_that_fails_closes_the_connections_whose_answers_wait_for_it(bench: Bench) -> None:
    hosted, client, second, other = bench.host("p"), Client(bench), Client(bench), Client(bench)
    client.append(hosted, b"appended")
    second.append(hosted, b"appended too")
    bench.end_turn()
    other.respond([b"of another turn"])
    bench.end_turn()
    bench.disk.fail = FULL
    bench.end_writes()
    assert [each.wire.closed for each in (client, second, other)] == [True, True, False]
    assert (client.sent, second.sent, other.sent) == ([], [], [b"of another turn"])
    assert bench.failures == [("/d", FULL)]
    assert (bench.counted, bench.turn.late) == ([], 0)


def test_one_of_two_late_writes_that_fails_lets_the_other_be_counted(bench: Bench) -> None:
    bad, good, client = bench.host("p", directory="/bad"), bench.host("q", directory="/good"), Client(bench)
    client.append(bad, b"p")
    client.append(good, b"q")
    bench.end_turn()
    bench.disk.fail = FULL
    bench.disk.end_one(0)
    bench.disk.fail = None
    bench.end_turn()
    assert not client.wire.closed
    bench.end_writes()
    assert (client.wire.closed, client.sent) == (True, [])
    assert bench.failures == [("/bad", FULL)]
    assert bench.counted == [("q", 1)]


def test_a_partition_that_has_gone_meanwhile_is_left_alone(bench: Bench) -> None:
    hosted, client, waiter = bench.host("p"), Client(bench), Watch()
    hosted.fetch_waiters.append(waiter)
    client.append(hosted, b"appended")
    bench.end_turn()
    hosted.stale = True
    hosted.log.abandon()
    bench.end_writes()
    assert (bench.counted, waiter.completions, hosted.dirty) == ([], 0, False)
    assert client.sent == [b"appended"]
    assert client.wire.reading


@pytest.mark.parametrize("met", ["p", "q"])
def test_a_failure_that_a_later_turn_meets_first_closes_the_connections_that_wait_as_well(
    bench: Bench, met: str
) -> None:
    """In the partition itself, or in another one of its directory: by then both have gone."""
    partitions, client, other = {name: bench.host(name) for name in ("p", "q")}, Client(bench), Client(bench)
    client.append(partitions["p"], b"appended")
    bench.end_turn()
    bench.disk.fail = FULL
    other.append(partitions[met], b"small", size=100)
    bench.end_turn()
    assert (other.wire.closed, other.sent, bench.failures) == (True, [], [("/d", FULL)])
    bench.end_writes()
    assert bench.content(partitions["p"]) == b""
    assert (client.sent, client.wire.closed) == ([], True)


def test_an_answer_behind_one_that_is_not_ready_waits_for_its_write_too(bench: Bench) -> None:
    hosted, client = bench.host("p"), Client(bench)
    slot = client.reserve()
    client.append(hosted, b"appended")
    bench.end_turn()
    client.complete(slot, [b"long poll"])
    bench.end_turn()
    assert b"appended" not in client.sent
    bench.end_writes()
    assert client.sent == [b"long poll", b"appended"]


def test_an_answer_behind_one_that_waits_for_another_write_waits_for_its_own_too(bench: Bench) -> None:
    partitions, client, other = [bench.host("p"), bench.host("q")], Client(bench), Client(bench)
    client.respond([b"1"])
    other.append(partitions[0])
    bench.end_turn()
    client.append(partitions[1], b"2")
    bench.end_turn()
    bench.disk.end_one(0)
    bench.end_turn()
    assert client.sent == [b"1"]
    bench.end_writes()
    assert client.sent == [b"1", b"2"]


def test_a_frame_of_which_nothing_is_appended_lends_nothing_to_the_next_turn(bench: Bench) -> None:
    """Such as the first of a transaction, whose coordinator is asked, or one that is malformed."""
    hosted, client, other = bench.host("p"), Client(bench), Client(bench)
    bench.turn.lend(client)
    bench.end_turn()
    frames = [other.append(hosted, size=100) for _ in range(30)]
    sent = b"".join(map(bytes, frames))
    bench.end_turn()
    for frame in frames:
        frame[:] = bytes(len(frame))  # nobody holds the connection: its memory is received into
    bench.end_writes()
    assert bench.content(hosted) == sent


def test_what_lies_in_small_frames_is_written_in_its_turn_though_a_large_one_was_lent(bench: Bench) -> None:
    mixed, small, client, other = bench.host("p"), bench.host("q"), Client(bench), Client(bench)
    frames = [client.append(mixed), other.append(mixed, size=100), *(other.append(small, size=100) for _ in range(30))]
    sent = [bytes(frame) for frame in frames]
    bench.end_turn()
    assert (bench.content(mixed), bench.content(small)) == (b"".join(sent[:2]), b"".join(sent[2:]))


def test_a_client_is_held_back_while_its_large_produces_wait_for_replicas(bench: Bench) -> None:
    client = Client(bench)
    client.add_unreplicated(300 << 10)
    assert client.wire.reading
    client.add_unreplicated(300 << 10)
    client.add_unreplicated(1 << 20)
    assert not client.wire.reading
    client.replicated(1 << 20)
    assert not client.wire.reading
    client.replicated(300 << 10)
    assert client.wire.reading


def test_a_client_that_is_held_back_for_two_reasons_goes_on_after_the_last(bench: Bench) -> None:
    client = Client(bench)
    client.add_unreplicated(1 << 20)
    client.hold()
    client.replicated(1 << 20)
    assert not client.wire.reading
    client.release()
    assert client.wire.reading
