"""The brokers' sessions, and the decision table of heartbeats.

Owns the soft state of an active controller (`HeartbeatTable`): each broker's last contact, its offset in the metadata
log, and the offset of its controlled shutdown. None of it is in the log; a new controller starts over (rule 95). It
never writes a record: `brokers` does.

Rules 90 (the table), 92 (the shutdown offset), 94 and 95 (sessions). Sessions are kept in the order of their last
contact, so the next expiry is known without a scan; where Apache checks every eighth of the timeout, we check when one
is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from tanist.controller.image.registration import BrokerRegistration
from tanist.events.metadata import FencingInterrupted
from tanist.events.stream import NOBODY, Events

UNKNOWN_OFFSET = -1
NO_ACTIVE_BROKER = (1 << 63) - 1
_LONG_AGO_MS = -(1 << 40)


class BrokerState(Enum):
    """The controller's state of a broker (rule 90)."""

    FENCED = "FENCED"
    UNFENCED = "UNFENCED"
    CONTROLLED_SHUTDOWN = "CONTROLLED_SHUTDOWN"
    SHUTDOWN_NOW = "SHUTDOWN_NOW"

    @property
    def fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


def state_of(registration: BrokerRegistration) -> BrokerState:
    if registration.fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if registration.in_controlled_shutdown else BrokerState.UNFENCED


def next_state(
    current: BrokerState,
    *,
    want_fence: bool,
    want_shut_down: bool,
    metadata_offset: int,
    register_offset: int,
    controlled_shutdown_offset: int,
    leads_any: Callable[[], bool],
    lowest_active_offset: Callable[[], int],
) -> BrokerState:
    """Rule 90. The two callables are called only where the result matters."""
    if current is BrokerState.FENCED:
        if want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        # A48: before it has read its own registration, a broker may still hold the roles of its former incarnation.
        if not want_fence and metadata_offset >= register_offset:
            return BrokerState.UNFENCED
        return BrokerState.FENCED
    if current is BrokerState.UNFENCED:
        if want_fence:
            return BrokerState.SHUTDOWN_NOW if want_shut_down else BrokerState.FENCED
        if want_shut_down:
            return BrokerState.CONTROLLED_SHUTDOWN if leads_any() else BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED
    if current is BrokerState.CONTROLLED_SHUTDOWN:
        # No broker may still send clients to it: every active one must have read the new leaders.
        if leads_any() or controlled_shutdown_offset > lowest_active_offset():
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.SHUTDOWN_NOW
    raise ValueError(f"{current} is nothing that a broker can be")


@dataclass(slots=True)
class Session:
    """The session of one incarnation of a broker."""

    epoch: int
    contact_ms: int


