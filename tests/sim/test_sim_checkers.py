"""Checkers in states that took fresh seeds to find: what they must accuse, and what they must not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tanist.controller.image.partition_state import PartitionState
from tanist.controller.image.registration import BrokerRegistration
from tanist.sim.checkers.elections import ElectionChecks
from tanist.sim.checkers.leaders import LeaderChecks
from tanist.sim.checkers.logs import LogChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import Place
from tanist.sim.oracle import Batch, Oracle, PartitionOracle, ReplicaMirror
from tanist.sim.promise import AGGRESSIVE
from tanist.sim.world.clock import stream
from tanist.sim.world.disk import SimDisk
from tanist.sim.world.scheduler import Process, Scheduler
from tanist.wire.batch import NewRecord, encode_batch

KEY = (UUID(int=1), 0)
LOG = "/data/events-0"
GONE, HERE = UUID(int=7), UUID(int=8)


def host_with(segments: dict[str, bytes]) -> Any:
    """A machine with these segments in the partition's folder, none of them synced."""
    disk = SimDisk(Scheduler(), stream(1, "disk"))
    view = disk.view(Process("node1"))
    view.make_directory(LOG)
    for name, content in segments.items():
        view.open(f"{LOG}/{name}").write(0, [content])
    return SimpleNamespace(node_id=1, lives=1, clean_ends=set(), disk=disk)


def batch(offset: int) -> bytes:
    return bytes(encode_batch([NewRecord(0, None, b"value")], base_offset=offset, leader_epoch=0))


def test_a_second_loss_of_power_does_not_make_durable_what_the_first_one_left() -> None:
    """S22: no process has started in between, so what was synced ends where it ended at the first loss, be it at 0."""
    host = host_with({"00000000000000000000.log": batch(0), "00000000000000000001.log": batch(1)})
    checks = LogChecks(SimpleNamespace(now_us=0, counts={}), set())  # type: ignore[arg-type]
    oracle = PartitionOracle(KEY, "events-0")
    mirror = oracle.mirrors[1] = ReplicaMirror(1, 1, SimpleNamespace(directory=LOG))  # type: ignore[arg-type]
    mirror.batches = [Batch(0, 1, 0, 0), Batch(1, 2, 0, 0)]
    checks.went_down(host, oracle, lost_power=True, mid_turn=False, broker_epoch=5)
    assert mirror.durable_end == 0
    host.disk.find(LOG).entries.pop("00000000000000000000.log")
    inode = host.disk.inode(f"{LOG}/00000000000000000001.log")
    inode.write_through(inode.mark)
    inode.synced_bytes = len(inode.data)  # what the first loss left is on the disk
    checks.went_down(host, oracle, lost_power=True, mid_turn=False, broker_epoch=5)
    assert mirror.durable_end == 0


