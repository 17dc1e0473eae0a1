"""S33-S35, and the parts of S12, L3 and X12 that need a cause: what they must accuse, and what they must not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tanist.controller.image.partition_state import PartitionState
from tanist.events.metadata import ControllerActivated, LeaderElected, SessionExpired
from tanist.events.replication import BecameLeader, IsrChanged, IsrProposed
from tanist.sim.checkers.causes import CauseChecks
from tanist.sim.checkers.transactions import TransactionChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import LifeBegan, PartitionStateCommitted, Thawed
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.wire.errors import ErrorCode

NAME = "events-0"
LAG_MS = 700
SESSION_MS = 3_000
LONG_AFTER_MS = 20_000
SETTINGS = {"replica.lag.time.max.ms": str(LAG_MS), "broker.session.timeout.ms": str(SESSION_MS)}


class Rig:
    """A world of a controller and three brokers, of which broker 1 leads the partition."""

    def __init__(self) -> None:
        self.troubled: set[str] = set()
        self.slow_links: dict[tuple[str, str], int] = {}
        network = SimpleNamespace(
            was_troubled=lambda one, other, since_us: bool({one, other} & self.troubled),
            conditions=SimpleNamespace(slow_links=self.slow_links),
        )
        self.leader = SimpleNamespace(
            isr=(1, 2),
            maximal_isr=frozenset((1, 2)),
            under_min_isr=False,
            high_watermark=10,
            remotes={},
            config=SimpleNamespace(replica_lag_time_max_ms=LAG_MS),
        )
        self.log = SimpleNamespace(log_end_offset=10, failed=None)
        hosted = SimpleNamespace(topic="events", index=0, leader=self.leader, log=self.log, stale=False)
        self.hosts: dict[int, Any] = {each: self._host(each) for each in (1, 2, 3, 11, 12, 13)}
        self.hosts[1].node.replicas = [hosted]
        self.world = SimpleNamespace(now_us=0, watchers=[], hosts=self.hosts, network=network)
        self.directories_online = True
        broker = SimpleNamespace(has_online_directory=lambda directory: self.directories_online)
        image: Any = SimpleNamespace(brokers=dict.fromkeys((1, 2, 3), broker))
        self.checks = CauseChecks(self.world, image)  # type: ignore[arg-type]

    @staticmethod
    def _host(node_id: int) -> Any:
        node = SimpleNamespace(lifecycle=SimpleNamespace(broker_epoch=5), replicas=[])
        return SimpleNamespace(
            node_id=node_id,
            name=f"node{node_id}",
            up=True,
            frozen=False,
            votes=node_id > 10,
            properties=SETTINGS,
            node=node,
        )

    def follower(self, broker_id: int, end: int, caught_up_ms: int) -> None:
        self.leader.remotes[broker_id] = SimpleNamespace(log_end_offset=end, last_caught_up_ms=caught_up_ms)

    def passes(self, milliseconds: int) -> None:
        self.world.now_us += milliseconds * MICROSECONDS

    def committed(self, before: PartitionState, after: PartitionState) -> None:
        self.checks.happened(PartitionStateCommitted((UUID(int=1), 0), NAME, before, after))

    def turn(self, node_id: int, *events: Any) -> None:
        for event in events:
            self.checks.observed(self.hosts[node_id], event)
        self.checks.turn_ended(self.hosts[node_id])


def state(replicas: tuple[int, ...], isr: tuple[int, ...], **others: Any) -> PartitionState:
    return PartitionState(replicas, isr, directories=(UUID(int=9),) * len(replicas), **others)


# -- S33


@pytest.mark.parametrize(
    ("adding", "removing", "isr", "accused"),
    [
        ((), (3,), (1,), True),
        ((4,), (3, 5), (1, 4), True),
        ((), (3,), (1, 2), False),
        ((4,), (3,), (1, 4), False),  # as many copies as before
    ],
)
def test_a_reassignment_that_leaves_fewer_copies(
    adding: tuple[int, ...], removing: tuple[int, ...], isr: tuple[int, ...], accused: bool
) -> None:
    rig = Rig()
    staying = (1, 2, *adding)
    before = state((*staying, *removing), (1, *removing), adding=adding, removing=removing, leader=1)
    after = state(staying, isr, leader=1)
    if accused:
        with pytest.raises(Violation, match="S33"):
            rig.committed(before, after)
    else:
        rig.committed(before, after)


def test_a_reassignment_that_is_cancelled_or_goes_on_is_no_end() -> None:
    rig = Rig()
    before = state((1, 2, 3), (1, 3), removing=(3,), leader=1)
    rig.committed(before, state((1, 2, 3), (1, 3), leader=1))
    rig.committed(before, state((1, 2, 3), (1,), removing=(3,), leader=1))


# -- S12


@pytest.mark.parametrize("online", [True, False])
def test_who_is_elected_has_its_directory(online: bool) -> None:
    rig = Rig()
    rig.directories_online = online
    before, after = state((1, 2), (1, 2), leader=2), state((1, 2), (1, 2), leader=1, leader_epoch=1)
    rig.committed(after, after)  # nobody is elected
    if online:
        rig.committed(before, after)
    else:
        with pytest.raises(Violation, match="S12"):
            rig.committed(before, after)


# -- S34


@pytest.mark.parametrize("was", [True, False])
@pytest.mark.parametrize("reported", [True, False])
def test_an_election_is_reported_as_what_it_was(was: bool, reported: bool) -> None:
    rig = Rig()
    before = state((1, 2), (2,))
    rig.committed(before, state((1, 2), (1,), leader=1, leader_epoch=1, recovering=was))
    event = LeaderElected(NAME, 1, 1, -1, from_elr=False, unclean=reported)
    if was is reported:
        rig.turn(11, event)
    else:
        with pytest.raises(Violation, match="S34"):
            rig.turn(11, event)


def test_an_eligible_replica_that_follows_a_recovering_leader_is_elected_cleanly() -> None:
    rig = Rig()
    before = state((1, 2), (), elr=(1,), leader_epoch=1, recovering=True)
    rig.committed(before, state((1, 2), (1,), leader=1, leader_epoch=2, recovering=True))
    with pytest.raises(Violation, match="S34"):
        rig.turn(11, LeaderElected(NAME, 1, 2, -1, from_elr=True, unclean=True))


# -- S35


@pytest.mark.parametrize(("after_ms", "accused"), [(0, True), (LAG_MS, True), (LAG_MS + 1, False)])
def test_nobody_is_late_before_a_leadership_is_as_old_as_that(after_ms: int, accused: bool) -> None:
    rig = Rig()
    rig.passes(LONG_AFTER_MS)
    rig.turn(1, BecameLeader(NAME, 3, 10))
    rig.passes(after_ms)
    proposal = IsrProposed(NAME, 3, 7, (1, 2), (1,))
    if accused:
        with pytest.raises(Violation, match="S35"):
            rig.turn(1, proposal)
    else:
        rig.turn(1, proposal)


def test_who_has_joined_since_may_never_have_had_all() -> None:
    rig = Rig()
    rig.turn(1, BecameLeader(NAME, 3, 10), IsrChanged(NAME, (1, 2, 3), (3,), ()))
    rig.turn(1, IsrProposed(NAME, 3, 7, (1, 2, 3), (1, 2)))
    with pytest.raises(Violation, match="S35"):
        rig.turn(1, IsrProposed(NAME, 3, 7, (1, 2, 3), (1, 3)))


@pytest.mark.parametrize(
    ("end", "late_ms", "under_min_isr", "accused"),
    [
        (9, LAG_MS + 1, True, True),
        (9, LAG_MS, True, False),  # it keeps up
        (10, LAG_MS + 1, True, False),  # it has all
        (9, LAG_MS + 1, False, False),  # it is at the high watermark, which moves
    ],
)
def test_who_would_be_late_at_once_does_not_join_under_min_isr(
    end: int, late_ms: int, under_min_isr: bool, accused: bool
) -> None:
    rig = Rig()
    rig.passes(LONG_AFTER_MS)
    rig.leader.under_min_isr = under_min_isr
    rig.follower(3, end, LONG_AFTER_MS - late_ms)
    proposal = IsrProposed(NAME, 3, 7, (1,), (1, 3))
    if accused:
        with pytest.raises(Violation, match="S35"):
            rig.turn(1, proposal)
    else:
        rig.turn(1, proposal)


EXPIRED = SessionExpired(2, 5)


def test_a_session_ends_without_a_cause() -> None:
    rig = Rig()
    rig.checks.happened(LifeBegan(2, 1))
    rig.passes(LONG_AFTER_MS)
    with pytest.raises(Violation, match="S35"):
        rig.turn(11, EXPIRED)


@pytest.mark.parametrize(
    "cause",
    ["down", "frozen", "thawed", "restarted", "unregistered", "new controller", "cut off", "slow", "no quorum"],
)
def test_a_session_ends_with_a_cause(cause: str) -> None:
    rig = Rig()
    rig.passes(LONG_AFTER_MS)
    broker = rig.hosts[2]
    match cause:
        case "down":
            broker.up = False
        case "frozen":
            broker.frozen = True
        case "thawed":
            rig.checks.happened(Thawed(2))
            rig.passes(SESSION_MS)
        case "restarted":
            rig.checks.happened(LifeBegan(2, 2))
            rig.passes(SESSION_MS)
        case "unregistered":
            broker.node.lifecycle.broker_epoch = -1
        case "new controller":
            rig.turn(11, ControllerActivated(11, 3))
            rig.passes(SESSION_MS)
        case "cut off":
            rig.troubled.add("node11")
        case "slow":
            rig.slow_links["node2", "node11"] = 1
        case "no quorum":
            rig.hosts[12].up, rig.hosts[13].frozen = False, True
    rig.turn(11, EXPIRED)


# -- L3


@pytest.mark.parametrize(
    ("end", "caught_up_ms", "high_watermark", "accused"),
    [
        (4, 0, 9, True),
        (4, 0, 10, False),
        (9, LONG_AFTER_MS, 9, False),  # about to join: the high watermark waits for it
        (9, LONG_AFTER_MS, 8, True),
    ],
)
def test_who_has_left_the_isr_holds_nobody_up(end: int, caught_up_ms: int, high_watermark: int, accused: bool) -> None:
    rig = Rig()
    rig.passes(LONG_AFTER_MS)
    rig.leader.isr, rig.leader.maximal_isr, rig.leader.high_watermark = (1,), frozenset((1,)), high_watermark
    rig.follower(2, end, caught_up_ms)
    shrunk = IsrChanged(NAME, (1,), (), (2,))
    if accused:
        with pytest.raises(Violation, match="L3"):
            rig.turn(1, shrunk)
    else:
        rig.turn(1, shrunk)
        rig.leader.high_watermark = 0
        rig.turn(1)  # looked at when it shrinks


# -- X12


def checks_of_transactions(*, calm: bool = False, lost: bool = False) -> TransactionChecks:
    world: Any = SimpleNamespace(now_us=0, watchers=[], counts={})
    replicas: Any = SimpleNamespace(oracles={1: SimpleNamespace(name=NAME, lost=[1] if lost else [])})
    return TransactionChecks(world, replicas, calm=calm)


WHERE = ("events", 0)


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
def test_a_write_is_not_refused_with_this(error: ErrorCode) -> None:
    with pytest.raises(Violation, match="X12"):
        checks_of_transactions().refused("app", WHERE, error, 200_000)


@pytest.mark.parametrize(
    "error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS]
)
def test_a_write_is_refused_with_this_where_there_are_faults(error: ErrorCode) -> None:
    checks_of_transactions().refused("app", WHERE, error, 0)
    with pytest.raises(Violation, match="X12"):
        checks_of_transactions(calm=True).refused("app", WHERE, error, 0)


def test_a_write_may_be_refused_with_this() -> None:
    checks_of_transactions(lost=True).refused("app", WHERE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    calm = checks_of_transactions(calm=True)
    calm.refused("app", WHERE, ErrorCode.CONCURRENT_TRANSACTIONS, 100_000)
    calm.refused("app", WHERE, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
