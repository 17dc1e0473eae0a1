"""Frames between nodes and clients as short sentences for people.

Reads each frame where it arrives, before the process does, and describes its request or answer for each partition in
it. Periodic requests (heartbeats, metadata, fetches without progress) are left out or marked as a detail. It must keep
nothing of a frame's memory, which is overwritten after the turn, and must never raise: it skips frames that it cannot
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from tanist.lab.replay.moments import Weight
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
    tells_its_log: bool = False
    """It is a replica's answer in an unclean recovery, with its log's end."""


class _SentRequest(NamedTuple):
    api_key: int
    version: int
    request: Any


class Exchanges:
    """Remembers open requests, to decode their answers."""

    def __init__(
        self,
        topic_name: Callable[[UUID], str | None],
        is_registered: Callable[[int], bool],
        on_statement: Callable[[str, str, Statement], None],
    ) -> None:
        self._topic_name = topic_name
        self.is_registered = is_registered
        self._on_statement = on_statement
        """Called with the sending and the receiving host."""
        self._asked: dict[tuple[SimConnection, int], _SentRequest] = {}
        """By the receiving end, and the correlation id."""
        self._fetched: dict[tuple[str, str, str], tuple[int, int]] = {}
        """(follower, leader, partition) -> the offset and epoch of its last fetch."""
        self._introduced: set[str] = set()
        """Lives of nodes that have sent a BrokerRegistration."""

    def read(self, end: SimConnection, frame: memoryview) -> None:
        """`SimNetwork.on_frame`."""
        try:
            said = list(self._request(end, frame) if end.accepted else self._answer(end, frame))
        except (WireError, ValueError):
            return
        for each in said:
            self._on_statement(end.peer_host, end.host, each)

    def _request(self, end: SimConnection, frame: memoryview) -> Iterator[Statement]:
        header = parse_request_header(frame)
        tell = _REQUESTS.get(header.api_key)
        if tell is None and header.api_key not in _ANSWERS:
            return
        request = decode_request(header, bytes(frame))  # its records would be views of the frame
        if len(self._asked) >= _PENDING_MAX:
            del self._asked[next(iter(self._asked))]
        asked = _SentRequest(header.api_key, header.api_version, request)
        self._asked[end, header.correlation_id] = asked
        if tell is not None:
            yield from tell(self, end, request)

    def _answer(self, end: SimConnection, frame: memoryview) -> Iterator[Statement]:
        if end.other is None:
            return
        asked = self._asked.pop((end.other, correlation_id_of(frame)), None)
        tell = None if asked is None else _ANSWERS.get(asked.api_key)
        if asked is None or tell is None:
            return
        yield from tell(self, asked.request, decode_response(asked.api_key, asked.version, frame))

    def name(self, topic: Any, index: int) -> str | None:
        """The partition's, if it is one of the run's topics."""
        found = topic if isinstance(topic, str) else self._topic_name(topic)
        return None if not found or found.startswith("__") else f"{found}-{index}"

    def is_news(self, end: SimConnection, partition: str, offset: int, epoch: int) -> bool:
        """Whether a follower's fetch differs from its last one."""
        key = (end.peer_host, end.host, partition)
        known, self._fetched[key] = self._fetched.get(key), (offset, epoch)
        return known != (offset, epoch)

    def is_first_request(self, end: SimConnection) -> bool:
        """Whether this is the first BrokerRegistration of that life of a node: it is repeated until it is answered."""
        life = "" if end.other is None else end.other.process.name
        first = life not in self._introduced
        self._introduced.add(life)
        return first


# -- records


def _fetch(exchanges: Exchanges, end: SimConnection, request: Any) -> Iterator[Statement]:
    if max(request.replica_id, request.replica_state.replica_id) < 0:
        return  # a consumer's: the answer shows enough
    for topic in request.topics:
        for each in topic.partitions:
            name = exchanges.name(topic.topic or topic.topic_id, each.partition)
            if name is None:
                continue
            news = exchanges.is_news(end, name, each.fetch_offset, each.current_leader_epoch)
            weight = Weight.PART if news else Weight.DETAIL
            yield Statement(f"Fetch from {each.fetch_offset} on, epoch {each.current_leader_epoch}", name, weight)


