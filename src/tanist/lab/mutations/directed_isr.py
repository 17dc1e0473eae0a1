"""Directed runs about the members of an ISR: late AlterPartition requests and answers, restarts, lagging followers.

Each function is a script (`directed`), named for its events. `simulator` says which broken rule it shows.
Broker 1 leads at first, 2 and 3 follow it, node 11 is the controller.
"""

from __future__ import annotations

from tanist.lab.mutations.directed import CONTROLLER, Directed, Script, Until, with_records

RECORDS = 5
"""Number of records that are written and committed everywhere before the script acts."""


def another_life_is_added(run: Directed) -> Script:
    """While the leader's proposal to add 3 is under way, 3 loses its power and returns, registered again and empty."""
    yield from with_records(run, RECORDS)
    behind = run.hold_answers(3, 1)
    run.writer.write(1)
    yield Until(lambda: 3 not in run.state.isr)
    behind.release()
    yield Until(lambda: _proposed(run, 3))
    late = run.hold(CONTROLLER, 1, "to-controller")
    run.host(3).kill()
    yield Until(lambda: run.fenced(3))
    run.host(3).lose_power()
    run.block(3, 1)
    yield 5
    run.host(3).start()
    yield Until(lambda: not run.fenced(3))
    late.release()
    yield 300
    run.unblock(3, 1)


def a_fenced_one_is_added(run: Directed) -> Script:
    """While the leader's proposal to add 3 is under way, 3 dies, and is fenced."""
    yield from with_records(run, RECORDS)
    behind = run.hold_answers(3, 1)
    run.writer.write(1)
    yield Until(lambda: 3 not in run.state.isr)
    behind.release()
    yield Until(lambda: _proposed(run, 3))
    late = run.hold(CONTROLLER, 1, "to-controller")
    run.host(3).kill()
    yield Until(lambda: run.fenced(3))
    late.release()
    yield 300
    run.host(3).start()


def an_answer_is_lost(run: Directed) -> Script:
    """The controller adds 3. The leader gets neither that answer nor the metadata, and its connections break."""
    yield from with_records(run, RECORDS)
    behind = run.hold_answers(3, 1)
    run.writer.write(1)
    yield Until(lambda: 3 not in run.state.isr)
    yield from _isr_known(run)
    deaf = run.hold(1, CONTROLLER)
    behind.release()
    yield Until(lambda: 3 in run.state.isr)
    run.reset(1, CONTROLLER)
    yield 100
    deaf.release()


def a_leader_that_knows_too_little(run: Directed) -> Script:
    """1 dies before 2 has its high watermark. 3, which lacks records, fetches from 2, the only member of the ISR."""
    yield from with_records(run, RECORDS)
    run.host(3).kill()
    yield Until(lambda: 3 not in run.state.isr)
    run.block(3, 1)
    run.host(3).start()
    yield Until(lambda: not run.fenced(3))
    run.writer.write(1)
    yield Until(lambda: run.end(2) == RECORDS + 1)
    late = run.hold_answers(2, 1)
    yield Until(lambda: run.high_watermark(1) == RECORDS + 1)
    run.slow(2, 3, 500)
    run.host(1).kill()
    late.release()
    yield Until(lambda: run.leader_state(2) is not None)
    yield 1_500
    run.quick(2, 3)
    run.unblock(3, 1)
    run.host(1).start()


def an_old_wish_comes_last(run: Directed) -> Script:
    """The leader proposes to drop 3. Before the controller gets the proposal, 2 is fenced, and unfenced in the same
    life."""
    yield from with_records(run, RECORDS)
    run.block(2, CONTROLLER)
    yield 300
    behind = run.hold_answers(3, 1)
    run.writer.write(1, acks=1)
    yield Until(lambda: _pending(run))
    late = run.hold(CONTROLLER, 1, "to-controller")
    yield Until(lambda: run.fenced(2))
    run.unblock(2, CONTROLLER)
    yield Until(lambda: not run.fenced(2))
    yield Until(lambda: _partition_epoch(run) == run.state.partition_epoch)
    late.release()
    yield 300
    behind.release()


def a_follower_catches_up_slowly(run: Directed) -> Script:
    """3 is out of the ISR and far behind; each of its fetches is answered late, with few records."""
    yield from with_records(run, RECORDS)
    behind = run.hold_answers(3, 1)
    run.writer.write(1)
    yield Until(lambda: 3 not in run.state.isr)
    run.writer.write(1, 20)
    yield Until(lambda: run.high_watermark(1) == RECORDS + 21)
    run.slow(1, 3, 100)
    behind.release()
    yield Until(lambda: run.end(3) > RECORDS + 4)
    run.quick(1, 3)


def an_answer_comes_after_the_next_wish(run: Directed) -> Script:
    """The leader learns from the metadata that 2 was added, and proposes to add 3 before the answer about 2 arrives."""
    yield from with_records(run, RECORDS)
    second, third = run.hold_answers(2, 1), run.hold_answers(3, 1)
    run.writer.write(1, acks=1)
    yield Until(lambda: run.state.isr == (1,))
    yield from _isr_known(run)
    late = run.hold(1, CONTROLLER, "to-controller")
    second.release()
    yield Until(lambda: set(run.state.isr) == {1, 2} and not _pending(run))
    third.release()
    yield Until(lambda: _proposed(run, 3))
    away = run.hold_fetches(3, 1)
    late.release()
    yield 100
    away.release()


def _isr_known(run: Directed) -> Script:
    """Broker 1 knows the ISR, and has all answers of the controller about it."""
    yield Until(lambda: not _pending(run) and _partition_epoch(run) == run.state.partition_epoch)
    yield 5


def a_move_with_too_few(run: Directed) -> Script:
    """An operator replaces 1 by 4. Before 4 has all records, 2 and 3 are fenced."""
    yield Until(run.whole)
    run.reassign((1, 2, 3), by=1)
    yield Until(lambda: run.state.replicas == (1, 2, 3))
    yield from with_records(run, RECORDS)
    nothing = run.hold_answers(4, 1)
    run.reassign((2, 3, 4), by=1)
    yield Until(lambda: run.state.removing == (1,))
    for each in (2, 3):
        run.host(each).kill()
    yield Until(lambda: run.state.isr == (1,))
    nothing.release()
    yield 500
    for each in (2, 3):
        run.host(each).start()
    yield Until(lambda: run.state.replicas == (2, 3, 4))


def _pending(run: Directed) -> bool:
    """Broker 1 has proposed another ISR, and has no answer."""
    leader = run.leader_state(1)
    return leader is not None and leader.pending is not None


def _proposed(run: Directed, broker_id: int) -> bool:
    leader = run.leader_state(1)
    return leader is not None and leader.pending is not None and broker_id in leader.pending.proposed


def _partition_epoch(run: Directed) -> int:
    leader = run.leader_state(1)
    return -1 if leader is None else leader.partition_epoch
