"""A broker's standing with the controller, seen from the broker: rule 96."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tanist.broker.log_directories import LogDirectories
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.events.event import Event
from tanist.events.metadata import FencingLearned, RegistrationAccepted, RegistrationLost, UnfencingLearned
from tanist.events.process import RegistrationFailed
from tanist.events.stream import Events
from tanist.events.text import describe
from tanist.sim.world.clock import SimClock
from tanist.sim.world.scheduler import Process, Scheduler
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest
from tanist.wire.messages.broker_registration_response import BrokerRegistrationResponse

PACE_MS = 10
INTERVAL_MS = 2_000
EPOCH = 40


class Dice:
    """Randomness that is none."""

    def bytes(self, count: int) -> bytes:
        return bytes(range(count))

    def below(self, _bound: int) -> int:
        return 0


class Rig:
    """A `Lifecycle` and the node around it, whose controller is the test."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        clock = SimClock(self.scheduler, Process("broker"))
        self.asked: list[tuple[int, Any, Callable[[Any], None]]] = []
        """When, the request, and the callback of the answer."""
        self.fatal: list[str] = []
        self.heard: list[Event] = []
        self.brokers: dict[int, Any] = {}
        events = Events()
        events.subscribe(self.heard.append)
        context = SimpleNamespace(
            node_id=1,
            cluster_id="c",
            clock=clock,
            random=Dice(),
            config=SimpleNamespace(
                broker_rack=None,
                broker_session_timeout_ms=9_000,
                broker_heartbeat_interval_ms=INTERVAL_MS,
                initial_broker_registration_timeout_ms=60_000,
            ),
            events=events,
            fatal=self._ends,
        )
        self.lifecycle = Lifecycle(
            context,  # type: ignore[arg-type]
            SimpleNamespace(image=SimpleNamespace(brokers=self.brokers, features={}), applied_offset=7),  # type: ignore[arg-type]
            SimpleNamespace(leader_id=1),  # type: ignore[arg-type]
            SimpleNamespace(  # type: ignore[arg-type]
                call=lambda request, version, timeout_ms, answered: self.asked.append((self.now_ms, request, answered))
            ),
            LogDirectories(),
            list,
        )

    def _ends(self, event: Event) -> None:
        self.heard.append(event)
        self.fatal.append((describe(event) or ("", ""))[1])

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_us // 1000

    @property
    def state(self) -> str:
        return self.lifecycle.state.value

    def run(self, ms: int) -> list[tuple[int, Any]]:
        """What is asked of the controller from now on: (after how many ms, request)."""
        since, count = self.now_ms, len(self.asked)
        self.scheduler.run_until(self.scheduler.now_us + ms * 1000)
        return [(at - since, request) for at, request, _ in self.asked[count:]]

    def answer(self, response: Any) -> None:
        """To the last question."""
        self.asked[-1][2](response)

    def registered(self) -> None:
        self.answer(BrokerRegistrationResponse(broker_epoch=EPOCH))

    def beaten(self, *, fenced: bool = True, shut_down: bool = False) -> None:
        self.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=fenced, should_shut_down=shut_down))

    def learn_of_it(self) -> None:
        """The metadata holds the registration now."""
        self.brokers[1] = SimpleNamespace(incarnation_id=self.lifecycle.incarnation_id, epoch=EPOCH)
        self.lifecycle.metadata_applied()


def started() -> Rig:
    rig = Rig()
    rig.lifecycle.start(33)
    ((at, request),) = rig.run(0)
    assert (at, type(request)) == (0, BrokerRegistrationRequest)
    return rig


def running() -> Rig:
    rig = started()
    rig.registered()
    rig.learn_of_it()
    rig.run(0)
    rig.beaten(fenced=False)
    assert rig.state == "RUNNING"
    return rig


def the_beat(asked: list[tuple[int, Any]]) -> tuple[int, bool, bool]:
    """After how long the only heartbeat came, and what it wants."""
    ((at, request),) = asked
    assert isinstance(request, BrokerHeartbeatRequest)
    assert (request.broker_epoch, request.current_metadata_offset) == (EPOCH, 7)
    return at, request.want_fence, request.want_shut_down


def test_rule_96_the_states_of_a_broker_from_start_to_stop() -> None:
    rig = Rig()
    assert rig.state == "NOT_RUNNING"
    rig = started()
    assert rig.state == "STARTING"
    rig.registered()
    assert the_beat(rig.run(PACE_MS)) == (0, True, False)  # at once
    rig.beaten()
    assert the_beat(rig.run(PACE_MS)) == (PACE_MS, True, False)
    rig.learn_of_it()
    rig.beaten()
    assert rig.state == "RECOVERY"
    assert the_beat(rig.run(PACE_MS)) == (PACE_MS, False, False)
    rig.beaten(fenced=False)
    assert rig.state == "RUNNING"
    assert the_beat(rig.run(INTERVAL_MS)) == (INTERVAL_MS, False, False)
    stopped: list[bool] = []
    rig.lifecycle.begin_controlled_shutdown(lambda: stopped.append(True))
    assert rig.state == "PENDING_CONTROLLED_SHUTDOWN"
    rig.beaten(fenced=False)
    assert the_beat(rig.run(PACE_MS)) == (PACE_MS, False, True)
    rig.beaten(fenced=False)
    assert the_beat(rig.run(PACE_MS)) == (PACE_MS, False, True)
    assert stopped == []
    rig.beaten(shut_down=True)
    assert (rig.state, stopped) == ("SHUTTING_DOWN", [True])
    assert rig.run(10 * INTERVAL_MS) == []


