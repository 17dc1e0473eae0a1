"""The ELR over brokers of both kinds: filled when one of either kind leaves in order, used when the leader is gone.

A round, once with a broker of each kind in the middle: with a, b and c in sync, c stops and then b, so that b is in the
ELR (ISR below min.insync.replicas); a, which leads alone, gets SIGKILL. b comes back, and leads by the ELR alone. All
that was acknowledged is there, for b had all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, cycle, islice
from pathlib import Path

import pytest

from tests.interop.mixed.mixed_cluster import APACHE, TANIST, WHOSE, Kind, Member, MixedCluster
from tests.interop.mixed.partition_states import wait_states
from tests.interop.mixed.watched_load import ONE_IN_FLIGHT, Row, Watch, watched

pytestmark = pytest.mark.interop

CONTROLLER = 11
ORDERS = ((1, 2, 3), (2, 1, 3))
"""(a, b, c): 1 and 3 are ours, 2 is Apache's."""


@pytest.mark.parametrize("controller", [APACHE, TANIST])
def test_the_elr_is_filled_and_used(controller: Kind, tmp_path: Path, new_row: Callable[[str], Row]) -> None:
    row = new_row(f"ELR filled and used, {WHOSE[controller]} controller")
    members = {
        1: Member(TANIST, "broker"),
        2: Member(APACHE, "broker"),
        3: Member(TANIST, "broker"),
        CONTROLLER: Member(controller, "controller"),
    }
    cluster = MixedCluster(tmp_path, members)
    cluster.start()
    try:
        with watched(cluster, row, settings=ONE_IN_FLIGHT) as watch:
            for order in chain.from_iterable(islice(cycle([ORDERS]), row.rounds)):
                fill_and_use(watch, *order)
    finally:
        cluster.stop()


def fill_and_use(watch: Watch, a: int, b: int, c: int) -> None:
    cluster = watch.cluster
    watch.wait_calm()
    cluster.stop_node(c)
    wait_states(watch, "two are in sync", lambda state: set(state.isr) == {a, b})
    watch.wait_acknowledged("by two")
    cluster.stop_node(b)
    wait_states(watch, f"{b} is in the ELR", lambda state: state.isr == (a,) and b in state.elr)
    cluster.kill_node(a)
    watch.row.faults += 3
    cluster.start_node(b)
    wait_states(watch, f"{b} leads by the ELR", lambda state: state.leader == b and a not in state.isr, ask=b)
    for node_id in (a, c):
        cluster.start_node(node_id)
    watch.wait_acknowledged("by all again")
    wait_states(watch, "the ELR is empty", lambda state: set(state.isr) == {a, b, c} and not state.elr)
