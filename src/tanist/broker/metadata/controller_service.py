"""The controller on its node: decisions become records in the metadata log, answers wait for their commit (rule 149).

While this node leads the quorum, each request is decided by `controller.Controller` against an image that includes
what is not committed yet; the decision's records are appended, replayed into that image, and the answer is kept until
the high watermark covers them. An answer that carries no records of its own waits for the records before it, because
it may speak of them. When leadership is lost, what was not committed is dropped with the image, and its requests
are answered NOT_CONTROLLER.

A broker whose connection breaks is probed at once, and fenced when nobody listens there any more: fencing early is
always safe, and waiting for the session to run out costs nine seconds. A broker of Apache Kafka's may not listen yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tanist.broker.context import NodeContext
from tanist.broker.metadata.features import TANIST_VERSION
from tanist.broker.metadata.replica_log_info import ReplicaLogInfoRequests
from tanist.broker.metadata.view import MetadataView, endpoint_in
from tanist.broker.network.call import Call
from tanist.broker.network.client_throttles import ClientThrottles
from tanist.broker.network.probe import Probe
from tanist.controller.controller import Controller, not_controller_response
from tanist.controller.decision import Decision, ElectionWait, UncleanReason
from tanist.controller.features import kraft_version_refusal, update_features_response
from tanist.controller.image.image import METADATA_VERSION, MetadataImage
from tanist.controller.image.partition_state import RECOVERING
from tanist.controller.partitions.log_info import LogInfo
from tanist.controller.refusals import too_large_response
from tanist.events.metadata import BrokerGone, ControllerActivated, ControllerResigned, UncleanElection
from tanist.ports import Timer
from tanist.quorum import BatchTooLarge
from tanist.quorum.voter_changes import KRAFT_VERSION
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tanist.wire.metadata import (
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    encode_record,
    record_version,
)

_MAX_PENDING = 10_000
_CLIENT_CHARS_MAX = 100
_REFUSED_FOR_MS = 500
"""A broker of Apache Kafka's is unfenced before its listener is open. To fence it then is safe, and helps nobody."""


