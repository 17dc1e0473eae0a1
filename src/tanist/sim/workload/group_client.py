"""The base of clients of consumer groups, for both protocols: a coordinator, topics, offsets read and committed.

Owns requests and their answers, over the ports, so that the same members run in the simulator and against a cluster of
processes. A `Witness` gets each answer at the moment when the client receives it, before the client acts on it. Each
commit has unique metadata, so a returned offset names its commit. It must never judge: that is the witness's work.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tanist.broker.network.channel import Channel, Channels
from tanist.client.coordinators import CoordinatorKind, coordinator_in, find_coordinator
from tanist.client.errors import Meaning, error_in, meaning_in
from tanist.client.metadata import ClusterView, cluster_view, metadata_request
from tanist.client.offsets import VERSION_MAX as OFFSETS_VERSION_MAX
from tanist.client.offsets import offset_commit, offset_fetch, offsets_in
from tanist.client.topic_partition import TopicPartition
from tanist.ports import Clock, Network

BACKOFF_MS: Final = 60
REQUEST_TIMEOUT_MS: Final = 3_000
MAX_FRAME_BYTES: Final = 64 << 20

_FIND_COORDINATOR_VERSION = 4
_METADATA_VERSION = 12

GroupPartition = tuple[str, str, int]
"""Group, topic and partition."""
Offsets = Mapping[TopicPartition, tuple[int, str]]
"""The commits of a group: offset and metadata. An offset of -1: nothing."""
Answered = Callable[[Any | None], None]


class Witness(Protocol):
    """Gets the answers to clients of groups."""

    def assigned(
        self,
        client: str,
        group: str,
        member_id: str,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        classic: bool,
    ) -> None:
        """A member receives its assignment (it may have had some of the partitions before)."""

    def revoked(self, client: str, group: str, partitions: Iterable[TopicPartition]) -> None:
        """A client has revoked these partitions."""

    def asks(self, group: str) -> Mapping[GroupPartition, Any]:
        """A client will fetch a group's offsets. The result, the offsets returned so far, goes to `fetched`."""

    def fetched(self, client: str, group: str, asked: Mapping[GroupPartition, Any], offsets: Offsets) -> None:
        """The client received these offsets. If it asked for all, a missing partition has no committed offset."""

    def commits(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        """A client will commit an offset. The tag is used only once."""

    def committed(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        """The commit was acknowledged."""


class SilentWitness:
    """A `Witness` that looks at nothing: the base of those that look at little."""

    def assigned(
        self,
        client: str,
        group: str,
        member_id: str,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        classic: bool,
    ) -> None:
        pass

    def revoked(self, client: str, group: str, partitions: Iterable[TopicPartition]) -> None:
        pass

    def asks(self, group: str) -> Mapping[GroupPartition, Any]:
        return {}

    def fetched(self, client: str, group: str, asked: Mapping[GroupPartition, Any], offsets: Offsets) -> None:
        pass

    def commits(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        pass

    def committed(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        pass


@dataclass(frozen=True, slots=True)
class ClientContext:
    """The ports of a client, the brokers to ask first, and its witness."""

    clock: Clock
    network: Network
    bootstrap: Sequence[tuple[str, int]]
    rng: random.Random
    witness: Witness


class GroupClient:
    """Finds the coordinator of one group and speaks to it; each of its lives is a process of its own to the cluster."""

    def __init__(self, context: ClientContext, name: str, group: str, topics: Sequence[str]) -> None:
        self.context = context
        self.name = name
        self.group = group
        self.topics = tuple(topics)
        self.life = 0
        """Answers to an earlier life are ignored."""
        self.refused: dict[int, int] = {}
        """Error -> how often it was the answer."""
        self._channels = Channels(context.clock, context.network, client_id=name, max_frame_bytes=MAX_FRAME_BYTES)
        self._coordinator: tuple[str, int] | None = None
        self._finding = False
        self._next_bootstrap = 0
        self._commits = 0

    # -- lives

    def start(self) -> None:
        """Start the client's work."""
        raise NotImplementedError

    def next_life(self) -> None:
        """Ignore all open requests and timers from here on."""
        self.life += 1
        self._finding = False

    def end_life(self) -> None:
        """As if the process was killed: its connections close, without a goodbye."""
        self.next_life()
        self._coordinator = None
        self._channels.close()

    def later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call later, if this life still runs then."""
        life = self.life

        def due() -> None:
            if self.life == life:
                callback()

        clock = self.context.clock
        clock.call_at(clock.now_ms() + delay_ms, due)

    # -- requests

    def call(self, channel: Channel, request: Any, version: int, timeout_ms: int, answered: Answered) -> None:
        life = self.life
        channel.call(request, version, timeout_ms, lambda response: answered(response) if self.life == life else None)

    def channel(self, address: tuple[str, int]) -> Channel:
        return self._channels.to(address)

    def any_broker(self) -> Channel:
        self._next_bootstrap += 1
        bootstrap = self.context.bootstrap
        return self.channel(bootstrap[self._next_bootstrap % len(bootstrap)])

    def ask(self, request: Any, version: int, answered: Answered, timeout_ms: int = REQUEST_TIMEOUT_MS) -> None:
        """Ask the coordinator. `None`, a little later, also if the coordinator is unknown."""
        if self._coordinator is None:
            self._find_coordinator()
            self.later(BACKOFF_MS, lambda: answered(None))
            return

        def heard(response: Any | None) -> None:
            if response is None:
                self._coordinator = None
            answered(response)

        self.call(self.channel(self._coordinator), request, version, timeout_ms, heard)

    def note(self, response: Any) -> int:
        """Count the error in a response, and look for the coordinator again if it means that."""
        error = error_in(response)
        if error:
            self.refused[error] = self.refused.get(error, 0) + 1
        if meaning_in(response) is Meaning.FIND:
            self._coordinator = None
        return error

    def _find_coordinator(self) -> None:
        if self._finding:
            return
        self._finding = True

        def answered(response: Any | None) -> None:
            self._finding = False
            if meaning_in(response) is Meaning.DONE:
                self._coordinator = coordinator_in(response).address

        request = find_coordinator(CoordinatorKind.GROUP, self.group)
        self.call(self.any_broker(), request, _FIND_COORDINATOR_VERSION, REQUEST_TIMEOUT_MS, answered)

    def learn_topics(self, names: Sequence[str], learnt: Callable[[ClusterView], None]) -> None:
        """Ask any broker for topics; `learnt` is called in any case."""

        def answered(response: Any | None) -> None:
            learnt(ClusterView() if response is None else cluster_view(response))

        self.call(self.any_broker(), metadata_request(names), _METADATA_VERSION, REQUEST_TIMEOUT_MS, answered)

    # -- offsets

    def fetch_offsets(
        self,
        partitions: Sequence[TopicPartition] | None,
        member_id: str | None,
        member_epoch: int,
        done: Callable[[Offsets | None], None],
    ) -> None:
        """The group's commits for these partitions, or for all; None if the answer was an error."""
        asked = self.context.witness.asks(self.group)

        def answered(response: Any | None) -> None:
            if response is None or self.note(response):
                done(None)
                return
            found = offsets_in(response)
            nothing = {group_partition[1:]: (-1, "") for group_partition in asked} if partitions is None else {}
            self.context.witness.fetched(self.name, self.group, asked, {**nothing, **found})
            done(found)

        request = offset_fetch(self.group, partitions, member_id=member_id, epoch=member_epoch)
        self.ask(request, OFFSETS_VERSION_MAX, answered)

    def commit(
        self,
        partition: TopicPartition,
        offset: int,
        member_id: str,
        epoch: int,
        done: Callable[[Any | None, int], None],
    ) -> None:
        """Commit one offset; `done` gets the response, or None, and the error in it."""
        self._commits += 1
        tag = f"{self.name}#{self._commits}"
        group_partition = (self.group, *partition)
        self.context.witness.commits(self.name, group_partition, offset, tag)

        def answered(response: Any | None) -> None:
            error = 0 if response is None else self.note(response)
            if response is not None and not error:
                self.context.witness.committed(self.name, group_partition, offset, tag)
            done(response, error)

        request = offset_commit(self.group, {partition: offset}, member_id=member_id, epoch=epoch, metadata=tag)
        self.ask(request, OFFSETS_VERSION_MAX, answered)


class OffsetWatcher(GroupClient):
    """Fetches its group's offsets again and again, like an operator's dashboard, and never joins."""

    def __init__(self, context: ClientContext, name: str, group: str, topics: Sequence[str], *, pause_ms: int) -> None:
        super().__init__(context, name, group, topics)
        self._pause_ms = pause_ms
        self.answers = 0
        self.stopped = False

    def start(self) -> None:
        self._ask_again()

    def stop(self) -> None:
        self.stopped = True

    def _ask_again(self) -> None:
        if self.stopped:
            return

        def done(offsets: Offsets | None) -> None:
            self.answers += offsets is not None
            self.later(self._pause_ms, self._ask_again)

        self.fetch_offsets(None, None, -1, done)