def _fetched(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    of_replica = max(request.replica_id, request.replica_state.replica_id) >= 0
    for topic in response.responses:
        for each in topic.partitions:
            name = exchanges.name(topic.topic or topic.topic_id, each.partition_index)
            if name is None:
                continue
            if each.error_code:
                weight = Weight.PART if of_replica else Weight.DETAIL
                yield Statement(f"no: {ErrorCode.name_of(each.error_code)}", name, weight)
            elif each.diverging_epoch.end_offset >= 0:
                yield Statement(
                    f"your log is another one: epoch {each.diverging_epoch.epoch} ended at "
                    f"{each.diverging_epoch.end_offset}",
                    name,
                    why="the follower's last epoch does not fit here; it cuts off what differs (rules 113, 114)",
                )
            elif each.records:
                records = _offsets(each.records)
                if of_replica:
                    yield Statement(f"{records}, HW {each.high_watermark}", name)
                else:
                    yield Statement(f"reads {records}", name)
            else:
                yield Statement(f"nothing new, HW {each.high_watermark}", name, Weight.DETAIL)


def _produce(exchanges: Exchanges, end: SimConnection, request: Any) -> Iterator[Statement]:
    for topic in request.topic_data:
        for each in topic.partition_data:
            name = exchanges.name(topic.name or topic.topic_id, each.index)
            if name is not None and each.records:
                yield Statement(f"Produce {_values(each.records)}, acks={request.acks}", name, Weight.DETAIL)


def _produced(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    sent = {
        (topic.name or topic.topic_id, each.index): each.records
        for topic in request.topic_data
        for each in topic.partition_data
    }
    acks = "" if request.acks == -1 else f" (acks={request.acks})"
    for topic in response.responses:
        for each in topic.partition_responses:
            name = exchanges.name(topic.name or topic.topic_id, each.index)
            if name is None:
                continue
            if each.error_code:
                yield Statement(f"refused: {ErrorCode.name_of(each.error_code)}", name)
                continue
            records = sent.get((topic.name or topic.topic_id, each.index))
            what = "records" if records is None else _values(records)
            yield Statement(f"acknowledged{acks}: {what} at {each.base_offset}", name)


def _list_offsets(exchanges: Exchanges, end: SimConnection, request: Any) -> Iterator[Statement]:
    for topic in request.topics:
        for each in topic.partitions:
            name = exchanges.name(topic.name, each.partition_index)
            if name is not None:
                weight = Weight.PART if request.replica_id >= 0 else Weight.DETAIL
                yield Statement("ListOffsets: where does your log end?", name, weight)


def _offsets_listed(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    weight = Weight.PART if request.replica_id >= 0 else Weight.DETAIL
    for topic in response.topics:
        for each in topic.partitions:
            name = exchanges.name(topic.name, each.partition_index)
            if name is None:
                continue
            said = (
                ErrorCode.name_of(each.error_code)
                if each.error_code
                else f"at {each.offset}, epoch {each.leader_epoch}"
            )
            yield Statement(f"it ends {said}", name, weight)


# -- the ISR, and unclean recovery


def _alter_partition(exchanges: Exchanges, end: SimConnection, request: Any) -> Iterator[Statement]:
    for topic in request.topics:
        for each in topic.partitions:
            name = exchanges.name(topic.topic_id, each.partition_index)
            if name is not None:
                isr = [member.broker_id for member in each.new_isr_with_epochs] or list(each.new_isr)
                yield Statement(f"AlterPartition: ISR {_set(isr)}? (partition epoch {each.partition_epoch})", name)


def _partition_altered(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    if response.error_code:
        for topic in request.topics:
            for each in topic.partitions:
                name = exchanges.name(topic.topic_id, each.partition_index)
                yield Statement(f"AlterPartition refused: {ErrorCode.name_of(response.error_code)}", name, why=_REFUSED)
        return
    for topic in response.topics:
        for each in topic.partitions:
            name = exchanges.name(topic.topic_id, each.partition_index)
            if name is None:
                continue
            if each.error_code:
                yield Statement(f"AlterPartition refused: {ErrorCode.name_of(each.error_code)}", name, why=_REFUSED)
            else:
                yield Statement(
                    f"AlterPartition: ISR is {_set(each.isr)}, partition epoch {each.partition_epoch}", name
                )


_REFUSED = "until it is known what came of it, the leader counts with both ISRs (rules 5, 18)"


def _log_info(exchanges: Exchanges, end: SimConnection, request: Any) -> Iterator[Statement]:
    for topic in request.topic_partitions or ():
        for index in topic.partitions:
            name = exchanges.name(topic.topic_id, index)
            if name is not None:
                yield Statement("GetReplicaLogInfo: how long is your log?", name)


def _log_reported(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    for topic in response.topic_partition_log_info_list:
        for each in topic.partition_log_info:
            name = exchanges.name(topic.topic_id, each.partition)
            if name is None:
                continue
            if each.error_code:
                yield Statement(f"no log: {ErrorCode.name_of(each.error_code)}", name)
            else:
                yield Statement(
                    f"last epoch {each.last_written_leader_epoch}, end {each.log_end_offset} "
                    f"(broker epoch {response.broker_epoch})",
                    name,
                    tells_its_log=True,
                )


# -- brokers and the quorum


def _register(exchanges: Exchanges, end: SimConnection, request: Any) -> Iterator[Statement]:
    previous, broker = request.previous_broker_epoch, request.broker_id
    if not exchanges.is_registered(broker) or not exchanges.is_first_request(end):
        yield Statement(f"BrokerRegistration of {broker}", None, Weight.DETAIL)
    elif previous >= 0:
        why = "all its logs were closed: clean, if that is its last registration (rule 83)"
        yield Statement(
            f"BrokerRegistration of {broker}: ended in good order as broker epoch {previous}", None, why=why
        )
    else:
        why = "without the mark it may have lost records, so it is eligible for nothing (KIP-966, rules 46, 83, 89)"
        yield Statement(f"BrokerRegistration of {broker}: no mark of a clean shutdown", None, why=why)


def _vote(exchanges: Exchanges, end: SimConnection, request: Any) -> Iterator[Statement]:
    for topic in request.topics:
        for each in topic.partitions:
            kind = "would you vote for me" if each.pre_vote else "Vote for me"
            log = f"(my log ends with epoch {each.last_offset_epoch} at {each.last_offset})"
            yield Statement(f"{kind}, epoch {each.replica_epoch}? {log}", QUORUM)


def _voted(exchanges: Exchanges, request: Any, response: Any) -> Iterator[Statement]:
    for topic in response.topics:
        for each in topic.partitions:
            answer = "yes" if each.vote_granted else f"no; leader {each.leader_id} in epoch {each.leader_epoch}"
            yield Statement(f"vote: {answer}", QUORUM)


def _begin_epoch(exchanges: Exchanges, end: SimConnection, request: Any) -> Iterator[Statement]:
    for topic in request.topics:
        for each in topic.partitions:
            yield Statement(f"BeginQuorumEpoch: {each.leader_id} leads epoch {each.leader_epoch}", QUORUM)


def _end_epoch(exchanges: Exchanges, end: SimConnection, request: Any) -> Iterator[Statement]:
    for topic in request.topics:
        for each in topic.partitions:
            yield Statement(f"EndQuorumEpoch: {each.leader_id} gives up epoch {each.leader_epoch}", QUORUM)


_REQUESTS: dict[int, Callable[[Exchanges, SimConnection, Any], Iterator[Statement]]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.VOTE: _vote,
    ApiKey.BEGIN_QUORUM_EPOCH: _begin_epoch,
    ApiKey.END_QUORUM_EPOCH: _end_epoch,
    ApiKey.ALTER_PARTITION: _alter_partition,
    ApiKey.BROKER_REGISTRATION: _register,
    ApiKey.GET_REPLICA_LOG_INFO: _log_info,
}
_ANSWERS: dict[int, Callable[[Exchanges, Any, Any], Iterator[Statement]]] = {
    ApiKey.PRODUCE: _produced,
    ApiKey.FETCH: _fetched,
    ApiKey.LIST_OFFSETS: _offsets_listed,
    ApiKey.VOTE: _voted,
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


def _set(members: list[int] | tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, members)) + "]"
