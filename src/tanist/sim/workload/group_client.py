"""The base of clients of consumer groups, for both protocols: a coordinator, topics, offsets read and committed.

Owns requests and their answers, over the ports, so that the same members run in the simulator and against a cluster of
processes. A `Witness` gets each answer at the moment when the client receives it, before the client acts on it. Each
commit has unique metadata, so a returned offset names its commit. It must never judge: that is the witness's work.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tanist.broker.logins import ChannelLogin
from tanist.client.errors import error_in
from tanist.client.offsets import VERSION_MAX as OFFSETS_VERSION_MAX
from tanist.client.offsets import offset_commit, offset_fetch, offsets_in
from tanist.client.requests import Ask, Coordinator, CoordinatorKind
from tanist.client.topic_partition import TopicPartition
from tanist.ports import Clock, Network
from tanist.sim.workload.cluster_client import ClusterClient

GroupPartition = tuple[str, str, int]
"""Group, topic and partition."""
Offsets = Mapping[TopicPartition, tuple[int, str]]
"""The commits of a group: offset and metadata. An offset of -1: nothing."""


class Witness:
    """Gets the answers to clients of groups. This one looks at nothing."""

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
        return {}

    def fetched(self, client: str, group: str, asked: Mapping[GroupPartition, Any], offsets: Offsets) -> None:
        """The client received these offsets. If it asked for all, a missing partition has no committed offset."""

    def commits(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        """A client will commit an offset. The tag is used only once."""

    def committed(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        """The commit was acknowledged."""


W_co = TypeVar("W_co", covariant=True)
"""A witness: it hears of all that its clients do and get."""


@dataclass(frozen=True, slots=True)
class ClientContext(Generic[W_co]):
    """The ports of a client, the brokers to ask first, and its witness."""

    clock: Clock
    network: Network
    bootstrap: Sequence[tuple[str, int]]
    rng: random.Random
    witness: W_co
    login: ChannelLogin | None = None


class GroupClient(ClusterClient):
    """A client of one group, with a witness."""

    def __init__(self, context: ClientContext[Witness], name: str, group: str) -> None:
        super().__init__(name, context.clock, context.network, context.bootstrap, context.login)
        self.context = context
        self.group = group
        self._coordinator = Coordinator(CoordinatorKind.GROUP, group)
        self._commits = 0

    def start(self) -> None:
        """Start the client's work."""
        raise NotImplementedError

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

        def handle_response(response: Any | None) -> None:
            if response is None or error_in(response):
                done(None)
                return
            found = offsets_in(response)
            nothing = {group_partition[1:]: (-1, "") for group_partition in asked} if partitions is None else {}
            self.context.witness.fetched(self.name, self.group, asked, {**nothing, **found})
            done(found)

        request = offset_fetch(self.group, partitions, member_id=member_id, epoch=member_epoch)
        self.ask(Ask(self._coordinator, request, OFFSETS_VERSION_MAX), handle_response)

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

        def handle_response(response: Any | None) -> None:
            error = 0 if response is None else error_in(response)
            if response is not None and not error:
                self.context.witness.committed(self.name, group_partition, offset, tag)
            done(response, error)

        request = offset_commit(self.group, {partition: offset}, member_id=member_id, epoch=epoch, metadata=tag)
        self.ask(Ask(self._coordinator, request, OFFSETS_VERSION_MAX), handle_response)


class OffsetWatcher(GroupClient):
    """Fetches its group's offsets again and again, like an operator's dashboard, and never joins."""

    def __init__(self, context: ClientContext[Witness], name: str, group: str, *, pause_ms: int) -> None:
        super().__init__(context, name, group)
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