class HeartbeatTable:
    """Sessions and offsets of the registered brokers. Lives as long as the controller is active."""

    def __init__(self, session_timeout_ms: int, events: Events = NOBODY) -> None:
        if session_timeout_ms < 1:
            raise ValueError(f"session timeout {session_timeout_ms} ms")
        self.session_timeout_ms = session_timeout_ms
        self._events = events
        # In order of contact_ms: a contact moves its session to the end, and time does not go back.
        self._sessions: dict[int, Session] = {}
        self._metadata_offsets: dict[int, int] = {}
        self._controlled_shutdown_offsets: dict[int, int] = {}
        self._register_offsets: dict[int, int] = {}
        self._activation_offset = UNKNOWN_OFFSET

    def activate(
        self, brokers: Mapping[int, BrokerRegistration], now_ms: int, last_offset: int = UNKNOWN_OFFSET
    ) -> None:
        """Forget everything, and give every unfenced broker a fresh session; fenced ones have none (rule 95).

        `last_offset` is where the log ended before this controller: no registration or shutdown it has inherited can
        lie beyond, so it stands for all of their offsets.
        """
        self.clear()
        self._activation_offset = last_offset
        for broker_id, registration in sorted(brokers.items()):
            if not registration.fenced:
                self._sessions[broker_id] = Session(registration.epoch, now_ms)

    def clear(self) -> None:
        self._sessions.clear()
        self._metadata_offsets.clear()
        self._controlled_shutdown_offsets.clear()
        self._register_offsets.clear()
        self._activation_offset = UNKNOWN_OFFSET

    # -- sessions

    def contact(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """A contact of the broker. The caller has checked its registration and epoch (which bounds the table)."""
        before = self._sessions.pop(broker_id, None)
        if before is not None and before.contact_ms < 0 and before.epoch == epoch:
            self._events.emit(FencingInterrupted(broker_id, epoch))
        self._sessions[broker_id] = Session(epoch, now_ms)

    def contact_time_ms(self, broker_id: int, epoch: int) -> int | None:
        session = self._sessions.get(broker_id)
        return session.contact_ms if session is not None and session.epoch == epoch else None

    def has_valid_session(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        contact_ms = self.contact_time_ms(broker_id, epoch)
        return contact_ms is not None and not self._expired(contact_ms, now_ms)

    def _expired(self, contact_ms: int, now_ms: int) -> bool:
        return contact_ms + self.session_timeout_ms < now_ms  # strictly (rule 94)

    @property
    def next_expiry_ms(self) -> int | None:
        """When the first session expires."""
        for session in self._sessions.values():
            return session.contact_ms + self.session_timeout_ms + 1
        return None

    def pop_expired(self, now_ms: int) -> tuple[int, int] | None:
        """End the oldest expired session: (broker id, epoch). The caller fences one broker a run (rule 94)."""
        for broker_id, session in self._sessions.items():
            if not self._expired(session.contact_ms, now_ms):
                return None
            del self._sessions[broker_id]
            return broker_id, session.epoch
        return None

    def overslept(self, by_ms: int, now_ms: int) -> None:
        """The controller itself did not run for `by_ms`, so no broker's silence in that time counts."""
        for session in self._sessions.values():
            session.contact_ms = min(session.contact_ms + by_ms, now_ms)

    def expire(self, broker_id: int, epoch: int) -> None:
        """The broker is to be fenced next, unless it is heard of before."""
        others = {each: session for each, session in self._sessions.items() if each != broker_id}
        self._sessions = {broker_id: Session(epoch, _LONG_AGO_MS), **others}

    def end_session(self, broker_id: int) -> None:
        """The broker was fenced: another incarnation may register at once."""
        self._sessions.pop(broker_id, None)

    def forget(self, broker_id: int) -> None:
        """The broker was unregistered, or is another incarnation from here on."""
        self._sessions.pop(broker_id, None)
        self._metadata_offsets.pop(broker_id, None)
        self._controlled_shutdown_offsets.pop(broker_id, None)
        self._register_offsets.pop(broker_id, None)

    # -- offsets

    def set_register_offset(self, broker_id: int, offset: int) -> None:
        """The offset of the broker's RegisterBrokerRecord."""
        self._register_offsets[broker_id] = offset

    def register_offset(self, broker_id: int) -> int:
        """The offset that a broker must have read before it may be unfenced."""
        return self._register_offsets.get(broker_id, self._activation_offset)

    def set_metadata_offset(self, broker_id: int, offset: int) -> None:
        self._metadata_offsets[broker_id] = offset

    def metadata_offset(self, broker_id: int) -> int:
        return self._metadata_offsets.get(broker_id, UNKNOWN_OFFSET)

    def lowest_active_offset(self, brokers: Iterable[BrokerRegistration]) -> int:
        """The lowest offset of the brokers that are unfenced and not shutting down; infinite if there is none."""
        return min((self.metadata_offset(broker.id) for broker in brokers if broker.active), default=NO_ACTIVE_BROKER)

    def set_controlled_shutdown_offset(self, broker_id: int, offset: int) -> None:
        """The end of the batch that moved the broker's leaderships. Only the first counts (rule 92)."""
        self._controlled_shutdown_offsets.setdefault(broker_id, offset)

    def controlled_shutdown_offset(self, broker_id: int) -> int:
        return self._controlled_shutdown_offsets.get(broker_id, self._activation_offset)
