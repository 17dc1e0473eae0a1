"""The sticky assignor of tasks (KIP-1071): balanced, sticky, and a process has a task once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from tanist.coordinator.streams.assignor import Worker, assign_sticky
from tanist.coordinator.streams.tasks import Role, RoleIn, Tasks
from tanist.coordinator.streams.topology import ConfiguredSubtopology


def topology(**tasks: int) -> dict[str, ConfiguredSubtopology]:
    """Subtopologies by name; those that begin with s have state."""
    return {name: ConfiguredSubtopology(count, name.startswith("s"), ()) for name, count in tasks.items()}


def workers(processes: Mapping[str, str], targets: Mapping[str, Tasks] | None = None) -> dict[str, Worker]:
    return {each: Worker(process, (targets or {}).get(each, {})) for each, process in processes.items()}


def tasks_of(target: Tasks, *roles: Role) -> set[tuple[str, int]]:
    return {(key.subtopology_id, index) for key, found in target.items() if key.role in roles for index in found}


def test_tasks_are_spread_over_processes_and_their_members() -> None:
    made = assign_sticky(workers({"a1": "a", "a2": "a", "b1": "b"}), topology(s=6), 0)
    assert {member: len(tasks_of(target, Role.ACTIVE)) for member, target in made.items()} == {
        "a1": 2,
        "a2": 2,
        "b1": 2,
    }


def test_a_newcomer_takes_no_more_than_its_share() -> None:
    first = assign_sticky(workers({"a": "a", "b": "b"}), topology(s=4), 0)
    second = assign_sticky(workers({"a": "a", "b": "b", "c": "c"}, first), topology(s=4), 0)
    assert sorted(len(tasks_of(target, Role.ACTIVE)) for target in second.values()) == [1, 1, 2]
    for member in ("a", "b"):
        assert tasks_of(second[member], Role.ACTIVE) <= tasks_of(first[member], Role.ACTIVE)


def test_the_standby_takes_over_when_a_process_is_gone() -> None:
    first = assign_sticky(workers({"a": "a", "b": "b", "c": "c"}), topology(s=3), 1)
    (lost,) = tasks_of(first["a"], Role.ACTIVE)
    (heir,) = (member for member in "bc" if lost in tasks_of(first[member], Role.STANDBY))
    second = assign_sticky(workers({"b": "b", "c": "c"}, first), topology(s=3), 1)
    assert lost in tasks_of(second[heir], Role.ACTIVE)


def test_a_task_goes_to_whose_disk_is_further_with_it() -> None:
    parts = topology(s=2)
    first = assign_sticky(workers({"a": "a"}), parts, 0)
    new = {
        "b": Worker("b", {}, {("s", 0): 5, ("s", 1): 70}),
        "c": Worker("c", {}, {("s", 0): 50, ("s", 1): 7}),
        "d": Worker("d", {}),
    }
    assert assign_sticky(new, parts, 0)["c"] == {RoleIn(Role.ACTIVE, "s"): frozenset({0})}
    assert assign_sticky(new, parts, 0)["b"] == {RoleIn(Role.ACTIVE, "s"): frozenset({1})}
    with_a = assign_sticky({**workers({"a": "a"}, first), **new}, parts, 1)
    assert tasks_of(with_a["a"], Role.ACTIVE) == {("s", 0)}, "who has a task keeps it, within its share"
    assert tasks_of(with_a["b"], Role.ACTIVE) == {("s", 1)}
    assert tasks_of(with_a["c"], Role.STANDBY) == {("s", 1)}


def test_who_was_to_follow_a_task_comes_before_whose_disk_is_further() -> None:
    before = {"b": {RoleIn(Role.STANDBY, "s"): frozenset({0})}}
    members = {
        "b": Worker("b", before["b"]),
        "c": Worker("c", {}, {("s", 0): 50}),
    }
    assert tasks_of(assign_sticky(members, topology(s=1), 0)["b"], Role.ACTIVE) == {("s", 0)}


def test_tasks_without_state_have_no_standbys() -> None:
    made = assign_sticky(workers({"a": "a", "b": "b"}), topology(n=2), 1)
    assert not any(tasks_of(target, Role.STANDBY) for target in made.values())


def test_one_process_has_no_standbys_of_its_own_tasks() -> None:
    made = assign_sticky(workers({"a1": "a", "a2": "a"}), topology(s=2), 2)
    assert not any(tasks_of(target, Role.STANDBY) for target in made.values())


def test_nobody_has_nothing() -> None:
    assert assign_sticky({}, topology(s=2), 1) == {}


processes = st.dictionaries(st.sampled_from("klmnopqr"), st.sampled_from("abc"), min_size=1)
shapes = st.fixed_dictionaries({}, optional={"s1": st.integers(1, 7), "s2": st.integers(1, 5), "n1": st.integers(1, 5)})


@given(processes, processes, shapes, st.integers(0, 2))
def test_what_holds_for_all_assignments(
    before: dict[str, str], after: dict[str, str], shape: dict[str, int], replicas: int
) -> None:
    parts = topology(**shape)
    all_tasks = {(name, index) for name, part in parts.items() for index in range(part.tasks)}
    first = assign_sticky(workers(before), parts, replicas)
    made = assign_sticky(workers(after, first), parts, replicas)
    assert made == assign_sticky(workers(dict(reversed(after.items())), first), parts, replicas)
    active = Counter(task for target in made.values() for task in tasks_of(target, Role.ACTIVE))
    assert active == Counter(all_tasks), "each task is worked on by one member"
    counts = [len(tasks_of(target, Role.ACTIVE)) for target in made.values()]
    assert max(counts) <= -(-len(all_tasks) // len(after)) + 1
    held: dict[str, list[tuple[str, int]]] = {}
    for member, target in made.items():
        for role in Role:
            held.setdefault(after[member], []).extend(tasks_of(target, role))
    for process, tasks in held.items():
        assert len(tasks) == len(set(tasks)), f"{process} has a task twice"
    standbys = Counter(task for target in made.values() for task in tasks_of(target, Role.STANDBY))
    others = len(set(after.values())) - 1
    assert standbys == Counter({task: min(replicas, others) for task in all_tasks if task[0].startswith("s")})


@given(processes, shapes, st.integers(0, 2))
def test_the_same_members_keep_what_they_have(members: dict[str, str], shape: dict[str, int], replicas: int) -> None:
    first = assign_sticky(workers(members), topology(**shape), replicas)
    again = assign_sticky(workers(members, first), topology(**shape), replicas)
    for member in members:
        assert again[member].get(RoleIn(Role.ACTIVE, "s1")) == first[member].get(RoleIn(Role.ACTIVE, "s1"))
