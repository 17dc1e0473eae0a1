"""The controller of a node: requests and time go in, decisions come out.

Owns the dispatch of requests to the modules that decide them, the periodic tasks and their deadlines, and its
activation and deactivation (rule 149). A `Decision` is a proposal until the node has committed it. The image here
includes proposals, so that decisions build on each other, and is replaced when leadership is lost.

Must change the image only by `replay`, and never answer while it is not active: its image may be old then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from tanist.controller import topics
from tanist.controller.alter_configs import alter_configs, incremental_alter_configs
from tanist.controller.brokers import Brokers
from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.controller.decision import NO_QUOTA, ControllerSettings, Decision, ElectionWait, MutationQuota
from tanist.controller.features import Bootstrap, bootstrap_records, update_features
from tanist.controller.heartbeats import HeartbeatTable
from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.image import METADATA_VERSION, MetadataImage
from tanist.controller.partitions import elections
from tanist.controller.partitions.alter_partition import alter_partition
from tanist.controller.partitions.directories import assign_replicas_to_dirs
from tanist.controller.partitions.elect_leaders import elect_leaders, update_wait
from tanist.controller.partitions.fencing import Fencing
from tanist.controller.partitions.log_info import LogInfo
from tanist.controller.partitions.reassignment import alter_partition_reassignments, list_partition_reassignments
from tanist.controller.partitions.unclean_recovery import AskReplica, UncleanRecoveries
from tanist.controller.producer_ids import allocate_producer_ids
from tanist.controller.refusals import not_controller_response, refusal
from tanist.controller.security.acls import create_acls, delete_acls
from tanist.controller.security.client_quotas import alter_client_quotas
from tanist.controller.security.scram import alter_credentials
from tanist.controller.security.tokens import TokenSettings, decide_token, sweep_tokens
from tanist.controller.token_request import TokenRequest
from tanist.events.stream import NOBODY, Events
from tanist.ports import Random
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from tanist.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
from tanist.wire.messages.alter_configs_request import AlterConfigsRequest
from tanist.wire.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest
from tanist.wire.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from tanist.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest
from tanist.wire.messages.controller_registration_request import ControllerRegistrationRequest
from tanist.wire.messages.create_acls_request import CreateAclsRequest
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest
from tanist.wire.messages.create_topics_request import CreateTopicsRequest
from tanist.wire.messages.delete_acls_request import DeleteAclsRequest
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest
from tanist.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from tanist.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tanist.wire.messages.unregister_controller_request import UnregisterControllerRequest
from tanist.wire.messages.update_features_request import UpdateFeaturesRequest
from tanist.wire.metadata import AbortTransactionRecord, NoOpRecord
from tanist.wire.schema import MetadataRecord

__all__ = ["Bootstrap", "Controller", "not_controller_response"]


class Controller:
    """One node's controller, active or standing by."""

    def __init__(
        self,
        node_id: int,
        image: MetadataImage,
        settings: ControllerSettings,
        random: Random,
        *,
        cluster_id: str,
        bootstrap: Bootstrap | None = None,
        voter_ids: Callable[[], Collection[int]] = tuple,
        events: Events = NOBODY,
    ) -> None:
        self.node_id = node_id
        self.image = image
        self.settings = settings
        self.tokens = TokenSettings.of(settings.static_configs)
        self.active = False
        self.epoch = -1
        self._random = random
        self._bootstrap = bootstrap or Bootstrap()
        self._voter_ids = voter_ids
        self._events = events
        self._heartbeats = HeartbeatTable(settings.broker_session_timeout_ms, events)
        self._brokers = Brokers(node_id, cluster_id, settings, self._heartbeats, events)
        self.fencing = Fencing(settings, self._heartbeats, events)
        self.recoveries = UncleanRecoveries(settings, events)
        self._waits: list[ElectionWait] = []
        self._idle_interval_ms = _idle_interval_ms(settings)
        self._last_append_ms = 0
        self._last_tick_ms = 0
        self._next_balance_ms: int | None = None
        self._next_unclean_sweep_ms: int | None = None

    # -- leadership

    def activate(self, epoch: int, now_ms: int, next_offset: int) -> Decision:
        """This node leads the quorum and has replayed all earlier records (rule 149, A49).

        Returns the first records of this leadership: the end of a metadata transaction that its predecessor left open,
        or the first records of a new cluster.
        """
        if epoch <= self.epoch:
            raise ValueError(f"controller {self.node_id} activated in epoch {epoch} after {self.epoch}")
        self.active = True
        self.epoch = epoch
        self._heartbeats.activate(self.image.brokers, now_ms, next_offset - 1)
        self._last_append_ms = self._last_tick_ms = now_ms
        if self.settings.auto_leader_rebalance_enable:
            self._next_balance_ms = now_ms + self.settings.leader_imbalance_check_interval_ms
        self._next_unclean_sweep_ms = now_ms + self.settings.unclean_leader_election_interval_ms
        self.recoveries.activate(self.image)
        records: list[MetadataRecord] = []
        if self.image.in_transaction:
            records.append(AbortTransactionRecord(reason="Controller failover"))
        if self._log_is_empty():
            records.extend(bootstrap_records(self._bootstrap, self.settings.min_insync_replicas))
        return Decision(tuple(records))

    def _log_is_empty(self) -> bool:
        image = self.image
        return METADATA_VERSION not in image.features and not (image.brokers or image.topics or image.configs)

    def deactivate(self, image: MetadataImage) -> None:
        """Another node leads: drop the proposals. `image` is that of the committed records."""
        self.active = False
        self.image = image
        self._heartbeats.clear()
        self.recoveries.deactivate()
        self._waits.clear()
        self._next_balance_ms = self._next_unclean_sweep_ms = None

    def appended(self, records: Iterable[MetadataRecord], now_ms: int) -> None:
        """The records of a decision are in the log: replay them."""
        self._last_append_ms = now_ms
        for record in records:
            self.replay(record)

    def replay(self, record: MetadataRecord) -> None:
        """Replay a record: one of its own at once, another controller's when it is committed."""
        if not self.active:
            self.image.replay(record)
            return
        delta = ImageDelta()
        self.image.replay(record, delta)
        self.recoveries.changed(self.image, delta)

    # -- requests

    def handle(
        self, request: Any, now_ms: int, *, next_offset: int, api_version: int, quota: MutationQuota = NO_QUOTA
    ) -> Decision:
        """Decide one request. `next_offset` is the offset of the decision's first record."""
        if not self.active:
            return Decision(response=not_controller_response(request))
        create_or_delete = _CREATE_OR_DELETE.get(type(request))
        if create_or_delete is not None:
            return create_or_delete(self, request, quota)
        decide = _DECIDE.get(type(request))
        if decide is None:
            raise ValueError(f"{type(request).__name__} is not for a controller")
        decision = decide(self, request, now_ms, next_offset, api_version)
        if decision.wait is not None:
            self._waits.append(decision.wait)
        return decision

    def contact(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """A broker's heartbeat has arrived; call this before anything that may delay it (rule 94)."""
        if self.active:
            self._brokers.contact(self.image, broker_id, epoch, now_ms)

    def sweep_tokens(self, wall_ms: int) -> Decision | None:
        """Remove delegation tokens that have expired by this time of day."""
        return sweep_tokens(self.image, wall_ms) if self.active else None

    def handle_replica_log_info(
        self, broker_id: int, answers: Mapping[TopicIdPartition, LogInfo] | None, now_ms: int
    ) -> None:
        """The answer to a question of `questions`; None: there is none."""
        if not self.active:
            return
        if answers is None:
            self.recoveries.unanswered(broker_id, now_ms)
        else:
            self.recoveries.handle_replica_log_info(broker_id, answers, self.image, now_ms)

    def questions(self, now_ms: int) -> list[AskReplica]:
        """The log inquiries to send now, for unclean recoveries. Call it after every event."""
        return self.recoveries.questions(now_ms) if self.active else []

    def finished_elections(self, now_ms: int) -> list[ElectionWait]:
        """Finished waits: their answers may be sent once their records are committed."""
        done = [wait for wait in self._waits if update_wait(wait, self.image, self.recoveries, now_ms)]
        self._waits = [wait for wait in self._waits if not wait.done]
        return done

    # -- time

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` is due next; it may lie in the past."""
        if not self.active:
            return None
        deadlines = (self._next_due_ms, self.recoveries.next_deadline_ms)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    @property
    def _next_due_ms(self) -> int | None:
        """The next deadline of a timer: if it passed long ago, the process stood still."""
        expiry_ms = self._heartbeats.next_expiry_ms
        deadlines = (
            # More than one may have expired, and each tick fences one (rule 94): the next is due at once.
            None if expiry_ms is None else max(expiry_ms, self._last_tick_ms),
            self._next_balance_ms,
            self._next_unclean_sweep_ms,
            min((wait.deadline_ms for wait in self._waits), default=None),
            self._last_append_ms + self._idle_interval_ms if self._idle_interval_ms else None,
        )
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def tick(self, now_ms: int, next_offset: int) -> Decision | None:
        """Do what is due. At most one task writes records; the deadline tells whether there is more."""
        due_ms = self._next_due_ms
        if not self.active or due_ms is None:
            return None
        overslept_ms = now_ms - due_ms
        if overslept_ms > self._heartbeats.session_timeout_ms // 4:
            self._heartbeats.overslept(overslept_ms, now_ms)
        self._last_tick_ms = max(self._last_tick_ms, now_ms)
        for task in (
            self._fence_expired,
            self._recover_uncleanly,
            self._balance,
            self._elect_uncleanly,
            self._show_progress,
        ):
            decision = task(now_ms)
            if decision is not None and decision.records:
                return decision
        return None

    def _fence_expired(self, now_ms: int) -> Decision | None:
        return self.fencing.fence_expired(self.image, now_ms)

    def _recover_uncleanly(self, now_ms: int) -> Decision | None:
        return self.recoveries.step(self.image, now_ms)

    def _balance(self, now_ms: int) -> Decision | None:
        """Rule 98. A run that was cut short goes on at once."""
        if self._next_balance_ms is None or now_ms < self._next_balance_ms:
            return None
        records, more = elections.preferred_elections(self.image, self.settings)
        self._next_balance_ms = now_ms if more else now_ms + self.settings.leader_imbalance_check_interval_ms
        return Decision(tuple(records), atomic=False)

    def _elect_uncleanly(self, now_ms: int) -> Decision | None:
        """Rule 100."""
        if self._next_unclean_sweep_ms is None or now_ms < self._next_unclean_sweep_ms:
            return None
        records, more = elections.unclean_elections(self.image, self.settings)
        self._next_unclean_sweep_ms = now_ms if more else now_ms + self.settings.unclean_leader_election_interval_ms
        return Decision(tuple(records), atomic=False)

    def _show_progress(self, now_ms: int) -> Decision | None:
        """An idle log gets a NoOpRecord, so that its readers can tell idle from stuck."""
        if not self._idle_interval_ms or now_ms < self._last_append_ms + self._idle_interval_ms:
            return None
        return Decision((NoOpRecord(),))


def _idle_interval_ms(settings: ControllerSettings) -> int:
    name = "metadata.max.idle.interval.ms"
    setting = BROKER_SETTINGS[name]
    return int(settings.static_configs.get(name, setting.default or "0"))


# ---- who decides what


_Decide = Callable[[Controller, Any, int, int, int], Decision]


def _authorized(c: Controller, request: Any, decide: Callable[[], Decision]) -> Decision:
    """A decision about access control lists, where there is an authorizer."""
    if c.settings.authorizer:
        return decide()
    return Decision(response=refusal(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured."))


_DECIDE: dict[type, _Decide] = {
    AlterPartitionRequest: lambda c, request, now_ms, offset, version: alter_partition(
        c.image, request, c.settings, c._events
    ),
    AlterPartitionReassignmentsRequest: lambda c, request, now_ms, offset, version: alter_partition_reassignments(
        c.image, request, c.settings
    ),
    ListPartitionReassignmentsRequest: lambda c, request, now_ms, offset, version: Decision(
        response=list_partition_reassignments(c.image, request)
    ),
    ElectLeadersRequest: lambda c, request, now_ms, offset, version: elect_leaders(
        c.image, request, c.settings, c.recoveries, now_ms, version
    ),
    IncrementalAlterConfigsRequest: lambda c, request, now_ms, offset, version: incremental_alter_configs(
        c.image, request, c._events
    ),
    AlterConfigsRequest: lambda c, request, now_ms, offset, version: alter_configs(c.image, request, c._events),
    UpdateFeaturesRequest: lambda c, request, now_ms, offset, version: update_features(
        c.image,
        request,
        static_min_insync_replicas=c.settings.min_insync_replicas,
        node_id=c.node_id,
        voter_ids=c._voter_ids(),
        api_version=version,
    ),
    BrokerRegistrationRequest: lambda c, request, now_ms, offset, version: c._brokers.register(
        c.image, request, now_ms, next_offset=offset, api_version=version
    ),
    BrokerHeartbeatRequest: lambda c, request, now_ms, offset, version: c._brokers.heartbeat(
        c.image, request, now_ms, next_offset=offset
    ),
    UnregisterBrokerRequest: lambda c, request, now_ms, offset, version: c._brokers.unregister(c.image, request),
    UnregisterControllerRequest: lambda c, request, now_ms, offset, version: c._brokers.unregister_controller(
        c.image, request
    ),
    ControllerRegistrationRequest: lambda c, request, now_ms, offset, version: c._brokers.register_controller(
        c.image, request
    ),
    AllocateProducerIdsRequest: lambda c, request, now_ms, offset, version: allocate_producer_ids(c.image, request),
    AssignReplicasToDirsRequest: lambda c, request, now_ms, offset, version: assign_replicas_to_dirs(
        c.image, request, c.settings
    ),
    CreateAclsRequest: lambda c, request, now_ms, offset, version: _authorized(
        c, request, lambda: create_acls(c.image, request, c._random)
    ),
    DeleteAclsRequest: lambda c, request, now_ms, offset, version: _authorized(
        c, request, lambda: delete_acls(c.image, request)
    ),
    AlterClientQuotasRequest: lambda c, request, now_ms, offset, version: alter_client_quotas(c.image, request),
    TokenRequest: lambda c, request, now_ms, offset, version: decide_token(c.image, request, c.tokens, c._random),
    AlterUserScramCredentialsRequest: lambda c, request, now_ms, offset, version: alter_credentials(c.image, request),
}
"""The order of arguments: request, now_ms, next_offset, api_version."""

_CREATE_OR_DELETE: dict[type, Callable[[Controller, Any, MutationQuota], Decision]] = {
    CreateTopicsRequest: lambda c, request, quota: topics.create_topics(c.image, request, c.settings, c._random, quota),
    DeleteTopicsRequest: lambda c, request, quota: topics.delete_topics(c.image, request, c.settings, quota),
    CreatePartitionsRequest: lambda c, request, quota: topics.create_partitions(
        c.image, request, c.settings, c._random, quota
    ),
}
"""And those for which clients have a quota."""
