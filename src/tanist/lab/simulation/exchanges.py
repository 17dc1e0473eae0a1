"""Frames between nodes and clients as short sentences for people.

Reads each frame where it arrives, before the process does, and describes its request or answer for each partition in
it. Periodic requests (heartbeats, metadata) are left out. It must keep nothing of a frame's memory, which is
overwritten after the turn, and must never raise: it skips frames that it cannot read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from tanist.controller.image.image import MetadataImage
from tanist.lab.replay.moments import Weight
from tanist.sim.event_text import ids
from tanist.sim.world.connection import SimConnection
from tanist.wire.apis import ApiKey
from tanist.wire.batch import decode_batch, iterate_headers
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.frames import correlation_id_of, decode_request, decode_response, parse_request_header

_PENDING_MAX = 10_000
"""Requests that wait for their answers. Broken connections leave theirs behind: the oldest are forgotten."""

QUORUM = "the quorum"
"""The subject of the metadata quorum's messages, in place of a partition."""


class Statement(NamedTuple):
    """A part of a message."""

    text: str
    about: str | None
    weight: Weight = Weight.PART
    why: str | None = None


class _SentRequest(NamedTuple):
    api_key: int
    version: int
    request: Any


class Exchanges:
    """Remembers open requests, to decode their answers."""

    def __init__(self, image: MetadataImage, on_statement: Callable[[str, str, Statement], None]) -> None:
        self.image = image
        """Of the committed metadata."""
        self._on_statement = on_statement
        """Called with the sending and the receiving host."""
        self._asked: dict[tuple[SimConnection, int], _SentRequest] = {}
        """By the receiving end, and the correlation id."""

    def read(self, end: SimConnection, frame: memoryview) -> None:
        """One of `SimNetwork.readers`."""
        try:
            said = list(self._request(end, frame) if end.accepted else self._answer(end, frame))
        except (WireError, ValueError):
            return
        for each in said:
            self._on_statement(end.peer_host, end.host, each)

    def _request(self, end: SimConnection, frame: memoryview) -> Iterator[Statement]:
        header = parse_request_header(frame)
        if header.api_key not in _REQUESTS and header.api_key not in _ANSWERS:
            return
        request = decode_request(header, bytes(frame))  # its records would be views of the frame
        if len(self._asked) >= _PENDING_MAX:
            del self._asked[next(iter(self._asked))]
        self._asked[end, header.correlation_id] = _SentRequest(header.api_key, header.api_version, request)
        if header.api_key in _REQUESTS:
            yield from _REQUESTS[header.api_key](self, request)

    def _answer(self, end: SimConnection, frame: memoryview) -> Iterator[Statement]:
        if end.other is None:
            return
        asked = self._asked.pop((end.other, correlation_id_of(frame)), None)
        if asked is not None and asked.api_key in _ANSWERS:
            response = decode_response(asked.api_key, asked.version, frame)
            yield from _ANSWERS[asked.api_key](self, asked.request, response)

    def partitions(
        self, topics: Any, partitions: str = "partitions", index: str = "partition_index"
    ) -> Iterator[tuple[str, Any]]:
        """The partitions that a message names, with their parts of it: those of the run's own topics."""
        for topic in topics or ():
            name = getattr(topic, "topic", "") or getattr(topic, "name", "") or self._name(topic.topic_id)
            if name and not name.startswith("__"):
                for each in getattr(topic, partitions):
                    yield f"{name}-{each if isinstance(each, int) else getattr(each, index)}", each

    def _name(self, topic_id: UUID) -> str | None:
        topic = self.image.topics.get(topic_id)
        return None if topic is None else topic.name


# -- records


def _is_of_replica(fetch: Any) -> bool:
    return bool(max(fetch.replica_id, fetch.replica_state.replica_id) >= 0)


