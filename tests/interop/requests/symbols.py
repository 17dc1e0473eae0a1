"""Values that are others at each node: ids of topics, members and producers, and names of a sequence's own.

A drawn request has symbols in their place. `Known` puts a node's values into a request, learns them from its answers,
and puts the symbols back into what it answered, so that the answers of two nodes can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from tanist.wire.batch import decode_batch, iterate_batches
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from tanist.wire.messages.create_topics_request import CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreateTopicsResponse
from tanist.wire.messages.end_txn_response import EndTxnResponse
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.join_group_response import JoinGroupResponse
from tanist.wire.messages.list_groups_response import ListedGroup
from tanist.wire.messages.list_transactions_response import TransactionState
from tanist.wire.messages.metadata_response import MetadataResponse
from tanist.wire.messages.offset_fetch_response import OffsetFetchResponseGroup
from tanist.wire.messages.share_acknowledge_request import ShareAcknowledgeRequest
from tanist.wire.messages.share_acknowledge_response import ShareAcknowledgeResponse
from tanist.wire.messages.share_fetch_request import ShareFetchRequest
from tanist.wire.messages.share_fetch_response import ShareFetchResponse
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from tanist.wire.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from tanist.wire.schema import ZERO_UUID, Array, Request, Response, Struct
from tests.interop.apache import VERSION
from tests.interop.requests.batches import Batch, encode


class RecordBatch(NamedTuple):
    """What is compared of a batch."""

    base_offset: int
    last_offset: int
    attributes: int
    base_sequence: int
    producer_epoch: int
    producer: Any
    records: list[tuple[bytes | None, bytes | None]]


class Symbol(NamedTuple):
    """`of`: the name of a topic, or the place of a member or producer among those that the node has made."""

    kind: str
    of: Any
    plus: int = 0
    """Added to a number."""


UNKNOWN: Mapping[str, Any] = {
    "topic id": UUID("00000000-0000-0000-0000-00000000beef"),
    "member": "nobody",
    "member epoch": 77,
    "generation": 77,
    "producer": 4242,
    "producer epoch": 0,
    "session": 77,
    "share epoch": 0,
    "first acquired": 0,
    "last acquired": 0,
}
"""What stands for a symbol that the node has not given a value yet."""

NUMBERS = ("generation", "member epoch", "producer epoch", "share epoch", "first acquired", "last acquired")

IGNORED = frozenset(
    {
        "throttle_time_ms", "host", "port", "node_endpoints", "endpoints", "cluster_id", "error_message",
        "log_append_time_ms", "log_dir", "total_bytes", "usable_bytes", "partition_size", "offset_lag", "size",
        "controller_id", "rack", "last_timestamp", "transaction_start_time_ms", "coordinator_epoch",
        "heartbeat_interval_ms", "documentation", "client_host", "finalized_features_epoch",
        "batch_index_error_message",
        "acquisition_lock_timeout_ms", "allow_replication_factor_change", "client_transaction_version",
        "acknowledge_error_message", "status_detail",
    }
)  # fmt: skip
"""Fields of answers that no client compares: times, sizes, addresses, texts."""
NEW_IN_4_4 = frozenset({"endpoint_information_epoch", "partitions_by_user_endpoint", "task_offset_interval_ms"})
"""Those of which 4.3 says something else."""

LATEST_DRAWN_MS = 1_750_000_000_000
"""Records have earlier times, unless the topic gives them its own."""

KIND_OF = {
    "topic_id": "topic id",
    "member_id": "member",
    "leader": "member",
    "producer_id": "producer",
    "session_id": "session",
}


_BEATS = (ConsumerGroupHeartbeatRequest, ShareGroupHeartbeatRequest, StreamsGroupHeartbeatRequest)
_HEARTBEATS = (ConsumerGroupHeartbeatResponse, ShareGroupHeartbeatResponse, StreamsGroupHeartbeatResponse)


@dataclass
class Known:
    """What one node has given values to, in one sequence."""

    prefix: str
    """Of the names of the sequence."""
    values: dict[Symbol, Any] = field(default_factory=dict)
    _symbols: dict[tuple[str, Any], Symbol] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _joined: dict[str | None, int] = field(default_factory=dict)
    """The epoch of the last member of a group to join. A new group of Apache Kafka's begins with 2, ours with 1."""

    def name(self, value: Any, kind: str) -> None:
        """A value that the node has made."""
        if (kind, value) in self._symbols:
            return
        count = self._counts.get(kind, 0)
        self._counts[kind] = count + 1
        self._bind(Symbol(kind, count), value)

    def _bind(self, symbol: Symbol, value: Any) -> None:
        self.values[symbol] = value
        self._symbols[symbol.kind, value] = symbol

    def filled(self, value: Any) -> Any:
        """A drawn value with this node's values in the symbols' places."""
        if isinstance(value, Symbol):
            if value.kind == "name":
                return self.prefix + value.of
            found = self.values.get(value._replace(plus=0), UNKNOWN[value.kind])
            return found + value.plus if value.kind in NUMBERS else found
        if isinstance(value, Batch):
            return encode(value, self.filled)
        if isinstance(value, Struct):
            return type(value)(**{name: self.filled(getattr(value, name)) for name in type(value).DEFAULTS})
        if isinstance(value, tuple):
            return tuple(self.filled(each) for each in value)
        return value

    def learn(self, request: Request, answer: Response) -> None:
        """Ids and epochs in the answer to a request that is filled."""
        group, transaction = (self._own(getattr(request, name, None)) for name in ("group_id", "transactional_id"))
        if isinstance(answer, MetadataResponse):
            for topic in answer.topics:
                if topic.name is not None and topic.topic_id != ZERO_UUID and topic.name.startswith(self.prefix):
                    self._bind(Symbol("topic id", topic.name.removeprefix(self.prefix)), topic.topic_id)
        elif isinstance(answer, CreateTopicsResponse):
            for created in answer.topics:
                if isinstance(request, CreateTopicsRequest) and request.validate_only:
                    created.topic_id = ZERO_UUID  # of a topic that is not there
                elif created.topic_id != ZERO_UUID:
                    self._bind(Symbol("topic id", created.name.removeprefix(self.prefix)), created.topic_id)
        elif isinstance(answer, JoinGroupResponse):
            if answer.error_code in (0, ErrorCode.MEMBER_ID_REQUIRED):
                self.name(answer.member_id, "member")
                self.values[Symbol("member", group)] = answer.member_id
            if not answer.error_code:
                self._number("generation", group, answer.generation_id)
        elif isinstance(answer, _HEARTBEATS) and isinstance(request, _BEATS):
            if answer.member_id and not answer.error_code:
                self.name(answer.member_id, "member")
                self.values[Symbol("member", group)] = answer.member_id
                self._number("member epoch", group, answer.member_epoch)
                if request.member_epoch == 0:
                    self._joined[group] = answer.member_epoch
        elif isinstance(answer, InitProducerIdResponse):
            if not answer.error_code:
                self.name(answer.producer_id, "producer")
                self._produces(transaction, answer)
        elif isinstance(answer, EndTxnResponse) and answer.producer_id >= 0:
            self._produces(transaction, answer)
        elif isinstance(answer, FetchResponse) and answer.session_id:
            self._bind(Symbol("session", 0), answer.session_id)
        elif isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest):
            assert isinstance(answer, ShareFetchResponse | ShareAcknowledgeResponse)
            self._learn_shares(request, answer)

    def _learn_shares(
        self,
        request: ShareFetchRequest | ShareAcknowledgeRequest,
        answer: ShareFetchResponse | ShareAcknowledgeResponse,
    ) -> None:
        """The next epoch of the session, and which records the member has."""
        group = self._own(request.group_id)
        if answer.error_code in (0, ErrorCode.SHARE_SESSION_NOT_FOUND):
            goes_on = not answer.error_code and request.share_session_epoch >= 0
            following = request.share_session_epoch + 1 if goes_on else 0
            self._number("share epoch", f"{group}/{request.member_id}", following)
        if isinstance(answer, ShareFetchResponse):
            for topic in answer.responses:
                for each in (each for part in topic.partitions for each in part.acquired_records):
                    self._number("first acquired", group, each.first_offset)
                    self._number("last acquired", group, each.last_offset)

    def forget_sessions(self) -> None:
        """There is another connection."""
        self.values = {symbol: value for symbol, value in self.values.items() if symbol.kind != "share epoch"}

    def _own(self, name: str | None) -> str | None:
        return None if name is None else name.removeprefix(self.prefix)

    def _number(self, kind: str, of: str | None, value: int) -> None:
        """The newest of all, and of one group or transaction."""
        self.values[Symbol(kind, 0)] = self.values[Symbol(kind, of)] = value

    def _produces(self, transaction: str | None, answer: InitProducerIdResponse | EndTxnResponse) -> None:
        self.values[Symbol("producer", transaction)] = answer.producer_id
        self._number("producer epoch", transaction, answer.producer_epoch)

    def answer(self, request: Request, answer: Response, version: int) -> dict[str, Any]:
        """What was answered to a request that is filled, with symbols, and epochs since a member has joined."""
        self.learn(request, answer)
        if isinstance(answer, JoinGroupResponse) and answer.error_code not in (0, ErrorCode.MEMBER_ID_REQUIRED):
            answer.member_id = ""  # some refusals repeat it
        found = self.shown(answer, version)
        since = self._joined.get(self._own(getattr(request, "group_id", None)))
        if since is not None and not found.get("leader"):  # a classic group has one, and generations of its own
            found.update(_since(since, found))
        for group in found.get("groups", ()):
            if group.get("group_state") == "Empty":
                group.pop("assignment_epoch", None)  # nobody has an assignment
                if group.get("group_epoch") in (0, 1):
                    group["group_epoch"] = "of a new group"
            since = self._joined.get(group.get("group_id"))
            if since is not None and "group_epoch" in group:
                group.update(_since(since, group))
                group["members"] = [{**each, **_since(since, each)} for each in group["members"]]
        return found

    def shown(self, message: Struct, version: int) -> dict[str, Any]:
        """An answer's fields with symbols in place of this node's values; lists of structs in order of their text."""
        found = {
            each.name: self._value(each.name, each.type, getattr(message, each.name), version)
            for each in type(message).FIELDS
            if each.versions[0] <= version <= each.versions[1]
            and each.name not in IGNORED
            and not (VERSION.startswith("4.3.") and each.name in NEW_IN_4_4)
        }
        if isinstance(message, OffsetFetchResponseGroup) and not message.group_id:  # of all sequences
            found["topics"] = [each for each in found["topics"] if not isinstance(each.get("topic_id"), UUID)]
        if isinstance(message, FetchResponse):
            found["responses"] = _merged(found["responses"])
        return found

    def _value(self, name: str, kind: Any, value: Any, version: int) -> Any:
        if value is None:
            return [] if name == "aborted_transactions" else None
        if isinstance(kind, Array):
            if isinstance(kind.element, str):
                values = [self._value(name, kind.element, each, version) for each in value]
                return sorted(values) if name == "partitions" else values
            if kind.element in (ListedGroup, TransactionState):  # of all sequences
                ids = ("group_id", "transactional_id")
                value = [
                    each
                    for each in value
                    if getattr(each, ids[kind.element is TransactionState]).startswith(self.prefix)
                ]
            return sorted((self.shown(each, version) for each in value), key=repr)
        if isinstance(value, Struct):
            return self.shown(value, version)
        if kind == "records":
            return self._records(bytes(value))
        if name in KIND_OF:
            found = self._symbols.get((KIND_OF[name], value))
            return value if found is None else f"<{found.kind} {found.of}>"
        if name == "timestamp" and value > LATEST_DRAWN_MS:
            return "<of the append>"
        if isinstance(value, str):
            return value.replace(self.prefix, "")
        return value.hex() if isinstance(value, bytes | bytearray | memoryview) else value

    def _records(self, data: bytes) -> Any:
        try:
            return [
                RecordBatch(
                    header.base_offset,
                    header.last_offset,
                    header.attributes,
                    header.base_sequence,
                    header.producer_epoch,
                    self._value("producer_id", "int64", header.producer_id, 0),
                    [(each.key, each.value) for each in decode_batch(batch)],
                )
                for header, batch in iterate_batches(memoryview(data))
            ]
        except WireError as error:
            return f"{len(data)} bytes: {type(error).__name__}"


def _since(epoch: int, found: Mapping[str, Any]) -> dict[str, str]:
    names = ("group_epoch", "assignment_epoch", "member_epoch", "generation_id")
    return {
        name: f"joined {found[name] - epoch:+}"
        for name in names
        if isinstance(found.get(name), int) and found[name] > 0
    }


def _merged(topics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each topic: Apache Kafka gives a topic as many as there are runs of its partitions."""
    found: dict[str, dict[str, Any]] = {}
    for each in topics:
        name = repr({**each, "partitions": None})
        merged = found.setdefault(name, {**each, "partitions": []})
        merged["partitions"] = sorted((*merged["partitions"], *each["partitions"]), key=repr)
    return [found[name] for name in sorted(found)]
