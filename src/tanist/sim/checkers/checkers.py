"""All checks of a run: safety after every turn, clients' answers as they arrive, liveness after the faults.

The checkers believe nothing that nodes say of themselves. They read the nodes' own objects and disks, and keep an
oracle that no node has (`oracle.py`). A violation is raised from within the event that caused it, and ends the run.
"""

from __future__ import annotations

from typing import NoReturn
from uuid import UUID

from tanist.events.event import Event as NodeEvent
from tanist.events.metadata import UncleanElection
from tanist.events.replication import RecordsRefused
from tanist.events.storage import LogDirectoryFailed, RecordsCut
from tanist.sim.checkers.causes import CauseChecks
from tanist.sim.checkers.directories import DirectoryChecks
from tanist.sim.checkers.replicas import ReplicaChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.checkers.voters import VoterChecks
from tanist.sim.events import Event, Place, PlantedRaised
from tanist.sim.oracle import PartitionOracle
from tanist.sim.workload.history import EndSeen, History, Read, Send
from tanist.sim.world.world import Host, Watcher, World
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition


class Checkers(Watcher):
    """Watches a world, and the clients in it, from the moment it is made."""

    def __init__(self, world: World, history: History, *, trims: bool = False) -> None:
        """`trims`: records go, by retention or DeleteRecords."""
        self._world = world
        self._history = history
        self.replicas = ReplicaChecks(world, trims=trims)
        self.replicas.leaders.on_committed = self._committed
        self.replicas.elections.on_given_up = self._given_up
        self.metadata = self.replicas.metadata
        self.voters = VoterChecks(world) if world.is_dynamic else None
        self._topic_ids: dict[str, UUID] = {}
        self._last_number: dict[tuple[str, int, str], int] = {}
        """(topic, partition, producer) -> the number of its last committed record."""
        self._acknowledged_end: dict[TopicIdPartition, int] = {}
        self._last_read: dict[tuple[str, int, str], int] = {}
        self._healed: dict[str, int] = {}
        self._steps_healed = 0
        self._directories = DirectoryChecks(world)
        self._observed: list[UncleanElection | RecordsCut | RecordsRefused | LogDirectoryFailed] = []
        """In this turn."""
        self._torn: tuple[str, str] | None = None
        """The host that has sent it, and the file."""
        world.network.on_torn = self._sent_torn
        world.watchers.append(self)
        CauseChecks(world, self.metadata.image)
        history.on_sent = self._sent
        history.on_acknowledged = self._acknowledged
        history.on_read = self._read
        history.on_gone = self._gone
        history.on_refused = self._refused
        history.on_moved = self._moved
        history.on_end = self._end_seen

    # -- world.Watcher

    def turn_ended(self, host: Host) -> None:
        self._judge_observed(host)
        node = host.node
        if node is None:
            return
        # A failing disk does not hinder the checkers.
        failing, host.disk.failing = host.disk.failing, []
        if self.voters is not None:
            self.voters.check_node(host, node)
        self.replicas.check_node(host, node)
        host.disk.failing = failing

    def observed(self, host: Host, event: NodeEvent) -> None:
        """Judged when the turn has ended: an exception from here would be one of the node."""
        if isinstance(event, LogDirectoryFailed):
            self.replicas.directory_fails(host, event.directory)
            self._observed.append(event)
        elif isinstance(event, UncleanElection | RecordsCut | RecordsRefused):
            self._observed.append(event)

    def _sent_torn(self, host_name: str, path: str) -> None:
        self._torn = host_name, path

    def _judge_observed(self, host: Host) -> None:
        if self._torn is not None and not self.replicas.oracle.rotten:
            self._fail("S21", "{} has sent of {} what it was not asked for".format(*self._torn))
        observed, self._observed = self._observed, []
        for event in observed:
            if isinstance(event, RecordsCut):
                self.replicas.records_cut(host, event)
            elif isinstance(event, RecordsRefused):
                self._check_sent(host, event)
            elif isinstance(event, LogDirectoryFailed):
                self._directories.check_offline(host, event.directory)
            else:
                self.replicas.elections.reported(host.node_id, event)

    def _check_sent(self, host: Host, refused: RecordsRefused) -> None:
        """S21, for who sends: what a follower is sent are batches of its leader's log, unless that is rotten."""
        if refused.error == ErrorCode.CORRUPT_MESSAGE and all(
            node_id != refused.leader for _, node_id in self.replicas.oracle.rotten
        ):
            place = Place(refused.partition, host.node_id)
            self._fail("S21", place, f": node {refused.leader} has sent what is not in its log: {refused.reason}")

    def happened(self, event: Event) -> None:
        if isinstance(event, PlantedRaised) and not event.reported:
            self._fail("S28", f"node{event.node_id}: no event reports an exception in its {event.place}")
        self._directories.happened(event)
        self.replicas.happened(event)
        if self.voters is not None:
            self.voters.happened(event)

    def went_down(self, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        self._judge_observed(host)
        self.replicas.went_down(host, lost_power=lost_power, mid_turn=mid_turn)
        if self.voters is not None:
            self.voters.went_down(host, mid_turn=mid_turn)

    # -- clients

    def _committed(self, oracle: PartitionOracle, offset: int, value: bytes) -> None:
        """S20: what an idempotent producer sends is committed once, in its order."""
        send = self._history.by_value.get(value)
        if send is None:
            self._fail("S18", oracle.place, f": {value!r} is committed, and no client sent it")
        if not send.ordered:
            return
        if oracle.trimming is not None and oracle.offsets.get(value, oracle.trimming.highest) < oracle.trimming.highest:
            # A leader whose log began above it knows nothing of its producer, and takes it again, as Kafka's does.
            self._world.counts["trimming: a deleted record written again"] += 1
            return
        if value in oracle.offsets:
            self._fail("S20", oracle.place, f": {value!r} is committed at {oracle.offsets[value]} and at {offset}")
        key = (send.topic, send.partition, send.producer)
        last = self._last_number.get(key, -1)
        if send.number <= last:
            self._fail("S20", oracle.place, f": {value!r} is committed after number {last} of its producer")
        self._last_number[key] = send.number

    def _given_up(self, oracle: PartitionOracle) -> None:
        """The history of a partition is shorter: each producer's last committed record is another one now."""
        for key in [key for key in self._last_number if f"{key[0]}-{key[1]}" == oracle.name]:
            del self._last_number[key]
        self._acknowledged_end.pop(oracle.key, None)
        for value in oracle.values.values():
            send = self._history.by_value.get(value)
            if send is not None and send.ordered:
                key = (send.topic, send.partition, send.producer)
                self._last_number[key] = max(self._last_number.get(key, -1), send.number)

    def _sent(self, send: Send) -> None:
        send.least_offset = self._acknowledged_end.get(self._oracle_of(send.topic, send.partition).key, 0)

    def _acknowledged(self, send: Send) -> None:
        """S17, S7: a record acknowledged with acks=all is committed at the offset that the acknowledgement gives.

        That offset is after all offsets that were acknowledged before the record was sent.
        """
        oracle = self._oracle_of(send.topic, send.partition)
        if not send.promised or send.offset < 0 or (send.offset, send.value) in oracle.given_up:
            return
        if send.offset >= oracle.high_watermark:
            self._fail(
                "S17",
                oracle.place,
                f": {send.value!r} was acknowledged at offset {send.offset}, and {oracle.high_watermark} is committed",
            )
        found = oracle.values.get(send.offset)
        if found != send.value:
            self._fail("S7", oracle.place, f": {send.value!r} was acknowledged at {send.offset}, there is {found!r}")
        if send.offset < send.least_offset and not oracle.unclean:
            self._fail(
                "S17",
                oracle.place,
                f": {send.value!r} is at {send.offset}, but {send.least_offset} was committed before",
            )
        self._acknowledged_end[oracle.key] = max(self._acknowledged_end.get(oracle.key, 0), send.offset + 1)

    def _refused(self, send: Send, error: int) -> None:
        """S20, for the producer: its sequence is right, unless the log has lost earlier records.

        A broker that does not know yet that it was deposed may refuse it: it lacks what its successor has taken.
        """
        oracle = self._oracle_of(send.topic, send.partition)
        state = self.metadata.image.partition(*oracle.key)
        if not oracle.unclean and state is not None and state.leader == send.asked:
            self._fail("S20", oracle.place, f": {send.producer} is refused with error {error}")

    def _read(self, read: Read) -> None:
        """S18: a consumer gets all committed records, and no others."""
        oracle = self._oracle_of(read.topic, read.partition)
        if self.replicas.trims is not None:
            self.replicas.trims.check_read(oracle, read.broker, read.offset, read.asked_us)
        key = (read.topic, read.partition, read.consumer)
        expected = self._last_read.get(key, -1) + 1
        self._last_read[key] = read.offset
        left_out = range(expected, read.offset)
        if read.offset != expected and not self._may_be_left_out(oracle, left_out):
            self._fail("S18", oracle.place, f": {read.offset} was read, {expected} was next")
        if (read.offset, read.value) in oracle.given_up:
            return
        if read.offset >= oracle.high_watermark:
            self._fail("S18", oracle.place, f": {read.offset} was read, and {oracle.high_watermark} is committed")
        found = oracle.values.get(read.offset)
        if found != read.value:
            self._fail("S18", oracle.place, f": {read.value!r} was read at {read.offset}, there is {found!r}")

    def _may_be_left_out(self, oracle: PartitionOracle, offsets: range) -> bool:
        """A consumer of a compacted topic may miss a record if a later committed record has its key."""
        return oracle.compaction is not None and len(offsets) > 0 and all(map(oracle.compaction.may_be_gone, offsets))

    def _gone(self, topic: str, partition: int, offset: int) -> None:
        """S18: records that a consumer has read stay, unless an unclean election lost them."""
        oracle = self._oracle_of(topic, partition)
        if oracle.trimming is not None and offset < oracle.trimming.highest:
            self._world.counts["trimming: consumers behind the log start"] += 1
        elif not oracle.unclean:
            self._fail("S18", oracle.place, f": offset {offset} was reached by a consumer, and is gone")

    def _moved(self, topic: str, partition: int, consumer: str, offset: int) -> None:
        """A consumer continues at another offset."""
        if self.replicas.trims is not None:
            self.replicas.trims.check_reset(self._oracle_of(topic, partition), offset)
        self._last_read[(topic, partition, consumer)] = offset - 1

    def _end_seen(self, seen: EndSeen) -> None:
        """S19: a new leader reports no log end before it knows what its predecessors committed."""
        oracle = self._oracle_of(seen.topic, seen.partition)
        if seen.offset < seen.least and seen.leader_epoch >= oracle.unclean_epoch:
            self._fail(
                "S19",
                oracle.place,
                f": the leader of epoch {seen.leader_epoch} says it ends at {seen.offset}, {seen.least} "
                "had been committed before that epoch",
            )
        if seen.offset > oracle.high_watermark and seen.leader_epoch >= oracle.unclean_epoch:
            self._fail(
                "S18", oracle.place, f": {seen.offset} is said to be the end, {oracle.high_watermark} is committed"
            )

    def committed_before(self, topic: str, partition: int, leader_epoch: int) -> int:
        """How much was committed when a leader epoch began."""
        return self._oracle_of(topic, partition).began.get(leader_epoch, 0)

    def check_clients(self) -> None:
        """At the end: each acknowledged record is at its acknowledged offset, or is known to be lost."""
        for send in self._history.sends:
            if send.outcome != "ok" or not send.promised:
                continue
            oracle = self._oracle_of(send.topic, send.partition)
            if send.value not in oracle.offsets and (send.offset, send.value) not in oracle.given_up:
                self._fail("S7", oracle.place, f": {send.value!r} was acknowledged, and is not there")

    def lost_acknowledged(self) -> int:
        """Records that were acknowledged with acks=all, and lost by an unclean election."""
        return sum(
            send.outcome == "ok"
            and send.promised
            and send.value not in self._oracle_of(send.topic, send.partition).offsets
            for send in self._history.sends
        )

    def check_converged(self) -> None:
        """L7: all nodes hold the same metadata and the same records."""
        self.metadata.check_images()
        if self.voters is not None:
            self.voters.check_converged()
        self.replicas.check_converged()
        self.replicas.elections.check_reports()

    # -- L13

    def healed(self) -> None:
        """From here on nothing breaks."""
        self._healed = self._upheaval()
        self._steps_healed = self._steps()

    def check_calm(self, elections_max: int = 4, changes_max: int = 16) -> None:
        """L13: since the end of the faults there were few elections and ISR changes.

        Earlier operations may complete only now, and each step of a reassignment may elect another leader.
        """
        elections_max += 2 * (self._steps() - self._steps_healed)
        for what, count in self._upheaval().items():
            more = count - self._healed.get(what, 0)
            if more > (changes_max if what.endswith("partition epoch") else elections_max):
                self._fail("L13", f"{what} rose by {more} after the last fault")

    def _steps(self) -> int:
        """Steps of reassignments so far."""
        counts = self._world.counts
        return sum(counts[f"reassignments {step}"] for step in ("begun", "completed", "cancelled"))

    def _upheaval(self) -> dict[str, int]:
        found = {"the quorum's epoch": max((node.quorum.raft.epoch for node in self._world.nodes()), default=0)}
        for key, state in self.replicas.states.items():
            name = self.replicas.oracle_of(key).name
            found[f"{name}'s leader epoch"] = state.leader_epoch
            found[f"{name}'s partition epoch"] = state.partition_epoch
        return found

    # -- bits

    def _oracle_of(self, topic: str, partition: int) -> PartitionOracle:
        topic_id = self._topic_ids.get(topic)
        if topic_id is None:
            topic_id = self._topic_ids[topic] = self.metadata.image.topic_ids[topic]
        return self.replicas.oracle_of((topic_id, partition))

    def _fail(self, property_id: str, *said: object) -> NoReturn:
        raise Violation(property_id, self._world.now_us, *said)
