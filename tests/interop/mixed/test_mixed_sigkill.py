"""Mixed clusters under SIGKILL: of brokers and controllers, of both kinds, while records are written with acks=all.

A round kills one node of each kind and role, at random, and starts it again; the others go on acknowledging without it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.mixed.mixed_cluster import APACHE, TANIST, Kind, Member, MixedCluster, Quorum
from tests.interop.mixed.watched_load import Row, watched

pytestmark = pytest.mark.interop

BROKER, CONTROLLER, BOTH = "broker", "controller", "broker,controller"
Shape = tuple[tuple[Kind, str], ...]

CLUSTERS: dict[str, tuple[Quorum, Shape]] = {
    "Apache's controller, our brokers": (
        "static",
        ((TANIST, BROKER), (TANIST, BROKER), (TANIST, BROKER), (APACHE, CONTROLLER)),
    ),
    "Apache's controller, brokers of both": (
        "static",
        ((APACHE, BROKER), (TANIST, BROKER), (APACHE, BROKER), (APACHE, CONTROLLER)),
    ),
    "Our controllers, Apache's brokers": (
        "static",
        (*3 * ((APACHE, BROKER),), *3 * ((TANIST, CONTROLLER),)),
    ),
    "Our controllers, brokers of both": (
        "static",
        ((TANIST, BROKER), (APACHE, BROKER), (TANIST, BROKER), *3 * ((TANIST, CONTROLLER),)),
    ),
    "Static voters of both, two of Apache": ("static", ((APACHE, BOTH), (TANIST, BOTH), (APACHE, BOTH))),
    "Dynamic voters of both, two of Apache": ("dynamic", ((APACHE, BOTH), (TANIST, BOTH), (APACHE, BOTH))),
    "Dynamic voters of both, two of ours": ("dynamic", ((TANIST, BOTH), (APACHE, BOTH), (TANIST, BOTH))),
}
QUICK = "Static voters of both, two of ours"


def play(name: str, quorum: Quorum, shape: Shape, folder: Path, row: Row) -> None:
    members = {node_id: Member(kind, roles) for node_id, (kind, roles) in enumerate(shape, start=1)}
    cluster = MixedCluster(folder, members, quorum=quorum)
    rng = random.Random(name)
    cluster.start()
    try:
        with watched(cluster, row) as watch:
            for _ in range(row.rounds):
                victims = [
                    rng.choice([node_id for node_id, each in enumerate(shape, start=1) if each == one_of])
                    for one_of in dict.fromkeys(shape)
                ]
                for victim in rng.sample(victims, len(victims)):
                    watch.strike(victim, cluster.kill_node)
    finally:
        cluster.stop()


@pytest.mark.parametrize("name", CLUSTERS)
def test_nothing_is_lost(name: str, tmp_path: Path, new_row: Callable[[str], Row]) -> None:
    play(name, *CLUSTERS[name], tmp_path, new_row(name))


@pytest.mark.mixed_short
def test_nothing_is_lost_with_voters_of_both(tmp_path: Path, new_row: Callable[[str], Row]) -> None:
    """The one of them that a short run has."""
    play(QUICK, "static", ((TANIST, BOTH), (APACHE, BOTH), (TANIST, BOTH)), tmp_path, new_row(QUICK))
