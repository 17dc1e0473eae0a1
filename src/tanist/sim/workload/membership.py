"""Members of groups for exactly-once applications: which instance reads which partition (KIP-447).

Owns the members, of both protocols, that commit nothing by themselves, and the newest assignment of each partition
(X11).
"""

from __future__ import annotations

from collections.abc import Iterable

from tanist.client.topic_partition import TopicPartition
from tanist.sim.workload.group_client import ClientContext, GroupPartition, Witness
from tanist.sim.workload.group_members import SimGroupMember
from tanist.sim.world.clock import SimClock, stream
from tanist.sim.world.scheduler import Process
from tanist.sim.world.world import BROKER_PORT, World

CLASSIC, CONSUMER = "classic", "consumer"


class Assignments(Witness):
    """The newest assignment of each partition of each group, and when its member got it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._newest: dict[GroupPartition, tuple[int, str, int]] = {}
        """Generation or member epoch, member, time."""

    def since(self, group: str, partition: TopicPartition, generation: int, member_id: str) -> int | None:
        """When another member got the partition in a later generation."""
        epoch, owner, at_us = self._newest.get((group, *partition), (-1, "", 0))
        return at_us if epoch > generation and owner != member_id else None

    def assigned(
        self,
        client: str,
        group: str,
        member_id: str,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        classic: bool,
    ) -> None:
        for partition in partitions:
            known = self._newest.get((group, *partition))
            if known is None or epoch > known[0]:
                self._newest[group, *partition] = (epoch, member_id, self._world.now_us)

    def revoked(self, client: str, group: str, partitions: Iterable[TopicPartition]) -> None:
        self._world.counts["transactions: partitions revoked"] += 1


def member_of(
    world: World, process: Process, kind: str, name: str, group: str, topic: str, assignments: Assignments
) -> SimGroupMember:
    """A member that lives in the process of its application."""
    world.clients.append(name)
    context = ClientContext(
        clock=SimClock(world.scheduler, process),
        network=world.network.view(name, process),
        bootstrap=[(host.name, BROKER_PORT) for host in world.brokers],
        rng=stream(world.seed, name),
        witness=assignments,
        login=world.login_of(name),
    )
    return SimGroupMember(
        context,
        name,
        group,
        (topic,),
        is_classic=kind == CLASSIC,
        session_timeout_ms=1_500,
        rebalance_timeout_ms=2_000,
        pause_ms=None,
    )
