"""An operator who changes the offsets of share groups (KIP-932): another start offset, or none, so that a group begins
anew.

A group must be empty for that. So the operator has its members leave, asks until there is an answer that says so, and
lets them come back. It may also ask a group in use, which is refused. The witness hears of each change before it is
asked for, and when it is known to be made, or not to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from tanist.client.requests import Ask, Coordinator, CoordinatorKind
from tanist.sim.oracle import Oracle
from tanist.sim.workload.cluster_client import BACKOFF_MS
from tanist.sim.workload.history import History
from tanist.sim.workload.operations import Operation, Operator
from tanist.sim.workload.share_members import Share
from tanist.sim.workload.share_settings import SharePlan
from tanist.sim.world.clock import stream
from tanist.sim.world.world import World
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from tanist.wire.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)

_VERSION: Final = 0
_PAUSE_MS: Final = 4 * BACKOFF_MS
_REFUSED: Final = frozenset(
    {ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
_NOTHING_THERE: Final = _REFUSED - {ErrorCode.NON_EMPTY_GROUP}
ANEW: Final = -1
"""In place of a start offset: the group begins as its configuration says."""


class OffsetsWitness(Protocol):
    """Hears of changed offsets."""

    def changing(self, shares: Sequence[Share]) -> None:
        """From here on it is not known from where the groups go on."""

    def changed(self, shares: Sequence[Share], start_offset: int) -> None:
        """They go on from there (`ANEW`)."""

    def unchanged(self, shares: Sequence[Share]) -> None:
        """They go on as they would have."""


class Crew(Protocol):
    """The members of the groups."""

    def rest(self, group: str) -> None:
        """They leave the group; who is paused does not hear of it yet."""

    def wake(self, group: str) -> None:
        """They come back."""


@dataclass(slots=True)
class _Change:
    """One change that is asked for until it is made."""

    shares: Sequence[Share]
    start_offset: int
    request: Any
    in_doubt: bool = False
    """A request was sent that may have been carried out."""

    @property
    def group(self) -> str:
        return self.shares[0].group


class ShareOperator(Operator):
    """One change of a group at a time."""

    def __init__(
        self,
        world: World,
        history: History,
        oracle: Oracle,
        plans: Sequence[SharePlan],
        witness: OffsetsWitness,
        crew: Crew,
    ) -> None:
        super().__init__(world, "share-operator", history)
        self._oracle = oracle
        self._plans = plans
        self._witness = witness
        self._crew = crew
        self._groups: set[str] = set()
        """Whose offsets are being changed."""

    def _act(self, operation: Operation) -> None:
        plan = self._plans[int(operation.first * len(self._plans))]
        if self.stopped or plan.group in self._groups:
            return
        rng = stream(self.world.seed, f"share offsets/{operation.at_us}")
        topic = rng.choice(plan.topics)
        changes = [
            self._forgetting(plan.group, topic)
            if operation.kind == "delete_offsets"
            else self._setting(plan.group, topic, operation.second, rng.random())
        ]
        if operation.kind == "alter_offsets_twice":
            changes.append(self._setting(plan.group, topic, operation.second, rng.random()))
        self._groups.add(plan.group)
        self._under_way += 1
        in_use = operation.kind == "alter_offsets_in_use"
        if not in_use:
            self._crew.rest(plan.group)
        self._make(changes, in_use=in_use)

    def _forgetting(self, group: str, topic: str) -> _Change:
        request = DeleteShareGroupOffsetsRequest(
            group_id=group, topics=(DeleteShareGroupOffsetsRequestTopic(topic_name=topic),)
        )
        shares = [Share(group, topic, index) for index, _ in self._partitions(topic)]
        return _Change(shares, ANEW, request)

    def _setting(self, group: str, topic: str, choice: float, where: float) -> _Change:
        """To any committed offset of a partition, or its end."""
        partitions = list(self._partitions(topic))
        index, end = partitions[int(choice * len(partitions))]
        start_offset = int(where * (end + 1))
        wanted = AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=start_offset)
        request = AlterShareGroupOffsetsRequest(
            group_id=group, topics=(AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=(wanted,)),)
        )
        return _Change([Share(group, topic, index)], start_offset, request)

    def _partitions(self, topic: str) -> Iterator[tuple[int, int]]:
        """Indexes and high watermarks."""
        image = self._oracle.image
        for key, oracle in sorted(self._oracle.partitions.items()):
            if key[0] == image.topic_ids[topic]:
                yield key[1], oracle.high_watermark

    def _make(self, changes: list[_Change], *, in_use: bool = False) -> None:
        """One after the other; then the members come back."""
        if not changes:
            return
        change = changes[0]

        def settled(*, made: bool) -> None:
            if made:
                self.world.counts["shares: offsets changed"] += 1
                self._witness.changed(change.shares, change.start_offset)
            else:
                self.world.counts["shares: offsets not changed"] += 1
                self._witness.unchanged(change.shares)
            if changes[1:]:
                self._make(changes[1:])
                return
            self._groups.discard(change.group)
            self._under_way -= 1
            self._crew.wake(change.group)

        self._witness.changing(change.shares)
        self._ask(change, settled, gives_up=in_use)

    def _ask(self, change: _Change, settled: Callable[..., None], *, gives_up: bool) -> None:
        """Until it is known that the change is made, or that nothing was there to change. `gives_up`: or refused."""

        def handle_response(response: Any | None) -> None:
            error = -1 if response is None else _error_in(response)
            if not error or (change.in_doubt and change.start_offset == ANEW and error in _NOTHING_THERE):
                settled(made=True)
            elif not change.in_doubt and (error in _NOTHING_THERE or (gives_up and error in _REFUSED)):
                settled(made=False)
            else:
                change.in_doubt = change.in_doubt or error not in _REFUSED
                if error == ErrorCode.NON_EMPTY_GROUP or gives_up:
                    self._crew.rest(change.group)
                self.later(_PAUSE_MS, partial(self._ask, change, settled, gives_up=False))

        self.ask(Ask(Coordinator(CoordinatorKind.GROUP, change.group), change.request, _VERSION), handle_response)


def _error_in(response: Any) -> int:
    """The first error, wherever it is; 0 if there is none."""
    topics = response.responses
    found = [response, *topics, *(part for topic in topics for part in getattr(topic, "partitions", ()))]
    return next((each.error_code for each in found if getattr(each, "error_code", 0)), 0)
