"""Directed runs about diverging logs: fetches and answers that arrive after a change of leader.

Each function is a script (`directed`), named for its events. `simulator` says which broken rule it shows. An operator's
elections move the leadership, so no broker has to die. Broker 1 leads at first.
"""

from __future__ import annotations

from tanist.lab.mutations.directed import CONTROLLER, Directed, Script, Until, with_records

RECORDS = 5
_NEVER_SYNCED_US = (60_000_000, 60_000_000)
_SYNCED_SOON_US = (200, 3_000)


def there_and_back(run: Directed) -> Script:
    """1 leads, then 2, then 1 again, which learns of both at once. Meanwhile 3 has truncated records that 1 knew it
    had."""
    yield from with_records(run, RECORDS)
    nothing = run.hold_answers(2, 1)
    run.writer.write(1)
    yield Until(lambda: run.known_end(1, 3) == RECORDS + 1)
    deaf = run.hold(1, CONTROLLER)
    yield from run.move_leader(2, by=2)
    yield Until(lambda: run.epoch(3) == run.state.leader_epoch and run.end(3) == RECORDS)
    yield from run.move_leader(1, by=2)
    run.slow(3, 1, 400)
    deaf.release()
    yield Until(lambda: run.epoch(1) == run.state.leader_epoch)
    nothing.release()
    yield 200
    run.quick(3, 1)


def an_old_fetch_is_read(run: Directed) -> Script:
    """As `there_and_back`, and 1 reads only now a fetch that 3 sent before it truncated its log."""
    yield from with_records(run, RECORDS)
    nothing = run.hold_answers(2, 1)
    run.writer.write(1)
    yield Until(lambda: run.end(1) == RECORDS + 1)
    old = run.hold_fetches(3, 1)
    yield Until(lambda: run.end(3) == RECORDS + 1)
    yield 2
    deaf = run.hold(1, CONTROLLER)
    yield from run.move_leader(2, by=2)
    yield Until(lambda: run.epoch(3) == run.state.leader_epoch and run.end(3) == RECORDS)
    yield from run.move_leader(1, by=2)
    run.slow(3, 1, 400)
    deaf.release()
    yield Until(lambda: run.epoch(1) == run.state.leader_epoch)
    old.release()
    nothing.release()
    yield 200
    run.quick(3, 1)


def an_old_answer_is_read(run: Directed) -> Script:
    """1 leads, then 2, then 1 again. 3 learns of both at once, and reads only then 1's first answer."""
    yield from with_records(run, RECORDS)
    nothing, old = run.hold_answers(2, 1), run.hold_answers(3, 1)
    run.writer.write(1, acks=1)
    yield Until(lambda: run.end(1) == RECORDS + 1)
    yield 2
    deaf = run.hold(3, CONTROLLER)
    yield from run.move_leader(2, by=1)
    yield Until(lambda: run.leader_state(2) is not None and run.end(1) == RECORDS)
    run.writer.write(2, acks=1)
    yield Until(lambda: run.end(1) == RECORDS + 1)
    yield from run.move_leader(1, by=1)
    yield Until(lambda: run.leader_state(1) is not None)
    deaf.release()
    yield Until(lambda: run.epoch(3) == run.state.leader_epoch)
    old.release()
    nothing.release()


def a_torn_answer_is_read(run: Directed) -> Script:
    """1 leads and answers 3, and only what stands before the records leaves it. Then 2 leads, which lacks them, and 1
    takes 2's records in their place. 3 has not heard of 2 when the rest of the answer comes (KAFKA-18723)."""
    yield from with_records(run, RECORDS)
    nothing, unread = run.hold_answers(2, 1), run.hold_fetches(3, 1)
    run.writer.write(1, acks=1)
    yield Until(lambda: run.end(3) == RECORDS + 1)
    run.writer.write(1, 3, acks=1)
    yield Until(lambda: run.end(1) == RECORDS + 4)
    run.narrow(1, 3)
    answer = run.hold_answers(3, 1)
    unread.release()
    yield Until(lambda: any(end.pending_bytes for end in answer.senders()))
    (sender,) = (end for end in answer.senders() if end.pending_bytes)
    run.narrow(1, 3, sender.outgoing.next_chunk_bytes)
    sender.pump()
    deaf = run.hold(3, CONTROLLER)
    yield from run.move_leader(2, by=1)
    yield Until(lambda: run.leader_state(2) is not None and run.end(1) == RECORDS)
    run.writer.write(2, 4, acks=1)
    yield Until(lambda: run.end(1) == RECORDS + 4)
    run.widen(1, 3)
    answer.release()
    yield 200
    deaf.release()
    nothing.release()


