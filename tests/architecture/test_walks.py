"""How far a reader walks who follows a chain of calls (tools/walks.py): the limits, and what the tool counts."""

from __future__ import annotations

from typing import Any

import pytest

from tools.walks import Call, Function, Reader, Recorder, fence_walk, fetch_walk, produce_walk, seed_walk


def test_a_seed_from_command_to_verdict() -> None:
    walk = seed_walk()
    assert {"tanist.cli.main", "tanist.lab.simulation.running", "tanist.sim.run.chaos_run"} <= set(walk.files)
    assert len(walk.files) <= 15, walk.files
    assert walk.returns <= 10, "\n".join(walk.steps)


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_produce_from_its_frame_to_its_acknowledgement(replicas: int) -> None:
    walk = produce_walk(replicas)
    assert {"tanist.broker.network.client_connection", "tanist.log.appender", "tanist.broker.turn"} <= set(walk.files)
    assert ("tanist.broker.api.fetch" in walk.files) == (replicas > 1), "the follower's fetch acknowledges it"
    assert walk.returns <= 10, "\n".join(walk.steps)


def test_a_fetch_from_its_frame_to_its_answer() -> None:
    walk = fetch_walk()
    assert {"tanist.broker.api.fetch", "tanist.replica.reads", "tanist.log.log"} <= set(walk.files)
    assert walk.returns <= 6, "\n".join(walk.steps)


def test_from_the_end_of_a_leader_to_the_next_leader() -> None:
    walk = fence_walk()
    decided = {"tanist.controller.partitions.fencing", "tanist.controller.partitions.change"}
    assert {*decided, "tanist.quorum.leader", "tanist.replica.leader"} <= set(walk.files)
    assert any("RaftNode.log_synced" in step for step in walk.steps), "it is committed by the leader's own sync"
    assert walk.returns <= 4, "\n".join(walk.steps)


def walked(*roots: Any) -> tuple[str, int]:
    """The files in the order in which they are opened, and the returns. A root is (function, its calls...)."""

    def call(shape: tuple[Any, ...]) -> Any:
        name, *calls = shape
        made = Call(Function(name[0], name, 1))
        made.calls = [call(each) for each in calls]
        return made

    walk = Reader([call(root) for root in roots]).walk
    return "".join(walk.files), walk.returns


def test_a_glance_is_no_return() -> None:
    assert walked(("a1", ("b1",), ("c1",), ("b2",))) == ("abc", 0)
    assert walked(("a1", ("b1", ("b2",)))) == ("ab", 0), "calls within a file are no steps"


def test_a_layer_that_passes_on_costs_a_file_and_each_way_up_a_return() -> None:
    assert walked(("a1", ("b1", ("c1",)))) == ("abc", 0), "the reader has arrived"
    assert walked(("a1", ("b1", ("c1",)), ("d1",))) == ("abcd", 1)
    assert walked(("a1", ("b1", ("c1", ("d1",))), ("e1",))) == ("abcde", 2), "by b, where nothing follows"


def test_layers_that_call_each_other_by_turns_cost_a_return_each_time() -> None:
    assert walked(("a1", ("b1", ("a2", ("b2", ("c1",)))))) == ("abc", 2)


def test_a_function_is_read_once_with_all_that_it_ever_calls() -> None:
    once = ("b1", ("c1",))
    assert walked(("a1", once, once, once)) == ("abc", 0)
    assert walked(("a1", ("b1",), ("b1", ("c1",)))) == ("abc", 0)


def test_what_an_event_leaves_open_is_not_walked_up() -> None:
    assert walked(("a1", ("b1", ("c1", ("d1",)))), ("e1", ("f1",))) == ("abcdef", 0)
    assert walked(("a1", ("b1", ("c1",))), ("a2", ("d1",))) == ("abcd", 1)


def test_calls_are_recorded_through_code_that_is_out_of_scope() -> None:
    recorder = Recorder(lambda module: module == __name__)
    with recorder.recording():
        list(map(_outer, sorted([2, 1])))
    (first, second) = recorder.roots
    assert first.function == second.function == Function(__name__, "_outer", _outer.__code__.co_firstlineno)
    assert [each.function.name for each in first.find("_inner")] == ["_outer", "_inner"]
    assert first.find("nobody") is None


def _outer(number: int) -> int:
    return max(map(_inner, [number]))


def _inner(number: int) -> int:
    return number
