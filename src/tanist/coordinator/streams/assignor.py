"""The sticky assignor of tasks: balanced over members, standbys on other processes than the task itself.

Pure: the same members, tasks, former target and offsets give the same target. A task stays with its member while that
has no more than its share; else it goes to one that followed it or has said how far its disk is with it, and then to
the process with the least load. A process has a task once at most, in whatever role. The rules are those of Apache
Kafka 4.4's `StickyTaskAssignor`; racks and tags of clients count for nothing there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
    reached: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """How far it is with tasks, as far as it has said so."""


def assign_sticky(
    members: Mapping[str, Worker], subtopologies: Mapping[str, ConfiguredSubtopology], standby_replicas: int
) -> dict[str, Tasks]:
    """The target of each member. Standbys that find no process are left out."""
    if not members:
        return {}
    tasks = [(name, index) for name, part in subtopologies.items() for index in range(part.tasks)]
    stateful = [task for task in tasks if subtopologies[task[0]].is_stateful]
    assignment = _Assignment(members, len(tasks), len(tasks) + len(stateful) * standby_replicas)
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

    def __init__(self, members: Mapping[str, Worker], active: int, total: int) -> None:
        """`active`: the number of tasks; `total`: with standbys."""
        self._members = {member_id: members[member_id] for member_id in sorted(members)}
        self._active_share, self._share = _Share(active, len(members)), _Share(total, len(members))
        self._processes: dict[str, list[str]] = defaultdict(list)
        self._owners: dict[_Task, str] = {}
        """Who was to work on each task."""
        ranked: dict[_Task, list[tuple[bool, int, str]]] = defaultdict(list)
        for member_id, member in self._members.items():
            self._processes[member.process_id].append(member_id)
            followed: set[_Task] = set()
            for key, indexes in member.target.items():
                tasks = {(key.subtopology_id, index) for index in indexes}
                if key.role is Role.ACTIVE:
                    self._owners.update(dict.fromkeys(tasks, member_id))
                elif key.role is Role.STANDBY:
                    followed |= tasks
            for task in followed | member.reached.keys():
                ranked[task].append((task not in followed, -member.reached.get(task, 0), member_id))
        self._heirs = {task: [each[-1] for each in sorted(found)] for task, found in ranked.items()}
        """Who may have a task's state: first those that were to follow it, then those that are further with it."""
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
        left = [task for task in left if not self._keep(task, self._owners.get(task))]
        left = [task for task in left if not self._keep(task, self._least_loaded_heir(task))]
        queue = self._queue()
        for task in sorted(left):
            _, process_id = heappop(queue)
            self._add(self._least_loaded(process_id), task, Role.ACTIVE)
            heappush(queue, (self._load(process_id), process_id))

    def _keep(self, task: _Task, member_id: str | None) -> bool:
        """Give it to this member, if that has not its share yet."""
        if member_id is None or self._counts[member_id] >= self._active_share.size:
            return False
        self._add(member_id, task, Role.ACTIVE)
        return True

    def _least_loaded_heir(self, task: _Task, *, elsewhere: bool = False) -> str | None:
        """The first, unless a later one has less to do, and so has its process. `elsewhere`: where the task is not."""
        found: str | None = None
        for member_id in self._heirs.get(task, ()):
            process_id = self._members[member_id].process_id
            if elsewhere and task in self._on_process[process_id]:
                continue
            if found is None or (
                self._load(process_id) < self._load(self._members[found].process_id)
                and self._counts[member_id] < self._counts[found]
            ):
                found = member_id
        return found

    def assign_standbys(self, tasks: Iterable[_Task], replicas: int) -> None:
        """Each to members that had the task before, within their share; then to the processes with the least load."""
        left: list[tuple[_Task, int]] = []
        for task in sorted(tasks, key=lambda task: (task[1], task[0]), reverse=True):
            kept = 0
            while kept < replicas and self._keep_standby(task):
                kept += 1
            if kept < replicas:
                left.append((task, replicas - kept))
        queue = self._queue()
        for task, wanted in sorted(left, reverse=True):
            for _ in range(wanted):
                self._to_least_loaded(task, queue)

    def _keep_standby(self, task: _Task) -> bool:
        for member_id in (self._owners.get(task), self._least_loaded_heir(task, elsewhere=True)):
            if (
                member_id is not None
                and task not in self._on_process[self._members[member_id].process_id]
                and self._counts[member_id] < self._share.size
            ):
                self._add(member_id, task, Role.STANDBY)
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

    def _add(self, member_id: str, task: _Task, role: Role) -> None:
        self._targets[member_id].setdefault(RoleIn(role, task[0]), set()).add(task[1])
        self._on_process[self._members[member_id].process_id].add(task)
        self._counts[member_id] += 1
        if role is Role.ACTIVE:
            self._active_share.took(self._counts[member_id])
        self._share.took(self._counts[member_id])

    def _load(self, process_id: str) -> float:
        return len(self._on_process[process_id]) / len(self._processes[process_id])

    def _least_loaded(self, process_id: str) -> str:
        return min(self._processes[process_id], key=lambda member_id: (self._counts[member_id], member_id))

    def _queue(self) -> list[tuple[float, str]]:
        queue = [(self._load(process_id), process_id) for process_id in self._processes]
        heapify(queue)
        return queue
