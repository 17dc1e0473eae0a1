"""The nemesis: it carries out episodes on a cluster, and notes each node's faults with their times.

Owns the order of the steps of each kind. After each episode it heals everything, starts the nodes that are down, and
waits until every broker reports all replicas in sync. It never judges: its notes go into the history for people, and
into the picture.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from tanist.client.metadata import PartitionView
from tanist.lab.jepsen.schedule import Episode
from tanist.lab.jepsen.target import Reach, RunFailed, Target
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable
from tanist.runtime.client.identity import security_by
from tanist.runtime.faults.settings import DiskState

IN_SYNC_PATIENCE_S = 60.0
_ASK_S = 2.0
_LOOK_EVERY_S = 0.1
_CHANGE_PATIENCE_S = 15.0
"""Longer than any lag or session."""


View: TypeAlias = Mapping[int, PartitionView]
"""Partition -> its state at a broker."""


@dataclass(slots=True)
class Mark:
    """A fault of a node; `ended_ns` is 0 while it lasts."""

    node_id: int
    what: str
    """down, paused, cut off, slow, bad disk."""
    began_ns: int
    ended_ns: int = 0


@dataclass(slots=True)
class Played:
    """An episode that was played."""

    episode: Episode
    began_ns: int
    ended_ns: int = 0
    in_sync_ns: int = 0
    """The time when all replicas were in sync again; 0 if they were not."""


def ask_view(address: Address, topic: str, properties: Mapping[str, str]) -> View | None:
    """All partitions in one broker's metadata; None without an answer."""
    try:
        with Client([address], timeout_s=_ASK_S, security=security_by(properties)) as client:
            about = client.metadata([topic]).topics.get(topic)
    except (KafkaError, Unreachable):
        return None
    return None if about is None or about.error_code else about.partitions


