"""The life of brokers and controllers: registration, heartbeats, controlled shutdown, unregistration.

Owns the records about a broker itself, and their order among the partition changes that `elections` computes for the
same event (rule 78): an unfence is written before the changes, a registration last of all (`fencing` has the fence).
Rules 80-97. Decisions that touch many partitions are not atomic: cutting them anywhere is safe because of that order.

Must never keep state that has to survive a failover: sessions live in `heartbeats`, all else in the image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.features import (
    CONTROLLER_REGISTRATION_FROM,
    CONTROLLER_UNREGISTRATION_FROM,
    DIRECTORY_ASSIGNMENT_FROM,
)
from tanist.controller.heartbeats import BrokerState, HeartbeatTable, next_state, state_of
from tanist.controller.image.image import METADATA_VERSION, MetadataImage
from tanist.controller.image.registration import BrokerRegistration
from tanist.controller.partitions import elections
from tanist.controller.partitions.fencing import fence_records
from tanist.events.metadata import (
    DirectoriesLost,
    RegistrationRefused,
    RegistrationRepeated,
    ShutdownAllowed,
    StaleBrokerEpochRefused,
)
from tanist.events.stream import NOBODY, Events
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import RESERVED_DIRECTORIES
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest
from tanist.wire.messages.broker_registration_response import BrokerRegistrationResponse
from tanist.wire.messages.controller_registration_request import ControllerRegistrationRequest
from tanist.wire.messages.controller_registration_response import ControllerRegistrationResponse
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tanist.wire.messages.unregister_broker_response import UnregisterBrokerResponse
from tanist.wire.messages.unregister_controller_request import UnregisterControllerRequest
from tanist.wire.messages.unregister_controller_response import UnregisterControllerResponse
from tanist.wire.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from tanist.wire.schema import MetadataRecord

UNFENCE = -1
IN_CONTROLLED_SHUTDOWN = 1

CLEAN_SHUTDOWN_SINCE = 3
"""The version of BrokerRegistration from which brokers name the epoch of their last clean shutdown (rule 83)."""

_NO_STORED_EPOCH = -2
"""Differs from -1, which a broker without a clean-shutdown file sends: such a broker is never clean (rule 83)."""


@dataclass(frozen=True, slots=True)
class Brokers:
    """The decisions about brokers of one active controller."""

    node_id: int
    cluster_id: str
    settings: ControllerSettings
    heartbeats: HeartbeatTable
    events: Events = NOBODY

    # -- registration

    def register(
        self,
        image: MetadataImage,
        request: BrokerRegistrationRequest,
        now_ms: int,
        *,
        next_offset: int,
        api_version: int,
    ) -> Decision:
        """BrokerRegistration (rules 80-85). The epoch is `next_offset`, which no registration had before (A6)."""
        stored = image.brokers.get(request.broker_id)
        error = self._registration_error(image, request, stored, now_ms)
        if error is not ErrorCode.NONE:
            self.events.emit(RegistrationRefused(request.broker_id, error.name))
            return Decision(response=BrokerRegistrationResponse(error_code=error, broker_epoch=-1))
        records: list[MetadataRecord] = []
        if stored is not None and stored.incarnation_id == request.incarnation_id:
            # Rule 82: the same process again, so it has lost no records.
            epoch, fenced, shutting_down = stored.epoch, stored.fenced, stored.in_controlled_shutdown
            self.events.emit(RegistrationRepeated(stored.id, epoch))
        else:
            stored_epoch = stored.epoch if stored is not None else _NO_STORED_EPOCH
            clean = api_version >= CLEAN_SHUTDOWN_SINCE and stored_epoch == request.previous_broker_epoch
            records.extend(elections.broker_new_incarnation(image, request.broker_id, self.settings, clean))
            epoch, fenced, shutting_down = next_offset, True, False
            self.heartbeats.forget(request.broker_id)
        # Last (rule 78): a broker must not count as the new incarnation while its old one is still in some ISR.
        self.heartbeats.set_register_offset(request.broker_id, next_offset + len(records))
        records.append(
            RegisterBrokerRecord(
                broker_id=request.broker_id,
                incarnation_id=request.incarnation_id,
                broker_epoch=epoch,
                end_points=tuple(
                    BrokerEndpoint(
                        name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
                    )
                    for each in request.listeners
                ),
                features=tuple(
                    BrokerFeature(
                        name=each.name,
                        min_supported_version=each.min_supported_version,
                        max_supported_version=each.max_supported_version,
                    )
                    for each in request.features
                ),
                rack=request.rack,
                fenced=fenced,
                in_controlled_shutdown=shutting_down,
                log_dirs=request.log_dirs if image.metadata_version >= DIRECTORY_ASSIGNMENT_FROM else (),
            )
        )
        response = BrokerRegistrationResponse(error_code=ErrorCode.NONE, broker_epoch=epoch)
        return Decision(tuple(records), response, atomic=False)

    def _registration_error(
        self,
        image: MetadataImage,
        request: BrokerRegistrationRequest,
        stored: BrokerRegistration | None,
        now_ms: int,
    ) -> ErrorCode:
        """Rule 81."""
        if request.cluster_id != self.cluster_id:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        if (
            stored is not None
            and stored.incarnation_id != request.incarnation_id
            and self.heartbeats.has_valid_session(stored.id, stored.epoch, now_ms)
        ):
            return ErrorCode.DUPLICATE_BROKER_REGISTRATION
        if request.is_migrating_zk_broker or request.broker_id < 0:
            return ErrorCode.INVALID_REGISTRATION
        if image.metadata_version >= DIRECTORY_ASSIGNMENT_FROM and not _usable_directories(
            image, request.broker_id, request.log_dirs
        ):
            return ErrorCode.INVALID_REGISTRATION
        ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
        for name, level in {METADATA_VERSION: image.metadata_version, **image.features}.items():
            if name == METADATA_VERSION and name not in ranges:
                continue
            low, high = ranges.get(name, (0, 0))
            if not low <= level <= high:
                return ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE if METADATA_VERSION in ranges else ErrorCode.INVALID_REGISTRATION

    def register_controller(self, image: MetadataImage, request: ControllerRegistrationRequest) -> Decision:
        """ControllerRegistration: it publishes the controllers' endpoints and features."""
        if image.metadata_version < CONTROLLER_REGISTRATION_FROM:
            return Decision(
                response=ControllerRegistrationResponse(
                    error_code=ErrorCode.UNSUPPORTED_VERSION,
                    error_message="The current MetadataVersion is too old to support controller registrations.",
                )
            )
        record = RegisterControllerRecord(
            controller_id=request.controller_id,
            incarnation_id=request.incarnation_id,
            zk_migration_ready=False,
            end_points=tuple(
                ControllerEndpoint(
                    name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
                )
                for each in request.listeners
            ),
            features=tuple(
                ControllerFeature(
                    name=each.name,
                    min_supported_version=each.min_supported_version,
                    max_supported_version=each.max_supported_version,
                )
                for each in request.features
            ),
        )
        return Decision((record,), ControllerRegistrationResponse(error_code=ErrorCode.NONE, error_message=None))

    def unregister_controller(self, image: MetadataImage, request: UnregisterControllerRequest) -> Decision:
        """UnregisterController: an operator removes a controller that will not come back."""
        error, message = ErrorCode.NONE, None
        if request.controller_id == self.settings.node_id:
            error, message = ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active."
        elif image.metadata_version < CONTROLLER_UNREGISTRATION_FROM:
            error = ErrorCode.UNSUPPORTED_VERSION
            message = "The current MetadataVersion is too old to support controller unregistration."
        elif request.controller_id not in image.controllers:
            error = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
            message = f"Controller ID {request.controller_id} is not currently registered."
        response = UnregisterControllerResponse(error_code=error, error_message=message)
        records = () if error else (UnregisterControllerRecord(controller_id=request.controller_id),)
        return Decision(records, response)

    def unregister(self, image: MetadataImage, request: UnregisterBrokerRequest) -> Decision:
        """UnregisterBroker: an operator removes a broker that will not come back."""
        stored = image.brokers.get(request.broker_id)
        if stored is None:
            return Decision(
                response=UnregisterBrokerResponse(
                    error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
                    error_message=f"Broker ID {request.broker_id} is not currently registered",
                )
            )
        self.heartbeats.forget(stored.id)
        records = elections.broker_unregistered(image, stored.id, self.settings)
        records.append(UnregisterBrokerRecord(broker_id=stored.id, broker_epoch=stored.epoch))
        response = UnregisterBrokerResponse(error_code=ErrorCode.NONE, error_message=None)
        return Decision(tuple(records), response, atomic=False)

    # -- heartbeats

    def contact(self, image: MetadataImage, broker_id: int, epoch: int, now_ms: int) -> None:
        """A heartbeat has arrived, though it may be queued (rule 94). Unknown brokers are ignored."""
        stored = image.brokers.get(broker_id)
        if stored is not None and stored.epoch == epoch:
            self.heartbeats.contact(broker_id, epoch, now_ms)

    def heartbeat(
        self, image: MetadataImage, request: BrokerHeartbeatRequest, now_ms: int, *, next_offset: int
    ) -> Decision:
        """BrokerHeartbeat: rules 90-93. A heartbeat changes at most one state of its broker."""
        stored = image.brokers.get(request.broker_id)
        if stored is None or stored.epoch != request.broker_epoch:
            self.events.emit(StaleBrokerEpochRefused("BrokerHeartbeat", request.broker_id, request.broker_epoch))
            return Decision(response=BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
        table = self.heartbeats
        table.contact(stored.id, stored.epoch, now_ms)
        before = state_of(stored)
        register_offset = table.register_offset(stored.id)
        after = next_state(
            before,
            # Only a new registration ends a controlled shutdown (rule 76 has no value for it). DEVIATION from rule 90:
            # an unfence would make it leader (A29).
            want_fence=request.want_fence or (stored.fenced and stored.in_controlled_shutdown),
            want_shut_down=request.want_shut_down,
            metadata_offset=request.current_metadata_offset,
            register_offset=register_offset,
            controlled_shutdown_offset=table.controlled_shutdown_offset(stored.id),
            leads_any=lambda: image.leads_any(stored.id),
            lowest_active_offset=lambda: table.lowest_active_offset(image.brokers.values()),
        )
        records: list[MetadataRecord] = []
        lost = frozenset(request.offline_log_dirs) & frozenset(stored.directories)
        if lost and not after.fenced and after is not BrokerState.CONTROLLED_SHUTDOWN:
            # DEVIATION from rule 48: before anything else, because an unfence could elect it for a replica in a failed
            # directory. The broker repeats its list, so its other requests come with the next heartbeat.
            after = before
            records = self._directories_lost(image, stored, lost)
        elif after is not before:
            records = self._transition(image, stored, after)
        # DEVIATION from rule 92: Apache forgets it where this heartbeat changes the registration.
        table.set_metadata_offset(stored.id, request.current_metadata_offset)
        if after is BrokerState.SHUTDOWN_NOW:
            # DEVIATION from rule 81: it exits now, and its next incarnation need not wait for this session to expire.
            table.end_session(stored.id)
            self.events.emit(ShutdownAllowed(stored.id, stored.epoch, fenced=bool(records)))
        elif after is BrokerState.CONTROLLED_SHUTDOWN and before is not after:
            table.set_controlled_shutdown_offset(stored.id, next_offset + len(records) - 1)
        response = BrokerHeartbeatResponse(
            error_code=ErrorCode.NONE,
            is_caught_up=request.current_metadata_offset >= register_offset,
            is_fenced=after.fenced,
            should_shut_down=after is BrokerState.SHUTDOWN_NOW,
        )
        return Decision(tuple(records), response, atomic=False)

    def _transition(self, image: MetadataImage, stored: BrokerRegistration, after: BrokerState) -> list[MetadataRecord]:
        if after is BrokerState.UNFENCED:
            change = BrokerRegistrationChangeRecord(broker_id=stored.id, broker_epoch=stored.epoch, fenced=UNFENCE)
            return [change, *elections.broker_unfenced(image, stored.id, self.settings)]
        if after is BrokerState.CONTROLLED_SHUTDOWN:
            change = BrokerRegistrationChangeRecord(
                broker_id=stored.id, broker_epoch=stored.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
            )
            return [change, *elections.broker_controlled_shutdown(image, stored.id, self.settings)]
        return fence_records(image, stored, self.settings)  # rule 91: FENCED and SHUTDOWN_NOW alike

    def _directories_lost(
        self, image: MetadataImage, stored: BrokerRegistration, lost: Iterable[UUID]
    ) -> list[MetadataRecord]:
        gone = frozenset(lost)
        self.events.emit(DirectoriesLost(stored.id, tuple(str(each) for each in sorted(gone))))
        records = elections.directories_offline(image, stored.id, self.settings, sorted(gone))
        left = tuple(directory for directory in stored.directories if directory not in gone)
        if left:  # an empty list in the record means "unchanged" (rule 76); a broker without directories stops itself
            records.append(
                BrokerRegistrationChangeRecord(broker_id=stored.id, broker_epoch=stored.epoch, log_dirs=left)
            )
        return records


def _usable_directories(image: MetadataImage, broker_id: int, directories: Sequence[UUID]) -> bool:
    """At least one directory, no reserved ids, none twice, none of another broker."""
    if not directories or len(set(directories)) != len(directories):
        return False
    if any(directory.int < RESERVED_DIRECTORIES for directory in directories):
        return False
    wanted = set(directories)
    return not any(wanted.intersection(other.directories) for other in image.brokers.values() if other.id != broker_id)
