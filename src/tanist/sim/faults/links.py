"""Faults of links: cut links, delays, loss, and bytes of old connections that arrive after those of new ones.

Each fault (`tanist.faults`) is a function that breaks something and returns the function that repairs it. Links lead
from one host to another; each client is a host here. No link fault kills a process or touches a disk, so the promise
always holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from tanist.sim.events import BytesLate, LinksFailed, LinksMended, LinksSteady, NearEndsReset
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import Host, World

Mend: TypeAlias = Callable[[], None]
LinkFault: TypeAlias = Callable[[World, Host, Host, float], "Mend"]
"""(world, host, other host, random number in [0, 1)) -> the function that repairs it."""

Links: TypeAlias = Sequence[tuple[str, str]]
"""(from host, to host)"""

_FLAP_US = 120_000
"""Time that a flapping link is down, then up."""
_STRANDED_US = (20_000, 400_000, 3_000_000)
"""Delays of the bytes of a connection that its other end has given up."""
_LOSS = (0.02, 0.2)


def partition(world: World, host: Host, other: Host, detail: float) -> Mend:
    """Cut off from all nodes, from one (both still reach a third), or with another one from the rest."""
    others = [each for each in world.hosts.values() if each is not host]
    here = [host]
    if detail < 0.4:
        cut = others
    elif detail < 0.7:
        cut = [other]
    else:
        here.append(other)
        cut = [each for each in others if each is not other]
    links = [link for one in here for two in cut for link in ((one.name, two.name), (two.name, one.name))]
    world.emit(LinksFailed("partition", _names(here), _names(cut)))
    return _block(world, links, (host.name,))


def partition_one_way(world: World, host: Host, other: Host, detail: float) -> Mend:
    world.emit(LinksFailed("partition-one-way", (host.name,), (other.name,)))
    return _block(world, [(host.name, other.name)], (host.name,))


def mute(world: World, host: Host, other: Host, detail: float) -> Mend:
    world.emit(LinksFailed("mute", (host.name,)))
    return _block(world, [(host.name, name) for name in _everybody(world, host)], (host.name,))


def deaf(world: World, host: Host, other: Host, detail: float) -> Mend:
    world.emit(LinksFailed("deaf", (host.name,)))
    return _block(world, [(name, host.name) for name in _everybody(world, host)], (host.name,))


def partition_clients(world: World, host: Host, other: Host, detail: float) -> Mend:
    """Some clients and the node do not hear each other, or only in one direction; nodes hear each other."""
    some = [name for number, name in enumerate(world.clients) if (number + int(detail * 997)) % 2]
    links = [(name, host.name) for name in some] if detail < 0.6 else []
    links += [(host.name, name) for name in some] if detail > 0.3 else []
    world.emit(LinksFailed("partition-clients", (host.name,), number=len(links)))
    return _block(world, links, (host.name,))


def flap(world: World, host: Host, other: Host, detail: float) -> Mend:
    links = [(host.name, other.name), (other.name, host.name)]
    world.emit(LinksFailed("flap", (host.name,), (other.name,)))
    network, ended = world.network, False

    def set_down(down: bool) -> None:
        if ended:
            return
        for link in links:
            (network.block if down else network.heal)(*link)
        world.scheduler.after(_FLAP_US, lambda: set_down(not down))

    def mend() -> None:
        nonlocal ended
        ended = True
        for link in links:
            network.heal(*link)
        world.emit(LinksSteady(host.name, other.name))

    set_down(True)
    return mend


def slow(world: World, host: Host, other: Host, detail: float) -> Mend:
    links, link = world.network.conditions.slow_links, (host.name, other.name)
    links[link] = (5_000, 50_000, 400_000)[int(detail * 3)]
    world.emit(LinksFailed("slow", (host.name,), (other.name,)))
    return lambda: _forget(links, [link])


def lossy(world: World, host: Host, other: Host, detail: float) -> Mend:
    """Packets to and from one other node get lost, and are sent again by the kernel."""
    losses = world.network.conditions.lossy_links
    links = [(host.name, other.name), (other.name, host.name)]
    losses.update(dict.fromkeys(links, _LOSS[int(detail * len(_LOSS))]))
    world.emit(LinksFailed("lossy", (host.name,), (other.name,)))
    return lambda: _forget(losses, links)


def reset(world: World, host: Host, other: Host, detail: float) -> Mend:
    world.network.reset_some(host.name, other.name)
    world.emit(LinksFailed("reset", (host.name,), (other.name,)))
    return _nothing


def strand(world: World, host: Host, other: Host, detail: float) -> Mend:
    """The connections to one other node break at this end, with bytes still under way."""
    return _strand(world, [(host.name, other.name)], detail)


def strand_clients(world: World, host: Host, other: Host, detail: float) -> Mend:
    return _strand(world, [(name, host.name) for name in world.clients], detail)


_ALL = (
    partition, partition_one_way, slow, reset, mute, deaf, partition_clients, flap, lossy, strand, strand_clients
)  # fmt: skip
LINK_FAULTS: Final[dict[str, LinkFault]] = {each.__name__.replace("_", "-"): each for each in _ALL}


def cut(world: World, hosts: Sequence[Host]) -> Mend:
    """None of them hears another one of them."""
    world.emit(LinksFailed("apart", _names(hosts)))
    links = [(one.name, two.name) for one in hosts for two in hosts if one is not two]
    return _block(world, links, _names(hosts))


def _strand(world: World, links: Links, detail: float) -> Mend:
    """Bytes sent from now on, one way, are late; soon the near end gets a reset that the far end does not.

    So the far end reads requests of a connection that its client has replaced long ago, and its answers are lost; or
    (with the other way late) the near end never gets the answer, and asks again over the new connection.
    """
    network = world.network
    late_us = _STRANDED_US[int(detail * 997) % len(_STRANDED_US)]
    late = links if detail < 0.5 else [(two, one) for one, two in links]
    slow_links = network.conditions.slow_links
    for link in late:
        slow_links[link] = late_us
    world.emit(BytesLate(late_us // MICROSECONDS, tuple(late)))

    def drop() -> None:
        _forget(slow_links, late)
        for near, far in links:
            network.reset_near(near, far)
        world.emit(NearEndsReset(tuple(links)))

    world.scheduler.after(late_us // 2, drop)
    return _nothing


def _block(world: World, links: Links, hosts: tuple[str, ...]) -> Mend:
    network = world.network
    for link in links:
        network.block(*link)

    def mend() -> None:
        for link in links:
            network.heal(*link)
        world.emit(LinksMended(hosts))

    return mend


def _forget(
    conditions: dict[tuple[str, str], int] | dict[tuple[str, str], float], links: Iterable[tuple[str, str]]
) -> None:
    for link in links:
        conditions.pop(link, None)


def _everybody(world: World, host: Host) -> list[str]:
    """All hosts that the host may talk to."""
    return [each.name for each in world.hosts.values() if each is not host] + list(world.clients)


def _names(hosts: Sequence[Host]) -> tuple[str, ...]:
    return tuple(each.name for each in hosts)


def _nothing() -> None:
    pass