class Nemesis:
    """One at a time, on one cluster."""

    def __init__(
        self,
        target: Target,
        topic: str,
        wait: Callable[[float], object],
        say: Callable[[str], None],
        view: Callable[[Address, str], View | None] | None = None,
    ) -> None:
        """`wait` waits for a number of seconds; `view` asks a broker, by default `ask_view`."""
        self._ask = view or partial(ask_view, properties=target.properties)
        self._target = target
        self._topic = topic
        self._wait = wait
        self._say = say
        self._lack = ""
        self.marks: list[Mark] = []
        self.played: list[Played] = []

    # -- episodes

    def play(self, episode: Episode) -> None:
        """Play an episode, until the cluster is whole again or its time is over."""
        play: Callable[[Episode], None] = getattr(self, f"_{episode.kind.replace('-', '_')}")
        played = Played(episode, time.monotonic_ns())
        self.played.append(played)
        try:
            play(episode)
        finally:
            played.ended_ns = time.monotonic_ns()
            self.restore()
        if self.await_in_sync():
            played.in_sync_ns = time.monotonic_ns()
        else:
            self._say(f"    not all replicas in sync {IN_SYNC_PATIENCE_S:.0f} s after the end: {self._lack}")

    def restore(self) -> None:
        """End all faults, and start the nodes that are down."""
        self._target.heal()
        for mark in self.marks:
            if not mark.ended_ns and mark.what != "down":
                mark.ended_ns = time.monotonic_ns()
        for node_id in self._target.node_ids:
            if not self._target.alive(node_id):
                self._start(node_id)

    def await_in_sync(self) -> bool:
        """Wait until each broker reports leaders and full ISRs for all partitions. Returns whether that came in
        time."""
        return self._until(self._in_sync, IN_SYNC_PATIENCE_S)

    # -- kinds

    def _last_replica(self, episode: Episode) -> None:
        """The followers leave; the leader shrinks the ISR as far as it may, and continues; it dies; the followers
        return."""
        leader, followers = self._leader_of(episode.partition)
        with self._gone(episode.how, leader, followers):
            self._say(f"    node {leader} leads partition {episode.partition}: alone ({episode.how})")
            self._await_alone(episode.partition, leader)
            self._wait(episode.lasts_s)
            self._say(f"    node {leader}: killed")
            self._down(leader, self._target.kill)
        self._await_leader(episode.partition, other_than=leader)
        self._wait(episode.lasts_s / 2)

    def _last_standing(self, episode: Episode) -> None:
        """One follower leaves, then the other is killed; the leader, alone now, loses power, and returns first."""
        leader, followers = self._leader_of(episode.partition)
        first, second = followers[0], followers[-1]
        with self._gone(episode.how, first, [first], others=[leader, second]):
            self._say(f"    node {leader} leads partition {episode.partition}; node {first} is away ({episode.how})")
            self._wait(episode.lasts_s / 2)
            self._say(f"    node {second}: killed")
            self._down(second, self._target.kill)
            self._await_alone(episode.partition, leader)
            self._lose_power(leader)
            self._start(leader)
            self._wait(episode.lasts_s / 2)
            self._start(second)
            self._wait(episode.lasts_s / 2)

    def _crash(self, episode: Episode) -> None:
        chosen = episode.nodes[: 2 if episode.how == "two" else 1]
        self._say(f"    nodes {', '.join(map(str, chosen))}: killed")
        for node_id in chosen:
            self._down(node_id, self._target.kill)
        self._wait(episode.lasts_s)

    def _power_loss(self, episode: Episode) -> None:
        self._lose_power(episode.nodes[0])
        self._wait(episode.lasts_s)

    def _pause(self, episode: Episode) -> None:
        with self._struck(episode, "paused", "paused") as node_id:
            self._target.pause(node_id)

    def _partition(self, episode: Episode) -> None:
        ways: dict[str, Reach] = {"network": "network", "nodes": "nodes", "one-way": "one-way"}
        with self._struck(episode, "cut off", f"cut off ({episode.how})") as node_id:
            self._target.cut([node_id], self._target.everybody_else(node_id), ways[episode.how])

    def _slow(self, episode: Episode) -> None:
        with self._struck(episode, "slow", "slow") as node_id:
            self._target.slow(node_id, "clients" if episode.how == "clients" else "nodes")

    def _disk(self, episode: Episode) -> None:
        states: dict[str, DiskState] = {"full": "full", "slow": "slow", "failed": "failed"}
        with self._struck(episode, "bad disk", f"its disk is {episode.how}") as node_id:
            self._target.disk(node_id, states[episode.how])
        # A broker ends when its only log directory is offline; give it the time for that.
        if episode.how != "slow":
            self._until(lambda: not self._target.alive(node_id), _ASK_S)
        if not self._target.alive(node_id):
            self.marks.append(Mark(node_id, "down", time.monotonic_ns()))

    # -- steps

    @contextmanager
    def _struck(self, episode: Episode, what: str, said: str) -> Iterator[int]:
        """The episode's node; what is done to it lasts as long as the episode."""
        node_id = episode.nodes[0]
        self._say(f"    node {node_id}: {said}")
        with self._marked([node_id], what):
            yield node_id
            self._wait(episode.lasts_s)
            self._target.heal()

    @contextmanager
    def _gone(self, how: str, centre: int, nodes: list[int], others: Iterable[int] | None = None) -> Iterator[None]:
        """`nodes` do not replicate: cut off from `others` (from `centre`, if none are named), paused or killed."""
        target = self._target
        if how == "crash":
            for node_id in nodes:
                self._down(node_id, target.kill)
            yield
            for node_id in nodes:
                self._start(node_id)
            return
        with self._marked(nodes, "paused" if how == "pause" else "cut off"):
            if how == "pause":
                for node_id in nodes:
                    target.pause(node_id)
            else:
                target.cut([centre], nodes if others is None else list(others), "nodes")
            yield
            target.heal()

    @contextmanager
    def _marked(self, nodes: Iterable[int], what: str) -> Iterator[None]:
        marks = [Mark(node_id, what, time.monotonic_ns()) for node_id in nodes]
        self.marks += marks
        try:
            yield
        finally:
            for mark in marks:
                mark.ended_ns = mark.ended_ns or time.monotonic_ns()

    def _down(self, node_id: int, kill: Callable[[int], None]) -> None:
        self.marks.append(Mark(node_id, "down", time.monotonic_ns()))
        kill(node_id)

    def _lose_power(self, node_id: int) -> None:
        self.marks.append(Mark(node_id, "down", time.monotonic_ns()))
        self._say(f"    node {node_id}: power lost: {self._target.lose_power(node_id)}")

    def _start(self, node_id: int) -> None:
        if self._target.alive(node_id):
            return
        self._target.start(node_id)
        for mark in self.marks:
            if mark.node_id == node_id and mark.what == "down" and not mark.ended_ns:
                mark.ended_ns = time.monotonic_ns()

    def _until(self, condition: Callable[[], bool], patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            self._wait(_LOOK_EVERY_S)
        return True

    # -- metadata of the brokers

    def _view(self, node_id: int) -> View | None:
        return self._ask(self._target.addresses[self._target.node_ids.index(node_id)], self._topic)

    def _in_sync(self) -> bool:
        for node_id in self._target.node_ids:
            found = self._view(node_id)
            if not found:
                self._lack = f"node {node_id} does not tell"
                return False
            for partition in found.values():
                if partition.leader < 0 or len(partition.isr) < len(partition.replicas):
                    isr = ",".join(map(str, partition.isr)) or "empty"
                    self._lack = f"partition {partition.partition} has leader {partition.leader}, ISR {isr}"
                    return False
        return True

    def _leader_of(self, partition: int) -> tuple[int, list[int]]:
        """A partition's leader, and the others of its replicas."""
        for node_id in self._target.node_ids:
            found = (self._view(node_id) or {}).get(partition)
            if found is not None and found.leader >= 0:
                return found.leader, [replica for replica in found.replicas if replica != found.leader]
        raise RunFailed(f"nobody tells who leads partition {partition}")

    def _await_alone(self, partition: int, leader: int) -> None:
        """Wait until the leader is alone in the ISR. If that does not happen (it need not), the episode continues."""

        def alone() -> bool:
            found = (self._view(leader) or {}).get(partition)
            return found is not None and found.isr == (leader,)

        if not self._until(alone, _CHANGE_PATIENCE_S):
            self._say(f"    the ISR of partition {partition} has not shrunk to node {leader}")

    def _await_leader(self, partition: int, other_than: int) -> None:
        """Wait until another broker leads. That need not happen, if no replica is eligible."""

        def led() -> bool:
            views = [self._view(node_id) for node_id in self._target.node_ids if node_id != other_than]
            leaders = {view[partition].leader for view in views if view is not None and partition in view}
            return bool(leaders - {-1, other_than})

        if not self._until(led, _CHANGE_PATIENCE_S):
            self._say(f"    nobody else leads partition {partition}")
