"""Share groups: what leaders give and members say, against the stored states and the committed records (Q1-Q7).

    Q1  a record whose acceptance or rejection was answered without an error is not given to anybody again
    Q2  a record is given `share.delivery.count.limit` times at most, and the count grows by one each time that a leader
        gives it; what is released or not spoken of is given again
    Q3  no record is two members' at once: not in the leader's machine, and not by its gifts within the locks' time
    Q4  nothing below the stored start offset is given, and that offset does not go back
    Q5  when the faults are over, each committed record is done with: spoken of, or given as often as it may be
    Q6  a state is the replay of its log, and has all that was answered as stored
    Q7  a member gets committed records, and those that its leader's machine has given to it

Gifts are judged at the end of the turn in which they are made. A leader that another has succeeded, and that does not
know it, may give what is done with (KIP-932 has no lease for it): its gifts are counted, and judged by Q7 alone. When
an unclean election has lost records of the partition, of the states or of the groups, Q5's end and Q7 are left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tanist.broker.coordinator_runtime.partition import CoordinatorPartition
from tanist.broker.node import Node
from tanist.broker.share.persister import coordinator_key
from tanist.client.share_session import ACCEPT, REJECT, RELEASE, RENEW
from tanist.coordinator.share.partition import SharePartition
from tanist.coordinator.share.runs import RecordState
from tanist.coordinator.share.state_shard import SharePartitionId, ShareState, ShareStateShard
from tanist.events.coordination import ShareRecordsAcquired, ShareSessionEnded, ShareStateRead
from tanist.events.event import Event as NodeEvent
from tanist.sim.checkers.replicas import ReplicaChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import Place
from tanist.sim.oracle import PartitionOracle
from tanist.sim.workload.share_members import Share, ShareWitness
from tanist.sim.workload.share_settings import ShareSettings
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.internal_topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, partition_of


@dataclass(frozen=True, slots=True)
class _Hold:
    """A member has a record, by its leader's gift."""

    member_id: str
    node_id: int
    until_us: int


@dataclass(slots=True)
class _Book:
    """What is known of one share partition."""

    newest_epoch: int = -1
    """The leader epoch of the last reading of its state."""
    begins: int = -1
    """Where the group has begun; -1: it has not yet."""
    stored_start: int = -1
    state_epoch: int = -1
    done: set[int] = field(default_factory=set)
    """Offsets whose acceptance or rejection was answered."""
    unchecked: set[int] = field(default_factory=set)
    """Those that are not below a start offset that is known to be stored."""
    said: set[int] = field(default_factory=set)
    """Offsets that somebody has accepted or rejected, answered or not."""
    given_up: set[int] = field(default_factory=set)
    """Offsets that were given as often as they may be."""
    counts: dict[int, int] = field(default_factory=dict)
    """How often the leader of now has given each, as it says."""
    released: dict[int, int] = field(default_factory=dict)
    """The delivery count with which a record's release was answered."""
    holds: dict[int, _Hold] = field(default_factory=dict)
    gifts: set[tuple[int, str, int]] = field(default_factory=set)
    """(offset, member id, delivery count)"""
    received: dict[tuple[int, str], int] = field(default_factory=dict)
    """(offset, member id) -> the delivery count with which the member has last received it."""