def test_rule_96_it_wants_to_be_unfenced_only_when_the_metadata_holds_its_registration() -> None:
    rig = started()
    rig.registered()
    for incarnation, epoch in ((UUID(int=5), EPOCH), (rig.lifecycle.incarnation_id, EPOCH - 1)):
        rig.brokers[1] = SimpleNamespace(incarnation_id=incarnation, epoch=epoch)  # a former life
        rig.lifecycle.metadata_applied()
        assert the_beat(rig.run(PACE_MS))[1]
        rig.beaten(fenced=False)
        assert rig.state == "STARTING"
    rig.run(PACE_MS)
    rig.learn_of_it()
    rig.beaten()
    assert not the_beat(rig.run(PACE_MS))[1]


def test_rule_96_fenced_and_back_it_beats_faster() -> None:
    rig = running()
    rig.run(INTERVAL_MS)
    rig.beaten(fenced=True)
    assert rig.state == "RECOVERY"
    assert the_beat(rig.run(PACE_MS)) == (PACE_MS, False, False)
    rig.beaten(fenced=False)
    assert rig.state == "RUNNING"


@pytest.mark.parametrize(
    "failure",
    [
        None,
        BrokerRegistrationResponse(error_code=ErrorCode.NOT_CONTROLLER, broker_epoch=-1),
        BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION, broker_epoch=-1),
        BrokerRegistrationResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, broker_epoch=-1),
    ],
)
def test_rule_96_a_registration_that_fails_is_sent_again_with_the_same_incarnation(failure: Any) -> None:
    rig = started()
    first = rig.asked[-1][1]
    assert (first.incarnation_id, first.previous_broker_epoch) == (rig.lifecycle.incarnation_id, 33)
    rig.answer(failure)
    ((after_ms, again),) = rig.run(1_000)
    assert 0 < after_ms < 1_000
    assert again == first
    assert (rig.state, rig.fatal) == ("STARTING", [])


def duplicate(rig: Rig) -> None:
    """A registration, refused because a session is still there."""
    rig.answer(BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION, broker_epoch=-1))


def test_a_broker_that_waited_for_a_quorum_has_all_its_time_for_the_session_before() -> None:
    rig = started()
    for _ in range(100):  # longer than initial.broker.registration.timeout.ms
        rig.answer(None)
        rig.run(1_000)
    assert rig.now_ms > 60_000
    duplicate(rig)
    rig.run(2_000)
    assert (rig.fatal, rig.lifecycle.waits_for) == (
        [],
        "the session from before its crash, which ends after 9 s (broker.session.timeout.ms)",
    )
    rig.registered()
    assert rig.lifecycle.broker_epoch == EPOCH


def test_a_broker_that_is_refused_for_as_long_as_its_registration_may_take_gives_up() -> None:
    rig = started()
    for _ in range(100):
        if not rig.fatal:
            duplicate(rig)
            rig.run(1_000)
    assert rig.fatal == [
        "broker 1 cannot register: it is registered elsewhere (DUPLICATE_BROKER_REGISTRATION): is another one running?"
    ]
    assert 60_000 < rig.now_ms < 63_000


def test_rule_96_a_heartbeat_that_fails_is_sent_again() -> None:
    rig = running()
    rig.run(INTERVAL_MS)
    rig.answer(None)
    after_ms, want_fence, want_shut_down = the_beat(rig.run(1_000))
    assert 0 < after_ms < 1_000
    assert (want_fence, want_shut_down, rig.state) == (False, False, "RUNNING")


def test_an_epoch_that_is_stale_takes_a_new_registration() -> None:
    rig = running()
    rig.run(INTERVAL_MS)
    rig.answer(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    assert rig.state == "STARTING"
    ((_, request),) = rig.run(1_000)
    assert isinstance(request, BrokerRegistrationRequest)


STALE = BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)


def test_its_standing_is_reported_as_it_changes() -> None:
    rig = running()
    assert rig.heard == [RegistrationAccepted(1, EPOCH), UnfencingLearned(1)]
    rig.heard.clear()
    for fenced in (False, True, True, False):
        rig.run(INTERVAL_MS)
        rig.beaten(fenced=fenced)
    assert rig.heard == [FencingLearned(1), UnfencingLearned(1)]
    rig.heard.clear()
    rig.run(INTERVAL_MS)
    rig.answer(STALE)
    rig.run(1_000)
    assert rig.heard == [RegistrationLost(1, EPOCH)]


def test_a_broker_that_stops_does_not_say_that_it_registers_anew() -> None:
    rig, stopped = running(), list[bool]()
    rig.lifecycle.begin_controlled_shutdown(lambda: stopped.append(True))
    rig.run(INTERVAL_MS)
    rig.heard.clear()
    rig.answer(STALE)
    assert (rig.state, stopped, rig.heard) == ("SHUTTING_DOWN", [True], [])
    assert rig.run(10 * INTERVAL_MS) == []


@pytest.mark.parametrize(
    ("error", "waited"),
    [(ErrorCode.INCONSISTENT_CLUSTER_ID, False), (ErrorCode.DUPLICATE_BROKER_REGISTRATION, True), (999, False)],
)
def test_a_registration_that_the_cluster_will_not_have_ends_the_node(error: int, waited: bool) -> None:
    rig = started()
    for _ in range(100):
        if not rig.fatal:
            rig.answer(BrokerRegistrationResponse(error_code=error, broker_epoch=-1))
            rig.run(1_000)
    assert rig.heard == [RegistrationFailed(1, ErrorCode.name_of(error), waited)]
