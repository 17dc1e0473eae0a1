"""Share groups: what leaders give and members say, against the stored states and the committed records (Q1-Q9).

    Q1  a record whose acceptance or rejection was answered without an error is not given to anybody again
    Q2  a record is given `share.delivery.count.limit` times at most, and the count grows by one each time that a leader
        gives it; what is released or not spoken of is given again
    Q3  no record is two members' at once: not in the leader's machine, and not by its gifts within the locks' time
    Q4  nothing below the stored start offset is given, nor below the start of the leader's log; the stored start offset
        does not go back
    Q5  when the faults are over, each committed record is done with: spoken of, or given as often as it may be
    Q6  a state is the replay of its log, and has all that was answered as stored
    Q7  a member gets committed records, and those that its leader's machine has given to it; in a group that reads
        committed records, none of a transaction that is open or aborted
    Q9  `dead_letters`
    Q8  when an operator has changed the offsets of a group, it goes on from there, or begins anew

Gifts are judged at the end of the turn in which they are made. A leader that another has succeeded, and that does not
know it, may give what is done with (KIP-932 has no lease for it): its gifts are counted, and judged by Q7 alone. So may
one that has not read since an operator changed the offsets; of what was before that, nothing counts any more. When
an unclean election has lost records of the partition, of the states or of the groups, Q5's end and Q7 are left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from tanist.broker.coordinator_runtime.partition import CoordinatorPartition
from tanist.broker.node import Node
from tanist.broker.share.persister import coordinator_key
from tanist.client.share_session import ACCEPT, REJECT, RELEASE, RENEW
from tanist.coordinator.share.partition import SharePartition
from tanist.coordinator.share.runs import RecordState
from tanist.coordinator.share.state_shard import SharePartitionId, ShareState, ShareStateShard
from tanist.events.coordination import DeadLettersLeftOut, ShareRecordsAcquired, ShareSessionEnded, ShareStateRead
from tanist.events.event import Event as NodeEvent
from tanist.sim.checkers.dead_letters import Letters
from tanist.sim.checkers.outcomes import Outcomes
from tanist.sim.checkers.replicas import ReplicaChecks
from tanist.sim.checkers.share_books import Book, Hold
from tanist.sim.checkers.trimming import allowance_of
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import Place
from tanist.sim.oracle import PartitionOracle
from tanist.sim.workload.share_members import Share, ShareWitness
from tanist.sim.workload.share_operator import ANEW, OffsetsWitness
from tanist.sim.workload.share_settings import DEAD_LETTERS, ShareSettings
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.batch import BatchHeader
from tanist.wire.internal_topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, partition_of


class ShareChecks(Watcher, ShareWitness, OffsetsWitness):
    """The `ShareWitness` of a run's members, and a `Watcher` of its world."""

    def __init__(self, world: World, replicas: ReplicaChecks, settings: ShareSettings) -> None:
        self._world = world
        self._replicas = replicas
        self._settings = settings
        self._books: defaultdict[Share, Book] = defaultdict(Book)
        self._observed: list[DeadLettersLeftOut | ShareRecordsAcquired | ShareSessionEnded | ShareStateRead] = []
        self._seen: dict[int, tuple[SharePartition, Any]] = {}
        self._outcomes = Outcomes()
        self._letters = Letters()
        self._with_letters = {plan.group for plan in settings.plans if plan.dead_letters}
        replicas.leaders.on_batch = self._batch_committed
        self._reading_committed = {plan.group for plan in settings.plans if plan.read_committed}
        world.watchers.append(self)

    # -- Watcher

    def observed(self, host: Host, event: NodeEvent) -> None:
        if isinstance(event, DeadLettersLeftOut | ShareRecordsAcquired | ShareSessionEnded | ShareStateRead):
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
                self._state_read(host.node_id, event)
            elif isinstance(event, DeadLettersLeftOut):
                self._world.counts["shares: dead letters left out"] += 1
                self._letters.leaves_out(_share(event.group, event.partition), event)
            else:
                self._session_ended(host.node_id, event)

    # -- what leaders do

    def _state_read(self, node_id: int, event: ShareStateRead) -> None:
        share = _share(event.group, event.partition)
        book = self._books[share]
        if event.leader_epoch < book.newest_epoch:
            return
        book.readers.add(node_id)
        if book.changed_to is not None and not book.in_doubt:
            self._check_changed(share, book, event)
        book.newest_epoch = event.leader_epoch
        book.counts.clear()
        book.holds.clear()
        if event.reset or book.begins < 0:
            book.begins = event.start_offset
        if self._judged(share) and event.start_offset < book.stored_start:
            self._fail(
                "Q4", share, f"is read from {event.start_offset}, and {book.stored_start} was stored as its start"
            )

    def _check_changed(self, share: Share, book: Book, event: ShareStateRead) -> None:
        """Q8: the first reading since an operator has changed the offsets."""
        wanted, book.changed_to = book.changed_to, None
        oracle = self._oracle_of(share)
        highest = max(wanted or 0, 0 if oracle.trimming is None else oracle.trimming.highest)
        right = event.reset if wanted == ANEW else not event.reset and (wanted or 0) <= event.start_offset <= highest
        if self._judged(share) and not right:
            self._fail(
                "Q8", share, f"is read from {event.start_offset}{' anew' if event.reset else ''}, and an operator has "
                f"had it begin {'anew' if wanted == ANEW else f'at {wanted}'}",
            )  # fmt: skip

    def _given(self, node_id: int, event: ShareRecordsAcquired) -> None:
        share = _share(event.group, event.partition)
        book = self._books[share]
        offsets = range(event.first_offset, event.last_offset + 1)
        book.gifts.update((offset, event.member_id, event.delivery_count) for offset in offsets)
        if event.leader_epoch < book.newest_epoch:
            self._world.counts["shares: given by a leader that was succeeded"] += 1
            return
        if book.in_doubt or node_id not in book.readers:
            self._world.counts["shares: given when offsets were changed"] += 1
            return
        book.counted.update((offset, event.member_id) for offset in offsets)
        judged = self._judged(share)
        hold = Hold(event.member_id, node_id, (self._world.now_ms + self._settings.lock_ms) * MICROSECONDS)
        for offset in offsets:
            if judged:
                self._check_gift(node_id, share, book, offset, event)
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
                book.exhausted.add(offset)

    def _check_gift(self, node_id: int, share: Share, book: Book, offset: int, event: ShareRecordsAcquired) -> None:
        """Q1, Q2, Q4."""
        oracle = self._oracle_of(share)
        if oracle.trimming is not None:
            least = allowance_of(oracle).least_start_since(node_id, self._world.now_us - 1)
            if offset < least:
                self._fail("Q4", share, f"at {offset} is given by {node_id}, whose log begins at {least}")
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
                if state.is_over or led.leader_epoch < book.newest_epoch or node.node_id not in book.readers:
                    continue
                if not self._judged(share):
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
            if batch.state.is_over:
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
            if share.group in self._reading_committed:
                self._check_decided(member_id, share, oracle, offset)
            elif self._outcomes.is_aborted(oracle, offset):
                self._world.counts["shares: aborted records received"] += 1
            if value is None and offset < oracle.high_watermark and self._outcomes.is_marker(oracle, offset):
                self._world.counts["shares: markers received"] += 1
                continue
            if offset >= oracle.high_watermark or value is None or oracle.values.get(offset) != value:
                self._fail(
                    "Q7", share, f"at {offset} is {value!r} by {member_id}'s answer, {oracle.values.get(offset)!r} "
                    f"is committed, up to {oracle.high_watermark}",
                )  # fmt: skip

    def _check_decided(self, member_id: str, share: Share, oracle: PartitionOracle, offset: int) -> None:
        """Q7, of transactions."""
        if self._outcomes.is_aborted(oracle, offset) or self._outcomes.is_undecided(oracle, offset):
            fate = "aborted" if self._outcomes.is_aborted(oracle, offset) else "open"
            self._fail("Q7", share, f"at {offset} is received by {member_id}, and is of a transaction that is {fate}")

    def says(self, member_id: str, share: Share, words: Mapping[int, int]) -> None:
        book = self._books[share]
        for offset, kind in words.items():
            if kind in (ACCEPT, REJECT):
                book.said.add(offset)
                (book.accepted if kind == ACCEPT else book.rejected).add(offset)
            hold = book.holds.get(offset)
            if kind != RENEW and hold is not None and hold.member_id == member_id:
                del book.holds[offset]

    def heard(self, member_id: str, share: Share, words: Mapping[int, int], error: int) -> None:
        self._world.counts["shares: words refused" if error else "shares: words stored"] += 1
        book = self._books[share]
        if error or book.in_doubt:
            return
        for offset, kind in words.items():
            if (offset, member_id) not in book.counted:
                continue  # it was given before an operator changed the offsets
            if kind in (ACCEPT, REJECT):
                book.done.add(offset)
                if kind == REJECT and offset not in book.accepted:
                    book.dead.add(offset)
                book.unchecked.add(offset)
            elif kind == RELEASE:
                count = book.received.get((offset, member_id), 0)
                book.released[offset] = max(count, book.released.get(offset, 0))

    # -- OffsetsWitness

    def changing(self, shares: Sequence[Share]) -> None:
        for share in shares:
            self._books[share].in_doubt = True

    def changed(self, shares: Sequence[Share], start_offset: int) -> None:
        for share in shares:
            book = self._books[share]
            book.forget()
            book.in_doubt, book.changed_to, book.begins = False, start_offset, start_offset

    def unchanged(self, shares: Sequence[Share]) -> None:
        for share in shares:
            self._books[share].in_doubt = False

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
            if share.group in self._reading_committed:
                aborted = [offset for offset in passed if self._outcomes.is_aborted(oracle, offset)]
                passed = self._without(passed, aborted, "aborted records passed over")
            if oracle.trimming is not None:
                gone = [offset for offset in passed if offset < oracle.trimming.highest]
                passed = self._without(passed, gone, "records gone before they were given")
            self._check_letters(share, book, oracle)
            if passed:
                self._fail("Q5", share, f"at {min(passed)} is done with, and nobody has said so")

    def _check_letters(self, share: Share, book: Book, oracle: PartitionOracle) -> None:
        """Q9: what nobody could process is there."""
        topic = f"{DEAD_LETTERS}{share.group}"
        lossy = any(each.unclean for each in self._replicas.oracles.values() if each.name.startswith(f"{topic}-"))
        if share.group not in self._with_letters or lossy:
            return
        begins = max(book.begins, 0 if oracle.trimming is None else oracle.trimming.highest)
        wanted = book.dead | (book.given_up - book.accepted - book.rejected)
        missing = self._letters.missing(share, {offset for offset in wanted if offset >= begins})
        missing.intersection_update(oracle.values)
        if missing:
            self._fail("Q9", share, f"at {min(missing)} could be processed by nobody, and is not in {topic}")

    def _batch_committed(self, oracle: PartitionOracle, header: BatchHeader, batch: memoryview) -> None:
        """Q9: a dead letter is of what nobody could process."""
        self._outcomes.batch_committed(oracle, header, batch)
        if not self._letters.is_topic(oracle.name):
            return
        for share, offset in self._letters.batch_committed(batch):
            self._world.counts["shares: dead letters written"] += 1
            book = self._books[share]
            if offset not in book.rejected and offset not in book.exhausted:
                self._fail("Q9", share, f"at {offset} is a dead letter, and nobody has rejected it")

    def _without(self, offsets: list[int], excused: list[int], counted_as: str) -> list[int]:
        self._world.counts[f"shares: {counted_as}"] += len(excused)
        return sorted({*offsets} - {*excused})

    def _state_at_leader(self, share: Share, oracle: PartitionOracle) -> SharePartition | None:
        where = SharePartitionId(share.group, *oracle.key)
        for node in self._world.nodes():
            deliveries = node.components.shares.delivering
            led = None if deliveries is None else deliveries.led.find(where)
            if led is not None and led.leader_epoch == oracle.newest_epoch:
                return led.delivery if node.node_id in self._books[share].readers else None
        return None

    # -- bits

    def _judged(self, share: Share) -> bool:
        """Whether no records were lost that it depends on, and no operator is changing its offsets."""
        if self._books[share].in_doubt:
            return False
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