def _fetch(exchanges: Exchanges, request: Any) -> Iterator[Statement]:
    if _is_of_replica(request):  # of a consumer's the answer shows enough
        for name, each in exchanges.partitions(request.topics, index="partition"):
            yield Statement(f"Fetch from {each.fetch_offset} on, epoch {each.current_leader_epoch}", name)


def _fetched(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    of_replica = _is_of_replica(request)
    for name, each in exchanges.partitions(response.responses):
        diverging = each.diverging_epoch
        if each.error_code:
            yield Statement(
                f"no: {ErrorCode.name_of(each.error_code)}", name, Weight.PART if of_replica else Weight.DETAIL
            )
        elif diverging.end_offset >= 0:
            text = f"your log is another one: epoch {diverging.epoch} ended at {diverging.end_offset}"
            why = "the follower's last epoch does not fit here; it cuts off what differs (rules 113, 114)"
            yield Statement(text, name, why=why)
        elif not each.records:
            yield Statement(f"nothing new, HW {each.high_watermark}", name, Weight.DETAIL)
        elif of_replica:
            yield Statement(f"{_offsets(each.records)}, HW {each.high_watermark}", name)
        else:
            yield Statement(f"reads {_offsets(each.records)}", name)


def _produce(exchanges: Exchanges, request: Any) -> Iterator[Statement]:
    for name, each in exchanges.partitions(request.topic_data, "partition_data", "index"):
        if each.records:
            yield Statement(f"Produce {_values(each.records)}, acks={request.acks}", name, Weight.DETAIL)


def _produced(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    sent = {name: each.records for name, each in exchanges.partitions(request.topic_data, "partition_data", "index")}
    acks = "" if request.acks == -1 else f" (acks={request.acks})"
    for name, each in exchanges.partitions(response.responses, "partition_responses", "index"):
        if each.error_code:
            yield Statement(f"refused: {ErrorCode.name_of(each.error_code)}", name)
        else:
            what = "records" if sent.get(name) is None else _values(sent[name])
            yield Statement(f"acknowledged{acks}: {what} at {each.base_offset}", name)


def _list_offsets(exchanges: Exchanges, request: Any) -> Iterator[Statement]:
    for name, _ in exchanges.partitions(request.topics):
        weight = Weight.PART if request.replica_id >= 0 else Weight.DETAIL
        yield Statement("ListOffsets: where does your log end?", name, weight)


def _offsets_listed(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    for name, each in exchanges.partitions(response.topics):
        weight = Weight.PART if request.replica_id >= 0 else Weight.DETAIL
        said = ErrorCode.name_of(each.error_code) if each.error_code else f"at {each.offset}, epoch {each.leader_epoch}"
        yield Statement(f"it ends {said}", name, weight)


# -- the ISR, and unclean recovery


def _alter_partition(exchanges: Exchanges, request: Any) -> Iterator[Statement]:
    for name, each in exchanges.partitions(request.topics):
        isr = [member.broker_id for member in each.new_isr_with_epochs] or each.new_isr
        yield Statement(f"AlterPartition: ISR {ids(isr)}? (partition epoch {each.partition_epoch})", name)


def _partition_altered(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    for name, each in exchanges.partitions(request.topics if response.error_code else response.topics):
        error = response.error_code or each.error_code
        if error:
            why = "until it is known what came of it, the leader counts with both ISRs (rules 5, 18)"
            yield Statement(f"AlterPartition refused: {ErrorCode.name_of(error)}", name, why=why)
        else:
            yield Statement(f"AlterPartition: ISR is {ids(each.isr)}, partition epoch {each.partition_epoch}", name)


def _log_info(exchanges: Exchanges, request: Any) -> Iterator[Statement]:
    for name, _ in exchanges.partitions(request.topic_partitions):
        yield Statement("GetReplicaLogInfo: how long is your log?", name)


def _log_reported(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    for name, each in exchanges.partitions(response.topic_partition_log_info_list, "partition_log_info", "partition"):
        if each.error_code:
            yield Statement(f"no log: {ErrorCode.name_of(each.error_code)}", name)
        else:
            log = f"last epoch {each.last_written_leader_epoch}, end {each.log_end_offset}"
            yield Statement(f"{log} (broker epoch {response.broker_epoch})", name)


# -- brokers and the quorum


def _register(exchanges: Exchanges, request: Any) -> Iterator[Statement]:
    previous, text = request.previous_broker_epoch, f"BrokerRegistration of {request.broker_id}"
    if request.broker_id not in exchanges.image.brokers:
        yield Statement(text, None, Weight.DETAIL)
    elif previous >= 0:
        why = "all its logs were closed: clean, if that is its last registration (rule 83)"
        yield Statement(f"{text}: ended in good order as broker epoch {previous}", None, why=why)
    else:
        why = "without the mark it may have lost records, so it is eligible for nothing (KIP-966, rules 46, 83, 89)"
        yield Statement(f"{text}: no mark of a clean shutdown", None, why=why)


def _of_quorum(tell: Callable[[Any], str]) -> Callable[..., Iterator[Statement]]:
    """A message of the quorum, whose only partition is that of the metadata. An answer comes behind its request."""

    def stated(exchanges: Exchanges, *messages: Any) -> Iterator[Statement]:
        yield from (Statement(tell(each), QUORUM) for topic in messages[-1].topics for each in topic.partitions)

    return stated


def _vote(each: Any) -> str:
    kind = "would you vote for me" if each.pre_vote else "Vote for me"
    log = f"(my log ends with epoch {each.last_offset_epoch} at {each.last_offset})"
    return f"{kind}, epoch {each.replica_epoch}? {log}"


def _voted(each: Any) -> str:
    return f"vote: {'yes' if each.vote_granted else f'no; leader {each.leader_id} in epoch {each.leader_epoch}'}"


_REQUESTS: dict[int, Callable[[Exchanges, Any], Iterator[Statement]]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.VOTE: _of_quorum(_vote),
    ApiKey.BEGIN_QUORUM_EPOCH: _of_quorum(
        lambda each: f"BeginQuorumEpoch: {each.leader_id} leads epoch {each.leader_epoch}"
    ),
    ApiKey.END_QUORUM_EPOCH: _of_quorum(
        lambda each: f"EndQuorumEpoch: {each.leader_id} gives up epoch {each.leader_epoch}"
    ),
    ApiKey.ALTER_PARTITION: _alter_partition,
    ApiKey.BROKER_REGISTRATION: _register,
    ApiKey.GET_REPLICA_LOG_INFO: _log_info,
}
_ANSWERS: dict[int, Callable[[Exchanges, Any, Any], Iterator[Statement]]] = {
    ApiKey.PRODUCE: _produced,
    ApiKey.FETCH: _fetched,
    ApiKey.LIST_OFFSETS: _offsets_listed,
    ApiKey.VOTE: _of_quorum(_voted),
    ApiKey.ALTER_PARTITION: _partition_altered,
    ApiKey.GET_REPLICA_LOG_INFO: _log_reported,
}


# -- bits


def _offsets(records: bytes | memoryview) -> str:
    """The offsets of a set of batches."""
    headers = [header for _, header in iterate_headers(memoryview(records))]
    if not headers:
        return "a part of a batch"
    first, last = headers[0].base_offset, headers[-1].next_offset - 1
    return f"record {first}" if first == last else f"records {first}-{last}"


def _values(records: bytes | memoryview) -> str:
    """The sent values, as in the history: producer and number."""
    view = memoryview(records)
    values = [
        bytes(record.value or b"").decode("utf-8", "replace")
        for at, header in iterate_headers(view)
        if not header.is_control
        for record in decode_batch(view[at : at + header.size_bytes])
    ]
    if len(values) < 2:
        return "".join(values)
    return f"{values[0]}…{values[-1].rpartition('-')[2]}"