def broker(*directories: UUID, incarnation: int = 1, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(3, UUID(int=incarnation), 9, fenced=fenced, directories=directories)


@pytest.mark.parametrize(
    ("after", "accused"),
    [
        (broker(HERE), False),  # the replica's directory has failed
        (broker(GONE, HERE, fenced=True), False),
        (broker(GONE, HERE, incarnation=2), False),
        (broker(GONE), True),  # another directory has failed
        (broker(GONE, HERE), True),
    ],
)
def test_who_is_passed_over_must_have_gone_with_the_same_decision(after: BrokerRegistration, accused: bool) -> None:
    """U1: the partition changes first, the record about the broker follows in the same batch."""
    before = broker(GONE, HERE)
    image: Any = SimpleNamespace(
        brokers={3: before, 1: BrokerRegistration(1, UUID(int=5), 4, fenced=False)},
        static_configs={"unclean.recovery.manager.enabled": "false"},
        elr_enabled=True,
        unclean_election_enabled=lambda topic: True,
    )
    world: Any = SimpleNamespace(now_us=0, counts={"last known leaders": 0})
    oracle = PartitionOracle(KEY, "events-0")
    elections = ElectionChecks(world, Oracle(image), lambda key: oracle, lambda key, state: None)
    led = PartitionState((1, 3), (3,), leader=3, directories=(HERE, GONE))
    elected = PartitionState((1, 3), (1,), leader=1, recovering=True, leader_epoch=1, directories=(HERE, GONE))
    elections._check_allowed(oracle, led, elected, elections.promise.strategy(oracle))
    image.brokers[3] = after
    if accused:
        with pytest.raises(Violation, match="U1"):
            elections._judge_suspicions(3, before)
    else:
        elections._judge_suspicions(3, before)
        elections.batch_ended()


@pytest.mark.parametrize(("replicas", "accused"), [((1,), False), ((1, 3), True)])
def test_a_cancelled_reassignment_may_leave_nobody_eligible(replicas: tuple[int, ...], accused: bool) -> None:
    """U1: with unclean elections allowed, as by Apache Kafka. The one in the ISR is no replica any more."""
    image: Any = SimpleNamespace(
        brokers={3: broker(HERE), 1: BrokerRegistration(1, UUID(int=5), 4, fenced=False, directories=(HERE,))},
        static_configs={"unclean.recovery.manager.enabled": "false"},
        elr_enabled=True,
        unclean_election_enabled=lambda topic: True,
    )
    world: Any = SimpleNamespace(now_us=0, counts={"last known leaders": 0})
    oracle = PartitionOracle(KEY, "events-0")
    elections = ElectionChecks(world, Oracle(image), lambda key: oracle, lambda key, state: None)
    led = PartitionState((3, 1), (3,), leader=3, adding=(3,), removing=(1,), directories=(HERE, HERE))
    reverted = PartitionState(replicas, (1,), leader=1, recovering=True, leader_epoch=1, directories=(HERE, HERE))
    elections._check_allowed(oracle, led, reverted, elections.promise.strategy(oracle))
    if accused:
        with pytest.raises(Violation, match="U1"):
            elections.batch_ended()
    else:
        elections.batch_ended()


@pytest.mark.parametrize(("life", "accused"), [(1, False), (2, True)])
def test_a_process_whose_registration_is_not_its_own_yet_is_not_asked(life: int, accused: bool) -> None:
    """U2: it is refused until the session of its former life ends, so it has no broker epoch to answer with."""
    image: Any = SimpleNamespace(brokers={3: broker(HERE)})
    host = SimpleNamespace(node_id=3, name="node3", up=True, lives=2, node=None)
    world: Any = SimpleNamespace(now_us=0, hosts={3: host}, network=None)
    oracle = PartitionOracle(KEY, "events-0")
    chosen, longer = (ReplicaMirror(node_id, 0, None) for node_id in (1, 3))
    longer.batches = [Batch(0, 1, 0, 0)]
    oracle.mirrors = {1: chosen, 3: longer}
    elections = ElectionChecks(world, Oracle(image), lambda key: oracle, lambda key, state: None)
    registered: Any = SimpleNamespace(lifecycle=SimpleNamespace(incarnation_id=broker().incarnation_id))
    elections.began(SimpleNamespace(node_id=3, lives=life), registered)  # type: ignore[arg-type]
    unled = PartitionState((1, 3), (), leader=-1, directories=(HERE, HERE))
    if accused:
        with pytest.raises(Violation, match="U2"):
            elections._check_choice(oracle, unled, chosen, AGGRESSIVE)
    else:
        elections._check_choice(oracle, unled, chosen, AGGRESSIVE)


@pytest.mark.parametrize(("waiting", "accused"), [([3, 2], True), ([3], False)])
def test_a_request_that_waits_for_what_is_committed_is_noticed(waiting: list[int], accused: bool) -> None:
    """L3: behind one that waits for more, as a producer's retry once was."""
    hosted: Any = SimpleNamespace(ack_waiters=[(offset, SimpleNamespace(done=False), 0) for offset in (*waiting, 4)])
    leader: Any = SimpleNamespace(high_watermark=2)
    world: Any = SimpleNamespace(now_us=0)
    checks = LeaderChecks(world, Oracle(SimpleNamespace()))  # type: ignore[arg-type]
    if accused:
        with pytest.raises(Violation, match="L3"):
            checks._check_waiters(Place("events-0", 1), hosted, leader)
    else:
        checks._check_waiters(Place("events-0", 1), hosted, leader)
