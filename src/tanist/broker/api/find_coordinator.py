"""FindCoordinator (key 10), versions 0-6: the leader of the partition that has a group, or a transactional id.

Since version 6 also that of the state of a share partition, which is a key of three parts. The topic is made when it is
first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.guard import MESSAGES
from tanist.broker.metadata.internal_topics import InternalTopics
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.features import SHARE_VERSION
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import id_from_text
from tanist.wire.internal_topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, partition_of
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse

_TOPICS = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC, 2: SHARE_STATE_TOPIC}
"""By key type."""
_SHARE_PARTITION = 2
_SHARES_VERSION = 6
_ROWS = {0: rows.FIND_COORDINATOR_GROUP, 1: rows.FIND_COORDINATOR_TRANSACTION}
_BATCHED_VERSION = 4


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """The handler of FindCoordinator."""

    metadata: MetadataView
    internal_topics: InternalTopics

    def handle(self, request: FindCoordinatorRequest, call: Call) -> None:
        """Name the coordinator of each key, or say why there is none."""
        name = self._topic(request.key_type, call.version)
        keys = request.coordinator_keys if call.version >= _BATCHED_VERSION else (request.key,)
        if not any(_may(call, request.key_type, key) for key in keys):
            name = None  # nothing is made for who may not ask
        if name is not None and self.metadata.image.topic(name) is None:
            self.internal_topics.create(name, call.later(partial(self._answer, request, call)))
            return
        self._answer(request, call)

    def _answer(self, request: FindCoordinatorRequest, call: Call) -> None:
        keys = request.coordinator_keys if call.version >= _BATCHED_VERSION else (request.key,)
        found = tuple(self._coordinator(request.key_type, key, call) for key in keys)
        if call.version >= _BATCHED_VERSION:
            call.reply(FindCoordinatorResponse(coordinators=found))
            return
        only = found[0]
        call.reply(
            FindCoordinatorResponse(
                error_code=only.error_code,
                # Apache Kafka gives a name to "no error" here, and only here.
                error_message=only.error_message if only.error_code else "NONE",
                node_id=only.node_id,
                host=only.host,
                port=only.port,
            )
        )

    def _topic(self, key_type: int, version: int) -> str | None:
        """Where coordinators of this type have their state; None if there are none."""
        if key_type == _SHARE_PARTITION and (
            version < _SHARES_VERSION or self.metadata.image.features.get(SHARE_VERSION, 0) < 1
        ):
            return None
        return _TOPICS.get(key_type)

    def _coordinator(self, key_type: int, key: str, call: Call) -> Coordinator:
        name = self._topic(key_type, call.version)
        if not _may(call, key_type, key):
            code = _ROWS[key_type].code
            return _none(key, code, MESSAGES[code])
        if name is None or (key_type == _SHARE_PARTITION and not _is_share_partition(key)):
            return _none(key, ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")
        topic = self.metadata.image.topic(name)
        if topic is None:
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{name} is not there yet")
        index = partition_of(key, len(topic.partitions))
        leader = topic.partitions[index].leader
        endpoints = self.metadata.endpoints_of([leader], call.listener) if leader >= 0 else ()
        broker = self.metadata.image.brokers.get(leader)
        if not endpoints or broker is None or broker.fenced:
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{name}-{index} has no leader")
        return Coordinator(key=key, node_id=leader, host=endpoints[0].host, port=endpoints[0].port)


def build(components: NodeComponents) -> Handler:
    return FindCoordinator(components.metadata, components.internal_topics).handle


def _may(call: Call, key_type: int, key: str) -> bool:
    """Whether the client may describe what it asks about."""
    row = _ROWS.get(key_type)
    return row is None or call.may(row, key)


def _is_share_partition(key: str) -> bool:
    """Whether it is `group:topic id:partition`."""
    group_id, _, rest = key.rpartition(":")
    group_id, _, topic_id = group_id.rpartition(":")
    try:
        id_from_text(topic_id)
    except ValueError:
        return False
    return bool(group_id.strip()) and rest.isdigit()


def _none(key: str, error: int, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=error, error_message=message)
