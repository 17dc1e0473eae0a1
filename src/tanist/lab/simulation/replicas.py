"""The actions of a replica in a turn of its node, as sentences for people.

Compares each hosted partition with its state after the node's last turn: its role, its log, its high watermark, its
maximal ISR. It changes nothing. The why-lines name the rule and its numbers, so a replica that breaks the rule
contradicts its own line.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.node import Node
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.lab.replay.moments import Weight
from tanist.replica.leader import LeaderState
from tanist.sim.event_text import ids
from tanist.sim.world.world import Host
from tanist.wire.ids import TopicIdPartition


@dataclass(slots=True)
class _Seen:
    """A replica after a turn."""

    life: int
    end: int
    high_watermark: int
    role: tuple[int, int]
    """(leader epoch, leader)"""
    isr: tuple[int, ...] = ()
    maximal_isr: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Did:
    """The actions of one replica in one turn."""

    partition: str
    text: str
    why: str | None
    weight: Weight


class Replicas:
    """All replicas of the world."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, TopicIdPartition], _Seen] = {}

    def look(self, host: Host, node: Node) -> list[Did]:
        """After a turn of the node."""
        done: list[Did] = []
        self._forget_deleted(host, node)
        for hosted in node.replicas:
            if not hosted.stale and hosted.log.failed is None and not hosted.topic.startswith("__"):
                did = self._look(host, node, hosted)
                if did is not None:
                    done.append(did)
        return done

    def _forget_deleted(self, host: Host, node: Node) -> None:
        """Forget a log that was deleted in this life: the next one does not continue it."""
        for node_id, key in list(self._seen):
            seen_now = node_id == host.node_id and self._seen[node_id, key].life == host.lives
            if seen_now and node.replicas.get(*key) is None:
                del self._seen[node_id, key]

    def _look(self, host: Host, node: Node, hosted: HostedPartition) -> Did | None:
        key = (host.node_id, (hosted.topic_id, hosted.index))
        before, now = self._seen.get(key), _now(host, hosted)
        if before == now:
            return None
        self._seen[key] = now
        name = f"{hosted.topic}-{hosted.index}"
        said: list[str] = []
        reasons: list[str] = []
        weight = Weight.PART
        if before is None or before.life != now.life:
            if before is not None:
                said.append(_back(before, now))
                weight = Weight.TURN if now.end < before.end else weight
            before = _Seen(now.life, now.end, now.high_watermark, (-1, -1))
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
            said.append(f"HW {before.high_watermark} → {now.high_watermark}{_known(hosted.leader)}")
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
    seen = _Seen(host.lives, hosted.log.log_end_offset, hosted.replica.high_watermark, role)
    if leader is not None:
        seen.isr, seen.maximal_isr = leader.isr, leader.maximal_isr
    return seen


def _back(before: _Seen, now: _Seen) -> str:
    lost = before.end - now.end
    if lost > 0:
        return f"comes back with its log up to {now.end}: {lost} record{'s' * (lost > 1)} lost"
    return f"comes back with its log up to {now.end}"


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


def _known(leader: LeaderState | None) -> str:
    """The followers' log ends, as the leader knows them."""
    if leader is None:
        return ""
    ends = [
        f"{broker_id} has {leader.remotes[broker_id].log_end_offset}"
        for broker_id in sorted(leader.maximal_isr)
        if broker_id in leader.remotes
    ]
    return f" ({', '.join(ends)})" if ends else ""


def _why_committed(node: Node, hosted: HostedPartition, leader: LeaderState) -> str:
    """Rules 1 and 4, as Kafka states them, not as the leader counted."""
    needed = min(node.metadata.image.min_insync_replicas(hosted.topic), len(leader.metadata.replicas))
    if len(leader.isr) < needed:
        return f"ISR {ids(leader.isr)} is below min.insync.replicas {needed}: it has to stand still (KIP-966, rule 1)"
    behind = [
        broker_id
        for broker_id in sorted(leader.maximal_isr)
        if broker_id in leader.remotes and leader.remotes[broker_id].log_end_offset < leader.high_watermark
    ]
    if behind:
        is_not = "is not" if len(behind) == 1 else "are not"
        return f"{' and '.join(map(str, behind))} {is_not} known to have it: it has to wait (rule 4)"
    return (
        f"all of {ids(sorted(leader.maximal_isr))} have it; ISR {ids(leader.isr)} meets min ISR {needed} (rules 1, 4)"
    )


def _why_joins(leader: LeaderState, joining: frozenset[int]) -> str:
    """Rule 11, with the numbers of the joining replicas."""
    high_watermark, start = leader.high_watermark, leader.leader_epoch_start_offset
    ends = {each: leader.remotes[each].log_end_offset for each in sorted(joining) if each in leader.remotes}
    known = ", ".join(f"{broker_id} has {end}" for broker_id, end in ends.items())
    if all(end >= max(high_watermark, start) for end in ends.values()):
        return f"{known}: the high watermark {high_watermark} and the start of the epoch {start} (rule 11)"
    return f"{known}, and must have the high watermark {high_watermark} and the start of the epoch {start} (rule 11)"
