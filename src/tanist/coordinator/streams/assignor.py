"""The sticky assignor of tasks: balanced over members, standbys on other processes than the task itself.

Pure: the same members, tasks and former target give the same target on every broker. A task stays with its member while
that has no more than its share; else it goes to one that was its standby, and then to the process with the least load.
A process has a task once at most, in whatever role.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from tanist.coordinator.streams.tasks import Role, RoleIn, Tasks
from tanist.coordinator.streams.topology import ConfiguredSubtopology

STICKY: Final = "sticky"

_Task: TypeAlias = tuple[str, int]
"""Subtopology and partition."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A member, as the assignor sees it."""

    process_id: str
    target: Tasks
    """Its former target."""


def assign_sticky(
    members: Mapping[str, Worker], subtopologies: Mapping[str, ConfiguredSubtopology], standby_replicas: int
) -> dict[str, Tasks]:
    """The target of each member. Standbys that find no process are left out."""
    if not members:
        return {}
    tasks = [(name, index) for name, part in subtopologies.items() for index in range(part.tasks)]
    stateful = [task for task in tasks if subtopologies[task[0]].is_stateful]
    assignment = _Assignment(members)
    assignment.assign_active(tasks)
    if standby_replicas > 0:
        assignment.assign_standbys(stateful, standby_replicas)
    return assignment.targets()


class _Share:
    """How many tasks a member may keep: the number over the members, rounded up, of what is left for those left."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members

    @property
    def size(self) -> int:
        return -(-self._tasks // self._members) if self._members > 0 else 0

    def took(self, count: int) -> None:
        """A member has so many tasks now."""
        if count == self.size:
            self._tasks -= count
            self._members -= 1


class _Assignment:
    """An assignment that is being made."""

    def __init__(self, members: Mapping[str, Worker]) -> None:
        self._members = {member_id: members[member_id] for member_id in sorted(members)}
        self._processes: dict[str, list[str]] = defaultdict(list)
        self._before: dict[tuple[Role, _Task], list[str]] = defaultdict(list)
        for member_id, member in self._members.items():
            self._processes[member.process_id].append(member_id)
            for key, indexes in member.target.items():
                for index in indexes:
                    self._before[key.role, (key.subtopology_id, index)].append(member_id)
        self._targets: dict[str, dict[RoleIn, set[int]]] = {member_id: {} for member_id in self._members}
        self._counts = dict.fromkeys(self._members, 0)
        self._on_process: dict[str, set[_Task]] = {process_id: set() for process_id in self._processes}

    def targets(self) -> dict[str, Tasks]:
        return {
            member_id: {key: frozenset(indexes) for key, indexes in target.items()}
            for member_id, target in self._targets.items()
        }

    def assign_active(self, tasks: Iterable[_Task]) -> None:
        left = sorted(tasks, key=lambda task: (task[1], task[0]))
        share = _Share(len(left), len(self._members))
        for role in (Role.ACTIVE, Role.STANDBY):
            left = [task for task in left if not self._keep(task, role, share)]
        queue = self._queue()
        for task in sorted(left):
            _, process_id = heappop(queue)
            self._add(self._least_loaded(process_id), task, Role.ACTIVE)
            heappush(queue, (self._load(process_id), process_id))

    def _keep(self, task: _Task, role: Role, share: _Share) -> bool:
        """Leave it with a member that had it in this role, if that has not its share yet."""
        had = self._before.get((role, task))
        if not had:
            return False
        member_id = min(had, key=self._load_of)
        if self._counts[member_id] >= share.size:
            return False
        share.took(self._add(member_id, task, Role.ACTIVE))
        return True

    def assign_standbys(self, tasks: Iterable[_Task], replicas: int) -> None:
        """Each to members that had the task before, within their share; then to the processes with the least load."""
        order = sorted(tasks, key=lambda task: (task[1], task[0]), reverse=True)
        share = _Share(sum(self._counts.values()) + len(order) * replicas, len(self._members))
        left: list[tuple[_Task, int]] = []
        for task in order:
            kept = sum(self._keep_standby(task, share) for _ in range(replicas))
            if kept < replicas:
                left.append((task, replicas - kept))
        queue = self._queue()
        for task, wanted in sorted(left, reverse=True):
            for _ in range(wanted):
                self._to_least_loaded(task, queue)

    def _keep_standby(self, task: _Task, share: _Share) -> bool:
        had = [*self._before.get((Role.ACTIVE, task), ()), *self._before.get((Role.STANDBY, task), ())]
        for member_id in sorted(had, key=self._load_of):
            process_id = self._members[member_id].process_id
            if task not in self._on_process[process_id] and self._counts[member_id] < share.size:
                share.took(self._add(member_id, task, Role.STANDBY))
                return True
        return False

    def _to_least_loaded(self, task: _Task, queue: list[tuple[float, str]]) -> None:
        passed: list[tuple[float, str]] = []
        while queue:
            found = heappop(queue)
            process_id = found[1]
            if task not in self._on_process[process_id]:
                self._add(self._least_loaded(process_id), task, Role.STANDBY)
                passed.append((self._load(process_id), process_id))
                break
            passed.append(found)
        for each in passed:
            heappush(queue, each)

    # -- load

    def _add(self, member_id: str, task: _Task, role: Role) -> int:
        """How many tasks the member has then."""
        self._targets[member_id].setdefault(RoleIn(role, task[0]), set()).add(task[1])
        self._on_process[self._members[member_id].process_id].add(task)
        self._counts[member_id] += 1
        return self._counts[member_id]

    def _load(self, process_id: str) -> float:
        return len(self._on_process[process_id]) / len(self._processes[process_id])

    def _load_of(self, member_id: str) -> tuple[float, int, str]:
        return self._load(self._members[member_id].process_id), self._counts[member_id], member_id

    def _least_loaded(self, process_id: str) -> str:
        return min(self._processes[process_id], key=lambda member_id: (self._counts[member_id], member_id))

    def _queue(self) -> list[tuple[float, str]]:
        queue = [(self._load(process_id), process_id) for process_id in self._processes]
        heapify(queue)
        return queue
