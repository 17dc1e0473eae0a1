"""Directed runs about recoveries and about the controller itself: answers that are old, or too early.

Each function is a script (`directed`), named for its events. `simulator` says which broken rule it shows.
"""

from __future__ import annotations

from typing import Any

from tanist.client.admin import create_topics_request, delete_topic_request, new_topic
from tanist.lab.mutations.directed import CONTROLLER, Directed, Script, Until, with_records

RECORDS = 5
_CREATE_TOPICS_VERSION = 7
_DELETE_TOPICS_VERSION = 5
_NAME = "again"


def the_longest_log_is_old(run: Directed) -> Script:
    """3 has a long tail of an older epoch that no other replica had. Then all replicas in sync have crashed."""
    yield from with_records(run, RECORDS, leader=3)
    nothing = [run.hold_answers(each, 3) for each in (1, 2)]
    run.writer.write(3, 10, acks=1)
    yield Until(lambda: run.end(3) == RECORDS + 10)
    run.host(3).kill()
    yield Until(lambda: run.state.leader in (1, 2))
    for hold in nothing:
        hold.release()
    for each in (1, 2):
        run.block(3, each)
    run.host(3).start()
    leader = run.state.leader
    other = 3 - leader
    yield Until(lambda: not run.fenced(3) and run.leader_state(leader) is not None)
    run.writer.write(leader)
    yield Until(lambda: run.high_watermark(leader) == RECORDS + 1)
    yield from _both_crash(run, leader, other)
    for each in (1, 2):
        run.unblock(3, each)


def _both_crash(run: Directed, leader: int, other: int) -> Script:
    """All that are in sync crash, one after the other, come back and are in LastKnownElr. Then there is an election."""
    run.host(other).kill()
    yield Until(lambda: run.state.elr == (other,))
    run.block(other, leader)
    run.host(other).start()
    yield Until(lambda: not run.fenced(other))
    run.host(leader).kill()
    yield Until(lambda: run.state.leader < 0)
    run.host(leader).start()
    yield Until(lambda: run.state.leader >= 0)
    run.unblock(other, leader)


def a_later_epoch_in_vain(run: Directed) -> Script:
    """1 leads in between and writes in vain; 2, the leader again, commits a record that it had from before, and writes
    none. Then all replicas in sync have crashed. They have what is committed, and 1 has the later epoch.
    """
    yield from with_records(run, RECORDS, leader=2)
    holds = [run.hold_answers(each, 2) for each in (1, 3)]
    run.writer.write(2, acks=1)
    yield Until(lambda: run.end(2) == RECORDS + 1)
    holds += [run.hold_answers(each, 1) for each in (2, 3)]
    yield from run.move_leader(1, by=3)
    yield Until(lambda: run.leader_state(1) is not None)
    run.writer.write(1, acks=1)
    yield Until(lambda: run.end(1) == RECORDS + 1)
    yield from run.move_leader(2, by=3)
    run.host(1).kill()
    for hold in holds:
        hold.release()
    for each in (2, 3):
        run.block(1, each)
    yield Until(lambda: set(run.state.isr) == {2, 3} and run.high_watermark(2) == RECORDS + 1)
    run.host(1).start()
    yield Until(lambda: not run.fenced(1))
    yield from _both_crash(run, 2, 3)
    for each in (2, 3):
        run.unblock(1, each)


def nobody_eligible(run: Directed) -> Script:
    """3, 2 and 1 have crashed one after the other; 2 is back, is in neither ISR nor ELR, and cannot reach 1."""
    yield from with_records(run, RECORDS)
    run.host(3).kill()
    yield Until(lambda: set(run.state.isr) == {1, 2})
    run.host(2).kill()
    yield Until(lambda: run.state.elr == (2,))
    run.block(2, 1)
    run.host(2).start()
    yield Until(lambda: not run.fenced(2))
    run.host(1).kill()
    yield Until(lambda: run.state.leader < 0)


def everybody_has_crashed(run: Directed) -> Script:
    """They crash one after the other, until none is left that surely has all records; then they are back."""
    yield from nobody_eligible(run)
    run.host(1).start()
    yield Until(lambda: not run.fenced(1))
    yield 1_000
    run.unblock(2, 1)
    run.host(3).start()