class ShareChecks(Watcher, ShareWitness):
    """The `ShareWitness` of a run's members, and a `Watcher` of its world."""

    def __init__(self, world: World, replicas: ReplicaChecks, settings: ShareSettings) -> None:
        self._world = world
        self._replicas = replicas
        self._settings = settings
        self._books: defaultdict[Share, _Book] = defaultdict(_Book)
        self._observed: list[ShareRecordsAcquired | ShareSessionEnded | ShareStateRead] = []
        self._seen: dict[int, tuple[SharePartition, Any]] = {}
        world.watchers.append(self)

    # -- Watcher

    def observed(self, host: Host, event: NodeEvent) -> None:
        if isinstance(event, ShareRecordsAcquired | ShareSessionEnded | ShareStateRead):
            self._observed.append(event)

    def turn_ended(self, host: Host) -> None:
        self._judge_observed(host)
        if host.node is not None:
            self._check_machines(host.node)

    def went_down(self, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        self._judge_observed(host)

    def _judge_observed(self, host: Host) -> None:
        observed, self._observed = self._observed, []
        for event in observed:
            if isinstance(event, ShareRecordsAcquired):
                self._given(host.node_id, event)
            elif isinstance(event, ShareStateRead):
                self._state_read(event)
            else:
                self._session_ended(host.node_id, event)

    # -- what leaders do

    def _state_read(self, event: ShareStateRead) -> None:
        share = _share(event.group, event.partition)
        book = self._books[share]
        if event.leader_epoch < book.newest_epoch:
            return
        book.newest_epoch = event.leader_epoch
        book.counts.clear()
        book.holds.clear()
        if event.reset or book.begins < 0:
            book.begins = event.start_offset
        if self._judged(share) and event.start_offset < book.stored_start:
            self._fail(
                "Q4", share, f"is read from {event.start_offset}, and {book.stored_start} was stored as its start"
            )

    def _given(self, node_id: int, event: ShareRecordsAcquired) -> None:
        share = _share(event.group, event.partition)
        book = self._books[share]
        offsets = range(event.first_offset, event.last_offset + 1)
        book.gifts.update((offset, event.member_id, event.delivery_count) for offset in offsets)
        if event.leader_epoch < book.newest_epoch:
            self._world.counts["shares: given by a leader that was succeeded"] += 1
            return
        judged = self._judged(share)
        hold = _Hold(event.member_id, node_id, (self._world.now_ms + self._settings.lock_ms) * MICROSECONDS)
        for offset in offsets:
            if judged:
                self._check_gift(share, book, offset, event)
            other = book.holds.get(offset)
            if other is not None and other.member_id != event.member_id and self._world.now_us < other.until_us:
                self._fail(
                    "Q3", share, f"at {offset} is given to {event.member_id}, and {other.member_id} has it until "
                    f"{other.until_us / 1e6:.3f} s",
                )  # fmt: skip
            book.holds[offset] = hold
            book.counts[offset] = event.delivery_count
            if event.delivery_count >= self._settings.delivery_limit:
                book.given_up.add(offset)

    def _check_gift(self, share: Share, book: _Book, offset: int, event: ShareRecordsAcquired) -> None:
        """Q1, Q2, Q4."""
        if offset in book.done:
            self._fail("Q1", share, f"at {offset} is given to {event.member_id}, and is done with")
        if offset < book.stored_start:
            self._fail("Q4", share, f"at {offset} is given, and it is stored that {book.stored_start} is its start")
        count, before = event.delivery_count, book.counts.get(offset)
        if count > self._settings.delivery_limit:
            self._fail("Q2", share, f"at {offset} is given for the {count}th time of {self._settings.delivery_limit}")
        if before is not None and count != before + 1:
            self._fail("Q2", share, f"at {offset} is given for the {count}th time after the {before}th")
        if count <= book.released.get(offset, 0):
            self._fail(
                "Q2", share, f"at {offset} is given for the {count}th time, and the {book.released[offset]}th is stored"
            )

    def _session_ended(self, node_id: int, event: ShareSessionEnded) -> None:
        for share, book in self._books.items():
            if share.group == event.group:
                gone = [
                    offset
                    for offset, hold in book.holds.items()
                    if (hold.member_id, hold.node_id) == (event.member_id, node_id)
                ]
                for offset in gone:
                    del book.holds[offset]

    def _check_machines(self, node: Node) -> None:
        """Q3: a machine has each record once; and Q1: none that is done with, if it is the one that counts."""
        deliveries = node.components.shares.delivering
        for led in () if deliveries is None else deliveries.led:
            if led.delivery is None or led.error or not led.is_led:
                continue
            runs = tuple(led.delivery.runs())
            if self._seen.get(id(led)) == (led.delivery, runs):
                continue
            self._seen[id(led)] = (led.delivery, runs)
            share = Share(led.where.group_id, led.hosted.topic, led.hosted.index)
            book = self._books[share]
            last = -1
            for first, end, state, _, member_id in runs:
                if first <= last or (state is RecordState.ACQUIRED) != bool(member_id):
                    self._fail("Q3", share, f"from {first} to {end} is {state.name} of {member_id!r} twice or nobody's")
                last = end
                if state.is_terminal or led.leader_epoch < book.newest_epoch or not self._judged(share):
                    continue
                wrong = book.unchecked.intersection(range(first, end + 1))
                if wrong:
                    self._fail("Q1", share, f"at {min(wrong)} is {state.name} at its leader, and is done with")

    # -- the states

    def state_is_whole(self, partition: CoordinatorPartition[ShareStateShard]) -> None:
        """A coordinator's log is committed to its end, and is compared with what it has."""
        hosted = partition.hosted
        oracle = self._replicas.oracles.get((hosted.topic_id, hosted.index))
        if oracle is None or hosted.log.log_end_offset < oracle.high_watermark or oracle.unclean:
            return
        image = self._replicas.metadata.image
        for where, state in partition.shard.states.items():
            topic = image.topics.get(where.topic_id)
            if topic is not None:
                self._check_state(Share(where.group_id, topic.name, where.partition), state)

    def _check_state(self, share: Share, state: ShareState) -> None:
        """Q4, Q6."""
        book = self._books[share]
        if state.state_epoch != book.state_epoch:
            book.state_epoch, book.stored_start = state.state_epoch, -1
        if not self._judged(share):
            return
        if state.start_offset < book.stored_start:
            self._fail("Q4", share, f"begins at {state.start_offset}, and {book.stored_start} was stored as its start")
        book.stored_start = state.start_offset
        left = {offset for offset in book.unchecked if offset >= state.start_offset}
        book.unchecked = left
        for batch in state.batches if left else ():
            if batch.state.is_terminal:
                left = left.difference(range(batch.first, batch.last + 1))
        if left:
            self._fail("Q6", share, f"at {min(left)} is done with, and its state does not say so")

    # -- ShareWitness

    def acquired(
        self, member_id: str, share: Share, first: int, last: int, delivery_count: int, values: Mapping[int, bytes]
    ) -> None:
        """Q7."""
        book, oracle = self._books[share], self._oracle_of(share)
        self._world.counts["shares: records received"] += last - first + 1
        for offset in range(first, last + 1):
            book.received[offset, member_id] = delivery_count
            if (offset, member_id, delivery_count) not in book.gifts:
                self._fail("Q7", share, f"at {offset} is received by {member_id}, to whom it was not given")
            value = values.get(offset)
            if oracle.unclean:
                continue
            if offset >= oracle.high_watermark or value is None or oracle.values.get(offset) != value:
                self._fail(
                    "Q7", share, f"at {offset} is {value!r} by {member_id}'s answer, {oracle.values.get(offset)!r} "
                    f"is committed, up to {oracle.high_watermark}",
                )  # fmt: skip

    def says(self, member_id: str, share: Share, words: Mapping[int, int]) -> None:
        book = self._books[share]
        for offset, kind in words.items():
            if kind in (ACCEPT, REJECT):
                book.said.add(offset)
            hold = book.holds.get(offset)
            if kind != RENEW and hold is not None and hold.member_id == member_id:
                del book.holds[offset]

    def heard(self, member_id: str, share: Share, words: Mapping[int, int], error: int) -> None:
        self._world.counts["shares: words refused" if error else "shares: words stored"] += 1
        if error:
            return
        book = self._books[share]
        for offset, kind in words.items():
            if kind in (ACCEPT, REJECT):
                book.done.add(offset)
                book.unchecked.add(offset)
            elif kind == RELEASE:
                count = book.received.get((offset, member_id), 0)
                book.released[offset] = max(count, book.released.get(offset, 0))

    # -- Q5

    def unsettled(self, shares: Iterable[Share]) -> Iterator[str]:
        """Share partitions with records that are not done with, in words."""
        for share in shares:
            oracle = self._oracle_of(share)
            state = self._state_at_leader(share, oracle)
            if state is None:
                yield f"{share.place} of {share.group} is nowhere"
            elif state.next_fetch_offset < oracle.high_watermark or state.start_offset < oracle.high_watermark:
                yield (
                    f"{share.place} of {share.group} from {state.start_offset} of {oracle.high_watermark}: "
                    f"{list(state.runs())[:4]}"
                )

    def check_all_done(self, shares: Iterable[Share]) -> None:
        """Nothing was passed over."""
        for share in shares:
            book, oracle = self._books[share], self._oracle_of(share)
            if not self._judged(share):
                self._world.counts["shares: not judged to the end, after a loss"] += 1
                continue
            done = book.said | book.given_up
            passed = [offset for offset in oracle.values if offset >= book.begins and offset not in done]
            if passed:
                self._fail("Q5", share, f"at {min(passed)} is done with, and nobody has said so")

    def _state_at_leader(self, share: Share, oracle: PartitionOracle) -> SharePartition | None:
        where = SharePartitionId(share.group, *oracle.key)
        for node in self._world.nodes():
            deliveries = node.components.shares.delivering
            led = None if deliveries is None else deliveries.led.find(where)
            if led is not None and led.leader_epoch == oracle.newest_epoch:
                return led.delivery
        return None

    # -- bits

    def _judged(self, share: Share) -> bool:
        """Whether no records were lost that it depends on."""
        key = coordinator_key(SharePartitionId(share.group, *self._oracle_of(share).key))
        needed = [
            self._oracle_of(share), self._internal(SHARE_STATE_TOPIC, key), self._internal(OFFSETS_TOPIC, share.group)
        ]  # fmt: skip
        return not any(oracle is not None and oracle.unclean for oracle in needed)

    def _internal(self, name: str, key: str) -> PartitionOracle | None:
        image = self._replicas.metadata.image
        topic = image.topics.get(image.topic_ids[name]) if name in image.topic_ids else None
        return (
            None
            if topic is None
            else self._replicas.oracle_of((topic.topic_id, partition_of(key, len(topic.partitions))))
        )

    def _oracle_of(self, share: Share) -> PartitionOracle:
        return self._replicas.oracle_of((self._replicas.metadata.image.topic_ids[share.topic], share.partition))

    def _fail(self, property_id: str, share: Share, said: str) -> NoReturn:
        raise Violation(property_id, self._world.now_us, Place(share.place), f" of {share.group} {said}")


def _share(group: str, partition: str) -> Share:
    topic, _, index = partition.rpartition("-")
    return Share(group, topic, int(index))