def a_middle_that_parts(run: Directed) -> Script:
    """3 leads for a moment and writes, with fewer records of the epoch before than its successor 2 has."""
    yield from with_records(run, RECORDS)
    behind = run.hold_answers(3, 1)
    run.writer.write(1, 3, acks=1)
    yield Until(lambda: run.end(2) == RECORDS + 3)
    deaf = [run.hold(each, CONTROLLER) for each in (1, 2)]
    yield from run.move_leader(3, by=3)
    yield Until(lambda: run.leader_state(3) is not None)
    run.writer.write(3, 5, acks=1)
    yield Until(lambda: run.end(3) == RECORDS + 5)
    yield from run.move_leader(2, by=3)
    for hold in (*deaf, behind):
        hold.release()


def another_record_at_the_end(run: Directed) -> Script:
    """1 has a record that no other replica has. 2 leads after it, and has another record there when 1 fetches."""
    yield from with_records(run, RECORDS)
    nothing = [run.hold_answers(each, 1) for each in (2, 3)]
    run.writer.write(1, acks=1)
    yield Until(lambda: run.end(1) == RECORDS + 1)
    deaf = run.hold(1, CONTROLLER)
    yield from run.move_leader(2, by=2)
    yield Until(lambda: run.leader_state(2) is not None)
    run.writer.write(2, acks=1)
    yield Until(lambda: run.end(3) == RECORDS + 1)
    for hold in (deaf, *nothing):
        hold.release()


def a_tail_is_lost_behind_a_checkpoint(run: Directed) -> Script:
    """3 has written its high watermark checkpoint; then it loses its power, and some of its log."""
    yield from with_records(run, 30)
    yield 3_000
    run.host(3).kill()
    yield Until(lambda: run.fenced(3))
    run.host(3).lose_power()
    run.block(3, 1)
    yield 5
    run.host(3).start()
    yield Until(lambda: not run.fenced(3))
    run.unblock(3, 1)


def a_batch_comes_again(run: Directed) -> Script:
    """A record is committed. Its producer, without an answer, sends it again to 2, which was restarted and leads
    now."""
    yield from with_records(run, RECORDS)
    send = run.writer.write_once(1)
    yield Until(lambda: send.offset == RECORDS)
    run.host(2).kill()
    yield Until(lambda: 2 not in run.state.isr)
    run.host(2).start()
    yield Until(lambda: 2 in run.state.isr)
    yield from run.move_leader(2, by=2)
    yield Until(lambda: run.leader_state(2) is not None)
    run.writer.again(send, 2)
    yield 100


def a_wait_that_is_too_long(run: Directed) -> Script:
    """No follower fetches for longer than a producer waits, and its record is committed after that."""
    yield from with_records(run, RECORDS)
    nothing = [run.hold_answers(each, 1) for each in (2, 3)]
    (send,) = run.writer.write(1)
    yield Until(lambda: send.error != 0)
    for hold in nothing:
        hold.release()
    yield Until(lambda: run.high_watermark(1) == RECORDS + 1)


def a_log_is_cut_in_a_hole(run: Directed) -> Script:
    """3 has a compacted copy of 1's log, without the records that 2 ends with, and leads after 1. Then 2 is elected,
    uncleanly, and 3 cuts its log in the hole, takes 2's records behind it, and is killed."""
    yield Until(run.whole)
    if run.state.leader != 1:
        yield from run.move_leader(1, by=1)
    run.writer.write_keys(1, "ab")
    yield Until(lambda: run.high_watermark(1) == 2)
    yield Until(run.whole)
    nothing = run.hold_answers(3, 1)
    run.writer.write_keys(1, "cde")
    yield Until(lambda: run.end(2) == 5)
    behind = run.hold_answers(2, 1)
    run.writer.write_keys(1, "cdef")
    yield Until(lambda: run.state.isr == (1,) and run.high_watermark(1) == 9)
    run.writer.write_keys(1, "g")
    yield 2_000
    run.host(3).disk.sync_us = _NEVER_SYNCED_US  # what is durable is not looked at by a start
    nothing.release()
    yield Until(lambda: set(run.state.isr) == {1, 3} and run.end(3) == 10)
    unread = run.hold_answers(2, 3)
    run.host(1).kill()
    yield Until(lambda: run.leader_state(3) is not None)
    yield 500
    run.block(3, CONTROLLER)
    run.block(CONTROLLER, 3)
    yield Until(lambda: run.state.leader == 2 and run.leader_state(2) is not None)
    for hold in (behind, unread):
        hold.release()
    run.host(3).disk.sync_us = _SYNCED_SOON_US
    run.unblock(3, CONTROLLER)
    run.unblock(CONTROLLER, 3)
    yield Until(lambda: run.epoch(3) == run.state.leader_epoch and run.end(3) == 5)
    run.writer.write_keys(2, "hi")
    yield Until(lambda: run.end(3) == 7)
    run.host(3).kill()
    yield 200
    run.host(3).start()
    yield Until(lambda: run.end(3) == 7)
    run.host(1).start()