def the_last_one_is_leaving(run: Directed) -> Script:
    """3 is down, and 1 on its way out: it has handed its leadership to 2, which dies."""
    yield from with_records(run, RECORDS)
    run.host(3).kill()
    yield Until(lambda: set(run.state.isr) == {1, 2})
    run.stop(1)
    yield Until(lambda: run.leaving(1))
    late = run.hold(1, CONTROLLER, "to-controller")
    run.host(2).kill()
    yield Until(lambda: run.fenced(2))
    yield 100
    late.release()
    yield Until(lambda: not run.host(1).up)
    for each in (1, 2, 3):
        run.host(each).start()


def an_answer_from_before_the_loss(run: Directed) -> Script:
    """1 and 2 have crashed and are asked for their logs. 1 answers, and loses its power before the answer is read."""
    yield from nobody_eligible(run)
    second = run.hold(CONTROLLER, 2, "to-broker-2")
    run.host(1).start()
    yield Until(lambda: _has_its_last_answer_to_give(run, 1))
    first = run.hold(CONTROLLER, 1, "to-broker-1")
    yield 20
    run.host(1).kill()
    yield Until(lambda: run.fenced(1))
    run.host(1).lose_power()
    yield 5
    run.host(1).start()
    yield Until(lambda: not run.fenced(1))
    first.release()
    second.release()
    yield Until(lambda: run.state.leader >= 0)
    run.unblock(2, 1)
    run.host(3).start()


def _has_its_last_answer_to_give(run: Directed, broker_id: int) -> bool:
    node = run.host(CONTROLLER).node
    service = None if node is None else node.quorum.controller_service
    return service is not None and service.inquiries.has_last_answer_to_give(broker_id)


def a_controller_alone(run: Directed) -> Script:
    """The active controller is cut off from the others, and asked for a topic by the broker beside it."""
    yield Until(run.whole)
    active = run.controller()
    others = [each for each in (1, 2, 3) if each != active]
    for each in others:
        run.block(active, each)
        run.block(each, active)

    def heard(response: Any) -> None:
        done = response is not None and not response.topics[0].error_code
        if done and _NAME not in run.image.topic_ids:
            run.fail("S16", f"topic {_NAME} is said to be created, and no quorum has committed it")

    _create(run, active, heard)
    yield 4_000
    for each in others:
        run.unblock(active, each)
        run.unblock(each, active)


def a_topic_of_the_same_name(run: Directed) -> Script:
    """While 3 is down a topic is deleted, and another one is created with its name."""
    yield from with_records(run, RECORDS)
    _create(run, 1)
    yield Until(lambda: _led(run))
    run.writer.write(run.partition(_NAME).leader, 5, topic=_NAME)
    yield Until(lambda: all(_end(run, each) == 5 for each in (1, 2, 3)))
    run.host(3).kill()
    yield Until(lambda: run.fenced(3) and _led(run))
    run.send(delete_topic_request(_NAME), _DELETE_TOPICS_VERSION, to=1)
    yield Until(lambda: _NAME not in run.image.topic_ids)
    run.forget_topic(_NAME)
    _create(run, 1)
    yield Until(lambda: _led(run))
    run.writer.write(run.partition(_NAME).leader, 3, topic=_NAME)
    yield Until(lambda: all(_end(run, each) == 3 for each in (1, 2)))
    run.host(3).start()
    yield Until(lambda: not run.fenced(3))


def _create(run: Directed, by: int, heard: Any = lambda response: None) -> None:
    request = create_topics_request(new_topic(_NAME, partitions=1, replication_factor=3), timeout_ms=5_000)
    run.send(request, _CREATE_TOPICS_VERSION, to=by, heard=heard)


def _led(run: Directed) -> bool:
    """The topic exists, and its leader knows it."""
    topic_id = run.image.topic_ids.get(_NAME)
    return topic_id is not None and run.leader(topic_id) == run.partition(_NAME).leader


def _end(run: Directed, node_id: int) -> int:
    """The end of the present topic's log, on a node that knows it."""
    hosted = run.hosted(run.image.topic_ids[_NAME]).get(node_id)
    return -1 if hosted is None else hosted.log.log_end_offset
