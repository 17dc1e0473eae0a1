"""The real controller, one event at a time: a tuple goes in, the controller decides, and a tuple comes out.

Owns the conversion of `components.Controller` to a `MetadataImage` and back, and the events that ask
`controller.brokers`, `controller.alter_configs` and the modules of `controller.partitions` for records and replay them.
Must never decide anything that the controller decides.

It is cheap for two reasons. Decisions depend on the order of epochs, never on their values, so a question is asked once
for all states that differ only in the values (`levels`). And in the order of replicas only the first that may lead
matters, so an election is asked once with each replica at the head of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from tanist.client.admin import alter_configs_request, reassign_request
from tanist.controller.alter_configs import incremental_alter_configs
from tanist.controller.brokers import Brokers
from tanist.controller.configs.settings import MIN_INSYNC_REPLICAS, UNCLEAN_RECOVERY_STRATEGY
from tanist.controller.decision import ControllerSettings
from tanist.controller.heartbeats import HeartbeatTable
from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.image import ELR_VERSION, METADATA_VERSION, TOPIC, MetadataImage, PartitionState
from tanist.controller.image.registration import BrokerRegistration
from tanist.controller.partitions import elections
from tanist.controller.partitions.alter_partition import alter_partition
from tanist.controller.partitions.fencing import Fencing
from tanist.controller.partitions.log_info import LogInfo
from tanist.controller.partitions.reassignment import alter_partition_reassignments
from tanist.controller.partitions.recovery_strategy import Strategy
from tanist.controller.partitions.unclean_recovery import Phase, UncleanRecoveries
from tanist.lab.model.partition.components import (
    Controller,
    Proposal,
    Recovery,
    Registration,
    Reply,
    broker_id,
    ids_of,
    mask_of_ids,
    members,
)
from tanist.lab.model.partition.levels import Decided, Event, leveled, leveled_event, lifted
from tanist.wire.ids import MIGRATING_DIRECTORY, NO_LEADER
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from tanist.wire.messages.alter_partition_response import AlterPartitionResponse
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from tanist.wire.metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    TopicRecord,
)
from tanist.wire.schema import MetadataRecord

CLUSTER = "model"
TOPIC_NAME = "t"
TOPIC_ID = UUID(int=9)
KEY = (TOPIC_ID, 0)
METADATA_LEVEL = 30
FAR = 1 << 40
"""A metadata offset beyond all others."""


class Controlling:
    """The decisions of one configuration. Remembers its answers."""

    def __init__(self, *, strategy: Strategy, recovery_manager: bool = True, elr: bool = True) -> None:
        self._strategy = strategy
        self._elr = elr
        self._settings = ControllerSettings(unclean_recovery_manager_enabled=recovery_manager)
        self._known: dict[tuple[Controller, Event], tuple[Decided, ...]] = {}
        self._events: dict[str, Callable[..., Decided]] = {
            "fence": self._fence,
            "unfence": self._unfence,
            "register": self._register,
            "shut_down": self._shut_down,
            "alter": self._alter,
            "prefer": self._prefer,
            "reassign": self._reassign,
            "cancel": self._cancel,
            "min_isr": self._set_min_isr,
            "reply": self._reply,
            "clock": self._clock,
            "failover": self._failover,
        }

    def decide(self, controller: Controller, event: Event) -> tuple[Decided, ...]:
        """The results of the event: one, or several where the order of the replicas decides."""
        level = leveled(controller)
        asked = (level, leveled_event(controller, event))
        known = self._known.get(asked)
        if known is None:
            known = self._known[asked] = tuple(self._ask(*asked))
        return tuple(lifted(controller, each) for each in known)

    def questions(self, controller: Controller) -> tuple[int, ...]:
        """The brokers whose replies an unclean recovery waits for."""
        if controller.recovery is None:
            return ()
        level = leveled(controller)
        image = self._image(level, members(level.replicas))
        recoveries = UncleanRecoveries(self._settings)
        _, asked = self._compare(recoveries, image, level.recovery, controller.recovery.clock)
        return tuple(asked)

    def _ask(self, level: Controller, event: Event) -> list[Decided]:
        replicas = members(level.replicas)
        found: list[Decided] = []
        for first in replicas:
            order = (first, *(replica for replica in replicas if replica != first))
            image = self._image(level, order)
            decided = self._events[event[0]](level, image, *event[1:])
            if decided not in found:
                found.append(decided)
            if event[0] != "prefer" and decided.controller.leader in (level.leader, NO_LEADER):
                break  # no replica was elected, so the order does not matter
        return found

    # -- events; each on an image of its own

    def _fence(self, before: Controller, image: MetadataImage, broker: int) -> Decided:
        decision = self._fencing().fence(image, broker_id(broker), before.registrations[broker].epoch)
        return self._after(before, image, () if decision is None else decision.records)

    def _unfence(self, before: Controller, image: MetadataImage, broker: int) -> Decided:
        return self._heartbeat(before, image, broker, want_shut_down=False)

    def _shut_down(self, before: Controller, image: MetadataImage, broker: int) -> Decided:
        return self._heartbeat(before, image, broker, want_shut_down=True)

    def _heartbeat(self, before: Controller, image: MetadataImage, broker: int, *, want_shut_down: bool) -> Decided:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id(broker),
            broker_epoch=before.registrations[broker].epoch,
            current_metadata_offset=FAR,
            want_shut_down=want_shut_down,
        )
        return self._after(before, image, self._brokers().heartbeat(image, request, 0, next_offset=FAR).records)

    def _register(self, before: Controller, image: MetadataImage, broker: int, previous_epoch: int) -> Decided:
        """A new process. `previous_epoch` is the mark of a clean shutdown that it found, -1 for none."""
        stored = before.registrations[broker].epoch
        request = BrokerRegistrationRequest(
            broker_id=broker_id(broker),
            cluster_id=CLUSTER,
            incarnation_id=_incarnation(broker, stored + 1),
            features=(
                Feature(name=METADATA_VERSION, min_supported_version=1, max_supported_version=METADATA_LEVEL),
                Feature(name=ELR_VERSION, min_supported_version=0, max_supported_version=1),
            ),
            log_dirs=(_directory(broker),),
            previous_broker_epoch=previous_epoch,
        )
        decision = self._brokers().register(image, request, 0, next_offset=stored + 1, api_version=4)
        return self._after(before, image, decision.records)

    def _alter(
        self, before: Controller, image: MetadataImage, sender: int, sender_epoch: int, proposal: Proposal
    ) -> Decided:
        wanted = PartitionData(
            partition_index=0,
            leader_epoch=proposal.leader_epoch,
            partition_epoch=proposal.partition_epoch,
            new_isr_with_epochs=tuple(
                BrokerState(broker_id=broker_id(member), broker_epoch=epoch) for member, epoch in proposal.isr
            ),
        )
        request = AlterPartitionRequest(
            broker_id=broker_id(sender),
            broker_epoch=sender_epoch,
            topics=(TopicData(topic_id=TOPIC_ID, partitions=(wanted,)),),
        )
        decision = alter_partition(image, request, self._settings)
        response = decision.response
        if not isinstance(response, AlterPartitionResponse):
            raise TypeError(f"AlterPartition was answered with {response}")
        if response.error_code:
            return Decided(before, refused=True)
        error = int(response.topics[0].partitions[0].error_code)
        return self._after(before, image, decision.records)._replace(error=error)

    def _prefer(self, before: Controller, image: MetadataImage) -> Decided:
        return self._after(before, image, elections.preferred_elections(image, self._settings)[0])

    def _reassign(self, before: Controller, image: MetadataImage, replicas: int | None) -> Decided:
        request = reassign_request(TOPIC_NAME, 0, None if replicas is None else ids_of(replicas))
        return self._after(before, image, alter_partition_reassignments(image, request, self._settings).records)

    def _cancel(self, before: Controller, image: MetadataImage) -> Decided:
        return self._reassign(before, image, None)

    def _set_min_isr(self, before: Controller, image: MetadataImage, min_isr: int) -> Decided:
        request = alter_configs_request(TOPIC, TOPIC_NAME, {MIN_INSYNC_REPLICAS: str(min_isr)})
        return self._after(before, image, incremental_alter_configs(image, request).records)

    def _reply(self, before: Controller, image: MetadataImage, reply: Reply) -> Decided:
        if before.recovery is None:
            return Decided(before)
        known = tuple(each for each in before.recovery.replies if each.broker != reply.broker)
        recovery = before.recovery._replace(replies=tuple(sorted((*known, reply))))
        return self._after(before._replace(recovery=recovery), image, ())

    def _clock(self, before: Controller, image: MetadataImage) -> Decided:
        if before.recovery is None:
            return Decided(before)
        recovery = before.recovery._replace(clock=before.recovery.clock + 1)
        return self._after(before._replace(recovery=recovery), image, ())

    def _failover(self, before: Controller, image: MetadataImage) -> Decided:
        return self._after(before._replace(recovery=None), image, ())

    # -- after the records

    def _after(self, before: Controller, image: MetadataImage, records: Iterable[MetadataRecord]) -> Decided:
        """Replay them; then look for partitions without a leader, as unclean recovery does."""
        _replay(image, records)
        state = _partition(image)
        recovery: Recovery | None = None
        compared: tuple[Reply, ...] = ()
        if not state.has_leader:
            recovery, compared = self._recover(before.recovery, image)
        return Decided(_controller(before, image, recovery), compared=compared)

    def _recover(self, recovery: Recovery | None, image: MetadataImage) -> tuple[Recovery | None, tuple[Reply, ...]]:
        recoveries = UncleanRecoveries(self._settings)
        kept, asked = self._compare(recoveries, image, recovery, 0 if recovery is None else recovery.clock)
        if asked is None:
            return None, () if kept is None else kept.replies
        return kept, ()

    def _compare(
        self, recoveries: UncleanRecoveries, image: MetadataImage, recovery: Recovery | None, clock: int
    ) -> tuple[Recovery | None, list[int] | Any]:
        """Give a new `UncleanRecoveries` the replies of the old one. Returns the known replies, and the open questions.

        None for the latter: a leader was elected, by the returned replies.
        """
        recoveries.activate(image)
        if self._elected(recoveries, image, 0):
            return None, None
        if recoveries.phase_of(KEY) is not Phase.COMPARING:
            return None, []
        known = () if recovery is None else recovery.replies
        settings = self._settings
        now_ms = (1, settings.unclean_recovery_grace_ms + 1, settings.unclean_recovery_timeout_ms + 1)[clock]
        asked = {question.broker_id for question in recoveries.questions(now_ms)}
        for reply in known:
            if broker_id(reply.broker) in asked:
                info = LogInfo(*reply[1:])
                recoveries.handle_replica_log_info(broker_id(reply.broker), {KEY: info}, image, now_ms)
                asked.discard(broker_id(reply.broker))
        elected = self._elected(recoveries, image, now_ms)
        again = {question.broker_id for question in recoveries.questions(FAR)}
        kept = tuple(reply for reply in known if broker_id(reply.broker) not in asked | again)
        if elected:
            return Recovery(clock, known), None
        live = {broker_id(broker) for broker in range(len(image.brokers))} & {
            number for number, each in image.brokers.items() if each.active
        }
        kept = tuple(reply for reply in kept if broker_id(reply.broker) in live)
        return Recovery(clock, kept), sorted(number - 1 for number in asked | again)

    def _elected(self, recoveries: UncleanRecoveries, image: MetadataImage, now_ms: int) -> bool:
        decision = recoveries.step(image, now_ms)
        _replay(image, decision.records)
        return _partition(image).has_leader

    # -- the image

    def _brokers(self) -> Brokers:
        return Brokers(0, CLUSTER, self._settings, HeartbeatTable(self._settings.broker_session_timeout_ms))

    def _fencing(self) -> Fencing:
        return Fencing(self._settings, HeartbeatTable(self._settings.broker_session_timeout_ms))

    def _image(self, controller: Controller, order: tuple[int, ...]) -> MetadataImage:
        image = MetadataImage(self._settings.topic_defaults())
        _replay(
            image,
            (
                FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_LEVEL),
                FeatureLevelRecord(name=ELR_VERSION, feature_level=int(self._elr)),
                TopicRecord(name=TOPIC_NAME, topic_id=TOPIC_ID),
                _config(MIN_INSYNC_REPLICAS, str(controller.min_isr)),
                _config(UNCLEAN_RECOVERY_STRATEGY, self._strategy.value),
                PartitionRecord(
                    partition_id=0,
                    topic_id=TOPIC_ID,
                    replicas=tuple(broker_id(broker) for broker in order),
                    isr=ids_of(controller.isr),
                    removing_replicas=ids_of(controller.removing),
                    adding_replicas=ids_of(controller.adding),
                    leader=NO_LEADER if controller.leader < 0 else broker_id(controller.leader),
                    leader_recovery_state=int(controller.recovering),
                    leader_epoch=controller.leader_epoch,
                    partition_epoch=controller.partition_epoch,
                    directories=(MIGRATING_DIRECTORY,) * len(order),
                    eligible_leader_replicas=ids_of(controller.elr),
                    last_known_elr=ids_of(controller.last_known_elr),
                ),
            ),
        )
        for broker, registration in enumerate(controller.registrations):
            image.brokers[broker_id(broker)] = BrokerRegistration(
                id=broker_id(broker),
                incarnation_id=_incarnation(broker, registration.epoch),
                epoch=registration.epoch,
                fenced=registration.fenced,
                in_controlled_shutdown=registration.shutting_down,
                directories=(_directory(broker),),
            )
        return image


def _config(name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=TOPIC, resource_name=TOPIC_NAME, name=name, value=value)


def _incarnation(broker: int, epoch: int) -> UUID:
    return UUID(int=(1 << 80) + (broker << 40) + epoch)


def _directory(broker: int) -> UUID:
    return UUID(int=(1 << 70) + broker)


def _replay(image: MetadataImage, records: Iterable[MetadataRecord]) -> ImageDelta:
    delta = ImageDelta()
    for record in records:
        image.replay(record, delta)
    return delta


def _partition(image: MetadataImage) -> PartitionState:
    state = image.partition(*KEY)
    if state is None:
        raise LookupError("the partition is gone")
    return state


def _controller(before: Controller, image: MetadataImage, recovery: Recovery | None) -> Controller:
    state = _partition(image)
    registered = [image.brokers[broker_id(broker)] for broker in range(len(before.registrations))]
    return Controller(
        leader=NO_LEADER if state.leader == NO_LEADER else state.leader - 1,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        replicas=mask_of_ids(state.replicas),
        isr=mask_of_ids(state.isr),
        elr=mask_of_ids(state.elr),
        last_known_elr=mask_of_ids(state.last_known_elr),
        adding=mask_of_ids(state.adding),
        removing=mask_of_ids(state.removing),
        recovering=state.recovering,
        min_isr=image.min_insync_replicas(TOPIC_NAME),
        registrations=tuple(Registration(each.epoch, each.fenced, each.in_controlled_shutdown) for each in registered),
        recovery=recovery,
    )


def moves(controller: Controller) -> tuple[int, ...]:
    """Sets of replicas that differ from the present one in one broker."""
    everybody = (1 << len(controller.registrations)) - 1
    present = controller.replicas
    return tuple(
        present & ~(1 << leaving) | 1 << coming
        for leaving in members(present)
        for coming in members(everybody & ~present)
    )
