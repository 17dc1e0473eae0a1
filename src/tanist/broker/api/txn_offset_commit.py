"""TxnOffsetCommit (key 28), versions 0-6: offsets that count when the transaction is committed (KIP-98, KIP-447).

The transaction must have the group's partition of `__consumer_offsets`: its coordinator is asked (KIP-890), and from
version 5 on the partition is added thereby. Since version 6 topics go by id (KIP-1319). Older clients get errors that
they know.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.groups.committed_topics import sort_topics
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.transactions.service import Transactions
from tanist.coordinator.transactions.fencing import verification_error
from tanist.coordinator.transactions.state import TopicIndex
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC, partition_of
from tanist.wire.messages.txn_offset_commit_request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
from tanist.wire.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_ABORTABLE_VERSION = 4
_ADDING_VERSION = 5
_IDS_VERSION = 6
_LOADING_VERSION = 2
_RETRIABLE = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


@dataclass(frozen=True, slots=True)
class TxnOffsetCommit:
    """The handler of TxnOffsetCommit."""

    metadata: MetadataView
    groups: Groups
    transactions: Transactions
    verifies: bool

    def handle(self, request: TxnOffsetCommitRequest, call: Call) -> None:
        """Have the transaction verified, then commit; the answer waits until that is in the log."""
        may = partial(call.may, rows.TXN_OFFSET_COMMIT_TOPIC)
        by_id, denied = call.version >= _IDS_VERSION, rows.TXN_OFFSET_COMMIT_TOPIC.code
        request.topics, others = sort_topics(request.topics, self.metadata.image, may, denied, by_id=by_id)
        if others:
            refused = tuple(each for topic, error in others for each in _refused((topic,), error))
            if not request.topics:
                call.reply(TxnOffsetCommitResponse(topics=refused))
                return
            call.amend(lambda response: _with(response, refused))
        if not request.group_id:
            self._refuse(request, call, ErrorCode.INVALID_GROUP_ID)
            return
        topic = self.metadata.image.topic(OFFSETS_TOPIC)
        found = self.groups.coordinator().find(request.group_id)
        if isinstance(found, int) or topic is None:
            error = found if isinstance(found, int) else ErrorCode.COORDINATOR_NOT_AVAILABLE
            if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and call.version < _LOADING_VERSION:
                error = ErrorCode.COORDINATOR_NOT_AVAILABLE  # older clients do not know the other
            self._refuse(request, call, error)
            return
        partition = (OFFSETS_TOPIC, partition_of(request.group_id, len(topic.partitions)))
        adds = call.version >= _ADDING_VERSION
        producers = found.hosted.log.producers
        ongoing = producers.is_open(request.producer_id, request.producer_epoch)
        if ongoing or not (self.verifies or adds):
            self._commit(request, call)
            return
        guard = producers.begin_verification(request.producer_id, request.producer_epoch, 0)

        def verified(errors: dict[TopicIndex, int]) -> None:
            error = errors[partition]
            if not error and not producers.is_verified(request.producer_id, guard):
                error = ErrorCode.CONCURRENT_TRANSACTIONS  # it has ended meanwhile
            if error:
                self._refuse(request, call, _error_for(error, call.version))
            else:
                self._commit(request, call)

        producer = (request.producer_id, request.producer_epoch)
        self.transactions.verifier().verify(
            request.transactional_id, producer, [partition], call.later(verified), adds=adds
        )

    def _commit(self, request: TxnOffsetCommitRequest, call: Call) -> None:
        coordinator = self.groups.coordinator()
        found = coordinator.find(request.group_id)  # it may have moved meanwhile
        if isinstance(found, int):
            self._refuse(request, call, found)
            return
        exact = call.version >= _IDS_VERSION
        decide = partial(found.shard.txn_commit, request, call.later(call.reply), exact=exact)
        coordinator.carry_out(found, decide, call.refuse)

    def _refuse(self, request: TxnOffsetCommitRequest, call: Call, error: int) -> None:
        """A partition that is not there has that error, whatever else is wrong."""
        topics = _refused(request.topics, error)
        for topic in topics:
            for each in topic.partitions:
                if self.metadata.current_leader(topic.name, each.partition_index) is None:
                    each.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        call.reply(TxnOffsetCommitResponse(topics=topics))


def build(components: NodeComponents) -> Handler:
    return TxnOffsetCommit(
        components.metadata,
        components.groups,
        components.transactions,
        components.context.config.transaction_partition_verification_enable,
    ).handle


def _refused(topics: Iterable[TxnOffsetCommitRequestTopic], error: int) -> tuple[TxnOffsetCommitResponseTopic, ...]:
    return tuple(
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=int(error))
                for each in topic.partitions
            ),
        )
        for topic in topics
    )


def _with(
    response: TxnOffsetCommitResponse, refused: tuple[TxnOffsetCommitResponseTopic, ...]
) -> TxnOffsetCommitResponse:
    response.topics = (*response.topics, *refused)
    return response


def _error_for(error: int, version: int) -> int:
    """The verification's error, as a client of this version can act on it."""
    if error in _RETRIABLE:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if version >= _LOADING_VERSION else error
    return verification_error(error, knows_abortable=version >= _ABORTABLE_VERSION)
