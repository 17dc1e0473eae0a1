"""The requests about the state of share partitions, between brokers: each as a decision of the coordinator's shard, and
as a message on the wire.

A message is about many share partitions of one group; each of them has its own answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol
from uuid import UUID

from tanist.coordinator.share.runs import StateBatch, as_messages, batches_in
from tanist.coordinator.share.state_shard import Outcome, SharePartitionId, ShareState, ShareStateShard
from tanist.wire.apis import ApiKey
from tanist.wire.messages import (
    delete_share_group_state_request as delete_request,
)
from tanist.wire.messages import (
    delete_share_group_state_response as delete_response,
)
from tanist.wire.messages import (
    initialize_share_group_state_request as initialize_request,
)
from tanist.wire.messages import (
    initialize_share_group_state_response as initialize_response,
)
from tanist.wire.messages import (
    read_share_group_state_request as read_request,
)
from tanist.wire.messages import (
    read_share_group_state_response as read_response,
)
from tanist.wire.messages import (
    read_share_group_state_summary_request as summary_request,
)
from tanist.wire.messages import (
    read_share_group_state_summary_response as summary_response,
)
from tanist.wire.messages import (
    write_share_group_state_request as write_request,
)
from tanist.wire.messages import (
    write_share_group_state_response as write_response,
)


class StateRequest(Protocol):
    """A request about one share partition."""

    KEY: ClassVar[ApiKey]
    VERSION: ClassVar[int]

    def decide(self, shard: ShareStateShard, where: SharePartitionId, ticket: object, wall_ms: int) -> Sequence[Any]:
        """What the coordinator does."""

    def part(self, partition: int) -> Any:
        """The part of a message that is about this partition."""


@dataclass(frozen=True, slots=True)
class Read:
    leader_epoch: int

    KEY: ClassVar[ApiKey] = ApiKey.READ_SHARE_GROUP_STATE
    VERSION: ClassVar[int] = 0

    def decide(self, shard: ShareStateShard, where: SharePartitionId, ticket: object, wall_ms: int) -> Sequence[Any]:
        return shard.read(where, self.leader_epoch, ticket, wall_ms)

    def part(self, partition: int) -> Any:
        return read_request.PartitionData(partition=partition, leader_epoch=self.leader_epoch)


@dataclass(frozen=True, slots=True)
class Write:
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]

    KEY: ClassVar[ApiKey] = ApiKey.WRITE_SHARE_GROUP_STATE
    VERSION: ClassVar[int] = 1

    def decide(self, shard: ShareStateShard, where: SharePartitionId, ticket: object, wall_ms: int) -> Sequence[Any]:
        epochs = (self.state_epoch, self.leader_epoch)
        return shard.write(
            where, epochs, self.start_offset, self.delivery_complete_count, self.batches, ticket, wall_ms
        )

    def part(self, partition: int) -> Any:
        return write_request.PartitionData(
            partition=partition,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            state_batches=as_messages(write_request.StateBatch, self.batches),
        )


@dataclass(frozen=True, slots=True)
class Initialize:
    state_epoch: int
    start_offset: int

    KEY: ClassVar[ApiKey] = ApiKey.INITIALIZE_SHARE_GROUP_STATE
    VERSION: ClassVar[int] = 0

    def decide(self, shard: ShareStateShard, where: SharePartitionId, ticket: object, wall_ms: int) -> Sequence[Any]:
        return shard.initialize(where, self.state_epoch, self.start_offset, ticket, wall_ms)

    def part(self, partition: int) -> Any:
        return initialize_request.PartitionData(
            partition=partition, state_epoch=self.state_epoch, start_offset=self.start_offset
        )


@dataclass(frozen=True, slots=True)
class Delete:
    KEY: ClassVar[ApiKey] = ApiKey.DELETE_SHARE_GROUP_STATE
    VERSION: ClassVar[int] = 0

    def decide(self, shard: ShareStateShard, where: SharePartitionId, ticket: object, wall_ms: int) -> Sequence[Any]:
        return shard.delete(where, ticket)

    def part(self, partition: int) -> Any:
        return delete_request.PartitionData(partition=partition)


@dataclass(frozen=True, slots=True)
class Summarize:
    leader_epoch: int = -1

    KEY: ClassVar[ApiKey] = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
    VERSION: ClassVar[int] = 1

    def decide(self, shard: ShareStateShard, where: SharePartitionId, ticket: object, wall_ms: int) -> Sequence[Any]:
        return shard.summary(where, ticket)

    def part(self, partition: int) -> Any:
        return summary_request.PartitionData(partition=partition, leader_epoch=self.leader_epoch)


_REQUESTS: Final[dict[ApiKey, tuple[type, type]]] = {
    Read.KEY: (read_request.ReadShareGroupStateRequest, read_request.ReadStateData),
    Write.KEY: (write_request.WriteShareGroupStateRequest, write_request.WriteStateData),
    Initialize.KEY: (initialize_request.InitializeShareGroupStateRequest, initialize_request.InitializeStateData),
    Delete.KEY: (delete_request.DeleteShareGroupStateRequest, delete_request.DeleteStateData),
    Summarize.KEY: (summary_request.ReadShareGroupStateSummaryRequest, summary_request.ReadStateSummaryData),
}
_RESPONSES: Final[dict[ApiKey, tuple[type, type, type]]] = {
    Read.KEY: (
        read_response.ReadShareGroupStateResponse,
        read_response.ReadStateResult,
        read_response.PartitionResult,
    ),
    Write.KEY: (
        write_response.WriteShareGroupStateResponse,
        write_response.WriteStateResult,
        write_response.PartitionResult,
    ),
    Initialize.KEY: (
        initialize_response.InitializeShareGroupStateResponse,
        initialize_response.InitializeStateResult,
        initialize_response.PartitionResult,
    ),
    Delete.KEY: (
        delete_response.DeleteShareGroupStateResponse,
        delete_response.DeleteStateResult,
        delete_response.PartitionResult,
    ),
    Summarize.KEY: (
        summary_response.ReadShareGroupStateSummaryResponse,
        summary_response.ReadStateSummaryResult,
        summary_response.PartitionResult,
    ),
}


def message_of(group_id: str, asked: Mapping[SharePartitionId, StateRequest]) -> Any:
    """The request that asks all of these, which are of one kind and one group."""
    request, topic = _REQUESTS[next(iter(asked.values())).KEY]
    parts = _by_topic((where.topic_id, each.part(where.partition)) for where, each in asked.items())
    return request(
        group_id=group_id, topics=tuple(topic(topic_id=each, partitions=tuple(parts[each])) for each in parts)
    )


def asked_in(request: Any) -> dict[SharePartitionId, StateRequest]:
    """What a message asks, by share partition. `ValueError` for a state that there is not."""
    return {
        SharePartitionId(request.group_id, topic.topic_id, part.partition): _parsed(request.API_KEY, part)
        for topic in request.topics
        for part in topic.partitions
    }


def _parsed(key: int, part: Any) -> StateRequest:
    if key == Read.KEY:
        return Read(part.leader_epoch)
    if key == Write.KEY:
        return Write(
            part.state_epoch, part.leader_epoch, part.start_offset, part.delivery_complete_count,
            batches_in(part.state_batches),
        )  # fmt: skip
    if key == Initialize.KEY:
        return Initialize(part.state_epoch, part.start_offset)
    return Delete() if key == Delete.KEY else Summarize(part.leader_epoch)


def response_of(key: ApiKey, outcomes: Mapping[SharePartitionId, Outcome]) -> Any:
    """The answer to a message."""
    response, topic, result = _RESPONSES[key]
    parts = _by_topic((where.topic_id, _result(result, where.partition, each)) for where, each in outcomes.items())
    return response(results=tuple(topic(topic_id=each, partitions=tuple(parts[each])) for each in parts))


def _result(kind: type, partition: int, outcome: Outcome) -> Any:
    made = kind(partition=partition, error_code=outcome.error)
    state = outcome.state
    if state is not None:
        for name in ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count"):
            if name in made.DEFAULTS:
                setattr(made, name, getattr(state, name))
        if "state_batches" in made.DEFAULTS:
            made.state_batches = as_messages(read_response.StateBatch, state.batches)
    return made


def outcomes_in(group_id: str, response: Any) -> dict[SharePartitionId, Outcome]:
    """What an answer says, by share partition."""
    outcomes: dict[SharePartitionId, Outcome] = {}
    for topic in response.results:
        for part in topic.partitions:
            state = None
            if not part.error_code and hasattr(part, "start_offset"):
                state = ShareState(
                    state_epoch=part.state_epoch,
                    leader_epoch=getattr(part, "leader_epoch", -1),
                    start_offset=part.start_offset,
                    delivery_complete_count=getattr(part, "delivery_complete_count", -1),
                    batches=batches_in(getattr(part, "state_batches", ())),
                )
            outcomes[SharePartitionId(group_id, topic.topic_id, part.partition)] = Outcome(part.error_code, state)
    return outcomes


def _by_topic(parts: Iterable[tuple[UUID, Any]]) -> dict[UUID, list[Any]]:
    found: dict[UUID, list[Any]] = {}
    for topic_id, part in parts:
        found.setdefault(topic_id, []).append(part)
    return found
