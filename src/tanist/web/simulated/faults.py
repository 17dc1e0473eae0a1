"""The faults that a user asks for in a simulated cluster, and those in force.

Owns an action and its text form (`3405217.crash.3`: virtual microseconds, what, node; no node: all), and what each does
to a host. The names are those of `tanist ui`. An action that is not possible when its time has come does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tanist.sim.events import DiskFilled, Healed, LinksFailed
from tanist.sim.world.world import Host, World
from tanist.web.actions import ACTIONS, ALL_HEALED, SLOW_MS, done
from tanist.web.state import FaultState

_AT_MAX_US: Final = 3_600_000_000
_FORMER: Final = {"crash-page-cache": "power-loss", "cut-off": "partition"}
"""Names in links that people have kept."""


class ActionError(ValueError):
    """The text is no action."""


@dataclass(frozen=True, slots=True)
class Action:
    """One fault, or the end of one."""

    at_us: int
    kind: str
    node: int | None

    def __str__(self) -> str:
        return f"{self.at_us}.{self.kind}" + ("" if self.node is None else f".{self.node}")

    @classmethod
    def parse(cls, text: str) -> Action:
        at, _, rest = text.partition(".")
        kind, _, node = rest.partition(".")
        kind = _FORMER.get(kind, kind)
        if not at.isdigit() or int(at) > _AT_MAX_US or kind not in ACTIONS or not (node.isdigit() or not node):
            raise ActionError(f"{text!r} is no action")
        if not node and kind != "heal":
            raise ActionError(f"{kind} needs a node")
        return cls(int(at), kind, int(node) if node else None)


def schedule(world: World, actions: Sequence[Action], report: Callable[[Action, str], None]) -> None:
    """Each action at its time, after all events of that microsecond; `report` gets what it did, as text."""
    for action in actions:
        if action.node is not None and action.node not in world.hosts:
            raise ActionError(f"there is no node {action.node}")
        world.scheduler.at(action.at_us + 1, _acting(world, action, report))


def _acting(world: World, action: Action, report: Callable[[Action, str], None]) -> Callable[[], None]:
    def act() -> None:
        hosts = [host for node_id, host in world.hosts.items() if action.node in (None, node_id)]
        texts = [text for host in hosts if (text := _act(world, host, action.kind)) is not None]
        if texts:
            report(action, ALL_HEALED if action.node is None else texts[0])

    return act


def _act(world: World, host: Host, kind: str) -> str | None:
    """The sentence about what was done; None if it is not possible."""
    match kind:
        case "crash" if host.up:
            host.kill()
        case "power-loss" if host.powered:
            host.lose_power()
            return f"node {host.node_id} loses its power, and what was not synced is gone"
        case "pause" if host.up and not host.frozen:
            host.freeze()
        case "partition":
            for link in _links(world, host):
                world.network.block(*link)
            world.emit(LinksFailed("alone", (host.name,)))
            return f"{done(kind, host.node_id)}; clients still reach it"
        case "slow":
            world.network.conditions.slow_links.update(dict.fromkeys(_links(world, host), SLOW_MS * 1000))
            world.emit(LinksFailed("all slow", (host.name,)))
        case "disk-full" if not host.disk.full:
            host.disk.full = True
            world.emit(DiskFilled(host.node_id, tuple(host.directories)))
        case "stop" if host.up:
            host.stop(lambda: None)
            return f"node {host.node_id} is asked to shut down"
        case "start" if not host.up:
            host.start()
        case "heal":
            for link in _links(world, host):
                world.network.heal(*link)
                world.network.conditions.slow_links.pop(link, None)
                world.network.conditions.lossy_links.pop(link, None)
            host.thaw()
            host.disk.full = False
            host.disk.failing.clear()
            world.emit(Healed(host.node_id))
        case _:
            return None
    return done(kind, host.node_id)


def _links(world: World, host: Host) -> list[tuple[str, str]]:
    others = [other.name for other in world.hosts.values() if other is not host]
    return [link for other in others for link in ((host.name, other), (other, host.name))]


class Links:
    """The faults in force: of links between nodes, of disks, of processes."""

    def __init__(self, world: World) -> None:
        self._world = world

    def signature(self) -> tuple[object, ...]:
        """It changes when a fault begins or ends."""
        conditions = self._world.network.conditions
        hosts = self._world.hosts.values()
        return (
            tuple(self._world.network.blocked_links()),
            tuple(conditions.slow_links),
            tuple(conditions.lossy_links),
            tuple((host.disk.full, bool(host.disk.failing)) for host in hosts),
        )

    def in_force(self) -> tuple[FaultState, ...]:
        network, conditions = self._world.network, self._world.network.conditions
        found = [
            *self._of_links("partition", list(network.blocked_links()), "no packets"),
            *self._of_links("slow", list(conditions.slow_links), "late packets"),
            *self._of_links("lossy", list(conditions.lossy_links), "lost packets"),
        ]
        for host in self._world.hosts.values():
            if host.frozen:
                found.append(FaultState("pause", (host.node_id,), done("pause", host.node_id)))
            if host.disk.full:
                found.append(FaultState("disk-full", (host.node_id,), done("disk-full", host.node_id)))
            if host.disk.failing:
                found.append(FaultState("disk-failed", (host.node_id,), f"the disk of node {host.node_id} fails"))
        return tuple(found)

    def _of_links(self, kind: str, links: list[tuple[str, str]], what: str) -> list[FaultState]:
        """One sentence for all links of a node that fail alike; links of clients are one sentence."""
        ids = {host.name: host.node_id for host in self._world.hosts.values()}
        between = {(ids[one], ids[two]) for one, two in links if one in ids and two in ids}
        found: list[FaultState] = []
        everyone = set(ids.values())
        for node in sorted(everyone):
            others = everyone - {node}
            both = {(node, other) for other in others} | {(other, node) for other in others}
            if len(others) > 1 and both <= between:
                found.append(FaultState(kind, (node,), f"{what} between node {node} and all others"))
                between -= both
        for one, two in sorted(between):
            if (two, one) in between:
                if one < two:
                    found.append(FaultState(kind, (one, two), f"{what} between node {one} and node {two}"))
            else:
                found.append(FaultState(kind, (one, two), f"{what} from node {one} to node {two}"))
        clients = sorted({ids[name] for link in links for name in link if name in ids and not set(link) <= ids.keys()})
        found += [FaultState(kind, (node,), f"{what} between node {node} and some clients") for node in clients]
        return found