def _nothing() -> None:
    """Nobody listens yet."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """An answer or an event that waits until the metadata log is committed up to `offset`."""

    offset: int
    call: Call | None = None
    response: Any = None
    request: Any = None
    unclean: tuple[UncleanElection, ...] = ()


class ActiveLog(Protocol):
    """The metadata log, to the active controller (`quorum.MetadataQuorum`)."""

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def kraft_version(self) -> int:
        """The level that the log has."""

    def append(self, values: Sequence[bytes], *, atomic: bool, appended: Callable[[], None]) -> int:
        """Append controller records; give the offset of the last. `appended` is called before they can be committed."""

    def resign(self) -> None:
        """Lead the quorum no longer."""

    def upgrade_kraft_version(self, level: int, *, validate_only: bool) -> str | None:
        """Why kraft.version cannot go to `level`. None: it can, or its record is in the log."""


class ControllerService:
    """Runs the `Controller` of a node with the controller role."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        quorum: ActiveLog,
        controller: Controller,
        throttles: ClientThrottles,
    ) -> None:
        self._context = context
        self._metadata = metadata
        self._quorum = quorum
        self._throttles = throttles
        self.controller = controller
        self._pending: deque[_Pending] = deque()
        self._epoch = -1
        self._timer: Timer | None = None
        self._probing: dict[int, Probe] = {}
        self.inquiries = ReplicaLogInfoRequests(context, lambda: controller.image, self._handle_replica_log_info)
        self._electing: dict[ElectionWait, tuple[Call, Any]] = {}
        """Requests whose elections take questions to the replicas first."""
        self.unclean_elections = 0
        """Committed ones, of this process as the active controller."""
        self.on_elected: Callable[[], None] = _nothing
        self._closed = False

    PENDING_MAX = _MAX_PENDING

    @property
    def pending_count(self) -> int:
        """Answers that wait for the commit of what they speak of."""
        return len(self._pending)

    @property
    def active(self) -> bool:
        return self.controller.active

    # -- leadership

    def elected(self, epoch: int) -> None:
        """This node leads the quorum, and everything older than its epoch is committed and replayed: claim."""
        self._guarded(lambda: self._claim(epoch))

    def _claim(self, epoch: int) -> None:
        self._epoch = epoch
        self.on_elected()
        decision = self.controller.activate(epoch, self._context.clock.now_ms(), self._quorum.log_end_offset)
        self._context.events.emit(ControllerActivated(self._context.node_id, epoch))
        self._carry_out(decision, None, None)
        self._probe_brokers()
        self._go_on()
        self._sweep_tokens_later()

    def _sweep_tokens_later(self) -> None:
        """Delegation tokens end by the time of day, which the controller does not know."""
        clock, tokens, epoch = self._context.clock, self.controller.tokens, self._epoch

        def remove_expired() -> None:
            self._carry_out(self.controller.sweep_tokens(clock.wall_ms()), None, None)
            self._go_on()

        def sweep() -> None:
            if not self._closed and self.controller.active and self._epoch == epoch:
                self._guarded(remove_expired)
                self._sweep_tokens_later()

        if tokens.secret is not None:
            clock.call_at(clock.now_ms() + tokens.check_interval_ms, sweep)

    def stepped_down(self, image: MetadataImage) -> None:
        """Another node leads, or nobody: forget what was not committed. `image` is the committed state."""
        waiting, self._pending = self._pending, deque()
        if self.controller.active:
            self._context.events.emit(ControllerResigned(self._context.node_id, self._epoch))
        self.controller.deactivate(image)
        for probe in self._probing.values():
            probe.end()
        self._probing.clear()
        for pending in waiting:
            if pending.call is not None:
                pending.call.reply(not_controller_response(pending.request))
        electing, self._electing = self._electing, {}
        for call, request in electing.values():
            call.reply(not_controller_response(request))
        self.inquiries.close()
        self._arm()

    def _guarded(self, step: Callable[[], None]) -> bool:
        """Do what may change the controller. False if it has met an exception, and resigned.

        What the controller knows may be torn then: its heartbeats, its recoveries, the image with its proposals. So
        it forgets them, and goes on from the committed image, as after any loss of leadership (as Apache Kafka's does).
        """
        try:
            step()
        except Exception as error:
            self._context.unexpected.met("the controller", error)
            self.stepped_down(self._metadata.image.copy())
            self._quorum.resign()
            return False
        return True

    def committed(self) -> None:
        """The high watermark moved: send the answers it covers."""
        self._guarded(self._send_answers)

    def _send_answers(self) -> None:
        applied_offset = self._metadata.applied_offset
        pending = self._pending
        while pending and pending[0].offset <= applied_offset:
            done = pending[0]
            for election in done.unclean:
                self._context.events.emit(election)
            self.unclean_elections += len(done.unclean)
            if done.call is not None and done.response is not None:
                done.call.reply(done.response)
            pending.popleft()  # not before: who is in it is answered in any case

    def close(self) -> None:
        """The node is going down: no more ticks, no more knocking."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for probe in self._probing.values():
            probe.end()
        self._probing.clear()
        self.inquiries.close()

    # -- requests

    def handle(self, call: Call, request: Any) -> None:
        """Decide a request of the controller's APIs."""
        if not self.controller.active or len(self._pending) >= _MAX_PENDING:
            call.reply(not_controller_response(request))
            return
        if not self._guarded(lambda: self._handle(call, request)):
            # Not NOT_CONTROLLER: who asks the next controller the same makes it resign, too.
            call.refuse()

    def _handle(self, call: Call, request: Any) -> None:
        if isinstance(request, UpdateFeaturesRequest):
            updates = [each for each in request.feature_updates if each.feature == KRAFT_VERSION]
            if updates:
                self._update_kraft_version(call, request, updates[-1])
                return
        self._decide(call, request)

    def _decide(self, call: Call, request: Any) -> Decision | None:
        quota = self._throttles.mutations_of(call)
        decision = self.controller.handle(
            request,
            self._context.clock.now_ms(),
            next_offset=self._quorum.log_end_offset,
            api_version=call.version,
            quota=quota,
        )
        if quota.throttle_ms:
            self._throttles.mutations_throttled(quota.throttle_ms)
            call.throttle_ms = quota.throttle_ms
        done = self._carry_out(decision, call, request)
        self._go_on()
        return decision if done else None

    def _update_kraft_version(self, call: Call, request: UpdateFeaturesRequest, update: FeatureUpdateKey) -> None:
        """The quorum owns this feature; what is asked for beside it is decided as ever, and both or none are done."""
        level = update.max_version_level
        reason = kraft_version_refusal(update, self._quorum.kraft_version, call.version)
        if reason is None:
            reason = self._quorum.upgrade_kraft_version(level, validate_only=True)
        if reason is not None:
            complaint = f"Invalid update version {level} for feature {KRAFT_VERSION}. {reason}"
            error = ErrorCode.INVALID_UPDATE_VERSION
            call.reply(update_features_response(request, error, complaint, call.version))
            return
        others = tuple(each for each in request.feature_updates if each.feature != KRAFT_VERSION)
        if others:
            decision = self._decide(
                call,
                UpdateFeaturesRequest(
                    timeout_ms=request.timeout_ms, feature_updates=others, validate_only=request.validate_only
                ),
            )
            if decision is None or getattr(decision.response, "error_code", None) != ErrorCode.NONE:
                return
        else:
            call.reply(update_features_response(request, ErrorCode.NONE, None, call.version))
        if not request.validate_only:
            self._quorum.upgrade_kraft_version(level, validate_only=False)

    def _carry_out(self, decision: Decision | None, call: Call | None, request: Any) -> bool:
        """False if the request was refused instead, because its records do not fit into one batch."""
        if decision is None:
            return True
        if decision.records:
            metadata_version = self.controller.image.metadata_version
            values = []
            unclean = self._unclean_elections(decision, call)
            for record in decision.records:
                values.append(encode_record(record, record_version(type(record), metadata_version)))
                if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
                    metadata_version = record.feature_level
            # Before the append: with one voter it may be committed at once.
            if unclean:
                self._pending.append(_Pending(self._quorum.log_end_offset + len(values) - 1, unclean=unclean))
            # Replayed when they are in the log: the image never has what is not. And before anything comes of that.
            try:
                self._quorum.append(values, atomic=decision.atomic, appended=lambda: self._replay(decision.records))
            except BatchTooLarge:
                if call is None:
                    raise
                if unclean:
                    self._pending.pop()
                self._refuse_too_large(call, request)
                return False
        if call is None:
            return True
        if decision.wait is not None:
            call.wait()
            self._electing[decision.wait] = (call, request)
            return True
        self._reply_when_committed(call, decision.response, request)
        return True

    def _refuse_too_large(self, call: Call, request: Any) -> None:
        """Nothing is written or torn. A controller that resigned for it would be followed by the next (KAFKA-14996)."""
        call.reply(too_large_response(request))

    def _replay(self, records: Sequence[MetadataRecord]) -> None:
        self.controller.appended(records, self._context.clock.now_ms())

    def _reply_when_committed(self, call: Call, response: Any, request: Any) -> None:
        """An answer may speak of all that is in the log now, so it waits until that is committed."""
        offset = self._quorum.log_end_offset - 1
        if offset <= self._metadata.applied_offset:
            call.reply(response)
            return
        call.wait()
        self._pending.append(_Pending(offset, call, response, request))

    def _unclean_elections(self, decision: Decision, call: Call | None) -> tuple[UncleanElection, ...]:
        """Each election by which committed records may be lost (safety U5: once each)."""
        elections = []
        for record in decision.records:
            if type(record) is not PartitionChangeRecord or record.leader_recovery_state != RECOVERING:
                continue
            state = self.controller.image.partition(record.topic_id, record.partition_id)
            if state is None or record.leader < 0:
                continue
            name = f"{self.controller.image.topics[record.topic_id].name}-{record.partition_id}"
            key = record.topic_id, record.partition_id
            reason = decision.reasons.get(key, UncleanReason())
            asked_by = self._asked_by(key, call) if reason.asked_for else ""
            elections.append(UncleanElection(name, record.leader, state.leader_epoch + 1, *reason, asked_by))
        return tuple(elections)

    def _asked_by(self, key: TopicIdPartition, call: Call | None) -> str:
        """Who has asked for this election: now, or when its questions to the replicas began."""
        asking = call or next((asked for wait, (asked, _) in self._electing.items() if key in wait.pending), None)
        if asking is None:
            return ""
        # Clients choose their names: no line of the node's log is to begin within one.
        name = repr((asking.header.client_id or "")[:_CLIENT_CHARS_MAX])
        return f"{asking.session.principal} at {asking.session.host}, client {name}"

    # -- time

    def _go_on(self) -> None:
        """After every event: ask the replicas what is to be asked, answer what has been decided, set the clock."""
        if self.controller.active and not self._closed:
            now_ms = self._context.clock.now_ms()
            for question in self.controller.questions(now_ms):
                self.inquiries.ask(question)
            for wait in self.controller.finished_elections(now_ms) if self._electing else ():
                call, request = self._electing[wait]
                self._reply_when_committed(call, wait.response(), request)
                del self._electing[wait]
        self._arm()

    def _handle_replica_log_info(self, broker_id: int, answers: dict[TopicIdPartition, LogInfo] | None) -> None:
        def handle_answers() -> None:
            self.controller.handle_replica_log_info(broker_id, answers, self._context.clock.now_ms())
            self._go_on()

        if not self._closed:
            self._guarded(handle_answers)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self.controller.next_deadline_ms if self.controller.active and not self._closed else None
        if deadline_ms is not None:
            now_ms = self._context.clock.now_ms()
            self._timer = self._context.clock.call_at(max(deadline_ms, now_ms), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._guarded(self._do_due)

    def _do_due(self) -> None:
        if self.controller.active:
            decision = self.controller.tick(self._context.clock.now_ms(), self._quorum.log_end_offset)
            self._carry_out(decision, None, None)
        self._go_on()

    # -- brokers that vanish

    def contact(self, broker_id: int, broker_epoch: int) -> None:
        """A heartbeat came in (counted before it is queued, rule 94)."""
        if self.controller.active:
            now_ms = self._context.clock.now_ms()
            self._guarded(lambda: self.controller.contact(broker_id, broker_epoch, now_ms))

    def connection_lost(self, broker_id: int, broker_epoch: int) -> None:
        """The connection by which a broker sent its heartbeats has ended: is anybody there?"""
        broker = self.controller.image.brokers.get(broker_id)
        if self.controller.active and broker is not None and broker.epoch == broker_epoch and not broker.fenced:
            self._probe(broker_id)

    def _probe_brokers(self) -> None:
        """A new controller gives every unfenced broker a fresh session (rule 95): see at once who is not there."""
        for broker_id, broker in list(self.controller.image.brokers.items()):
            if not broker.fenced and broker_id != self._context.node_id:
                self._probe(broker_id)

    def _endpoint(self, broker_id: int) -> tuple[str, int] | None:
        """Where a broker listens for other nodes, by the controller's image."""
        return endpoint_in(self.controller.image, broker_id, self._context.config.inter_broker_listener_name)

    def _probe(self, broker_id: int) -> None:
        broker = self.controller.image.brokers[broker_id]
        endpoint = self._endpoint(broker_id)
        if broker_id in self._probing or endpoint is None:
            return
        epoch = broker.epoch
        self._probing[broker_id] = Probe(
            self._context.clock,
            self._context.network,
            *endpoint,
            lambda gone: self._probed(broker_id, epoch, gone),
            refused_for_ms=0 if TANIST_VERSION in broker.features else _REFUSED_FOR_MS,
        )

    def _probed(self, broker_id: int, epoch: int, gone: bool) -> None:
        self._probing.pop(broker_id, None)
        broker = self.controller.image.brokers.get(broker_id)
        if not gone or not self.controller.active or broker is None or broker.epoch != epoch:
            return
        self._guarded(lambda: self._fence(broker_id, epoch))

    def _fence(self, broker_id: int, epoch: int) -> None:
        """Its process is gone. Fencing early is always safe, late costs writes."""
        decision = self.controller.fencing.fence(self.controller.image, broker_id, epoch)
        if decision is not None and decision.records:
            self._context.events.emit(BrokerGone(broker_id))
            self._carry_out(decision, None, None)
        self._go_on()
