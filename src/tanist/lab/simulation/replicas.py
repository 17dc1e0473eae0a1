"""The actions of a replica in a turn of its node, as sentences for people.

Compares each hosted partition with its state after the node's last turn: its role, its log, its high watermark, its
maximal ISR. It changes nothing. The why-lines name the rule and its numbers, so a replica that breaks the rule
contradicts its own line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tanist.broker.node import Node
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.lab.replay.moments import Weight
from tanist.replica.leader import LeaderState
from tanist.sim.event_text import ids
from tanist.sim.world.world import Host
from tanist.text import counted
from tanist.wire.ids import TopicIdPartition


class _Seen(NamedTuple):
    """A replica after a turn."""

    life: int
    hosted: HostedPartition
    """Another one in the same life: its log was deleted, and this one does not continue it."""
    end: int
    high_watermark: int
    role: tuple[int, int]
    """(leader epoch, leader)"""
    isr: tuple[int, ...] = ()
    maximal_isr: frozenset[int] = frozenset()


class Did(NamedTuple):
    """The actions of one replica in one turn."""

    partition: str
    text: str
    why: str | None
    weight: Weight


class Replicas:
    """All replicas of the world."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, TopicIdPartition], _Seen] = {}

    def changes(self, host: Host, node: Node) -> list[Did]:
        """After a turn of the node."""
        each = (
            self._change_of(host, node, hosted)
            for hosted in node.replicas
            if not hosted.stale and hosted.log.failed is None and not hosted.topic.startswith("__")
        )
        return [did for did in each if did is not None]

    def _change_of(self, host: Host, node: Node, hosted: HostedPartition) -> Did | None:
        key = (host.node_id, (hosted.topic_id, hosted.index))
        before, now = self._seen.get(key), _now(host, hosted)
        if before == now:
            return None
        self._seen[key] = now
        name = f"{hosted.topic}-{hosted.index}"
        said: list[str] = []
        reasons: list[str] = []
        weight = Weight.PART
        if before is not None and before.life != now.life:
            lost = before.end - now.end
            said.append(f"comes back with its log up to {now.end}" + f": {counted(lost, 'record')} lost" * (lost > 0))
            weight = Weight.TURN if lost > 0 else weight
        if before is None or before.life != now.life or before.hosted is not hosted:
            before = now._replace(role=(-1, -1))
        if before.role != now.role:
            said.append(_role(host.node_id, hosted, now))
            if hosted.leader is not None and now.end > 0:
                reasons.append(f"its epoch begins at {hosted.leader.leader_epoch_start_offset} (rules 11, 22)")
        if now.end > before.end:
            said.append(f"log {before.end} → {now.end}")
        elif now.end < before.end:
            said.append(f"cuts its log {before.end} → {now.end}")
            reasons.append("what its leader does not have is cut off, down to where both logs agree (rules 113, 114)")
            weight = Weight.TURN
        if now.high_watermark != before.high_watermark:
            known = "" if hosted.leader is None else _ends(hosted.leader, now.maximal_isr)
            said.append(f"HW {before.high_watermark} → {now.high_watermark}" + f" ({known})" * bool(known))
            if hosted.leader is not None and now.high_watermark > before.high_watermark:
                reasons.append(_why_committed(node, hosted, hosted.leader))
        if hosted.leader is not None and before.role == now.role:
            said += _membership(before, now)
            if now.maximal_isr - before.maximal_isr:
                reasons.append(_why_joins(hosted.leader, now.maximal_isr - before.maximal_isr))
            elif hosted.leader.pending is not None and now.isr == before.isr:
                reasons.append("until the controller has answered it counts with who is to leave, too (rule 5)")
        return Did(name, ", ".join(said), "; ".join(reasons) or None, weight) if said else None


def _now(host: Host, hosted: HostedPartition) -> _Seen:
    leader, follower = hosted.leader, hosted.follower
    role = (hosted.leader_epoch, host.node_id if leader is not None else -1 if follower is None else follower.leader)
    seen = _Seen(host.lives, hosted, hosted.log.log_end_offset, hosted.replica.high_watermark, role)
    return seen if leader is None else seen._replace(isr=leader.isr, maximal_isr=leader.maximal_isr)


def _role(node_id: int, hosted: HostedPartition, now: _Seen) -> str:
    epoch, leader = now.role
    where = f"log ends at {now.end}, HW {now.high_watermark}"
    if leader == node_id:
        return f"leads epoch {epoch}; {where}, ISR {ids(now.isr)}"
    if leader < 0:
        return f"epoch {epoch}, no leader; {where}"
    return f"follows {leader} in epoch {epoch}; {where}"


def _membership(before: _Seen, now: _Seen) -> list[str]:
    said = []
    if now.isr != before.isr:
        said.append(f"ISR {ids(before.isr)} → {ids(now.isr)}")
    if now.maximal_isr != before.maximal_isr and now.maximal_isr != frozenset(now.isr):
        said.append(f"counts with {ids(sorted(now.maximal_isr))} until it is answered")
    return said


def _ends(leader: LeaderState, brokers: Iterable[int]) -> str:
    """The followers' log ends, as the leader knows them."""
    remotes = leader.remotes
    return ", ".join(f"{each} has {remotes[each].log_end_offset}" for each in sorted(brokers) if each in remotes)


def _why_committed(node: Node, hosted: HostedPartition, leader: LeaderState) -> str:
    """Rules 1 and 4, as Kafka states them, not as the leader counted."""
    needed = min(node.metadata.image.min_insync_replicas(hosted.topic), len(leader.metadata.replicas))
    if len(leader.isr) < needed:
        return f"ISR {ids(leader.isr)} is below min.insync.replicas {needed}: it has to stand still (KIP-966, rule 1)"
    behind = [each for each in sorted(leader.maximal_isr) if _is_behind(leader, each, leader.high_watermark)]
    if behind:
        is_not = "is not" if len(behind) == 1 else "are not"
        return f"{' and '.join(map(str, behind))} {is_not} known to have it: it has to wait (rule 4)"
    return (
        f"all of {ids(sorted(leader.maximal_isr))} have it; ISR {ids(leader.isr)} meets min ISR {needed} (rules 1, 4)"
    )


def _why_joins(leader: LeaderState, joining: frozenset[int]) -> str:
    """Rule 11, with the numbers of the joining replicas."""
    high_watermark, start = leader.high_watermark, leader.leader_epoch_start_offset
    must = f"the high watermark {high_watermark} and the start of the epoch {start} (rule 11)"
    behind = {each for each in joining if _is_behind(leader, each, max(high_watermark, start))}
    return f"{_ends(leader, joining)}{', and must have ' if behind else ': '}{must}"


def _is_behind(leader: LeaderState, broker_id: int, offset: int) -> bool:
    return broker_id in leader.remotes and leader.remotes[broker_id].log_end_offset < offset
