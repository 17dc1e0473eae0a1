"""Logs and their changes (S6, S21, S22, S26), and the mirror of each.

Each log has a mirror (`oracle.ReplicaMirror`), updated change by change. The mirror stays while the process is down: it
is what a candidate for leadership really has, whatever nodes believe. When a log has grown, only the new part is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NoReturn

from tanist.broker.node import Node
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.image.partition_state import PartitionState
from tanist.log.checkpoints import LOG_START_CHECKPOINT, PARTITION_METADATA, decode_offsets
from tanist.log.log import Log
from tanist.log.names import LogFolder, parse_future_folder
from tanist.replica.metadata import NO_EPOCH
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import Place
from tanist.sim.oracle import Batch, PartitionOracle, ReplicaMirror, Trimming
from tanist.sim.world.page_cache import Inode
from tanist.sim.world.world import Host, World
from tanist.wire.batch import iterate_headers
from tanist.wire.errors import WireError
from tanist.wire.ids import TopicIdPartition

_LOG_SUFFIX = ".log"


class LogChecks:
    """The logs of all replicas."""

    def __init__(self, world: World, rotten: set[tuple[TopicIdPartition, int]]) -> None:
        self._world = world
        self._rotten = rotten
        """(partition, node): the oracle's."""

    # -- a process begins and ends

    def meet(self, host: Host, log: Log, oracle: PartitionOracle, committed: PartitionState | None) -> ReplicaMirror:
        """A log was opened. `committed`: what the quorum has committed of its partition, if it has."""
        place = Place(oracle.name, host.node_id)
        known = oracle.mirrors.get(host.node_id)
        mirror = ReplicaMirror(host.node_id, host.lives, log)
        mirror.log_start = 0 if oracle.trimming is not None else log.log_start_offset
        before = () if known is None else known.batches
        mirror.batches = oracle.content(place, log, mirror.log_start, log.log_end_offset, self._world.now_us, before)
        if known is not None:
            mirror.most_start = known.most_start
            if known.mid_turn and log.epochs.earliest is not None:
                # It died after it had written down the epochs from its new start on, and before all else.
                mirror.most_start = max(mirror.most_start, log.epochs.earliest.start_offset)
        _follow_start(log, mirror)
        if known is not None and known.released_epoch is None:
            self._check_restart(place, known, mirror, rotten=(oracle.key, host.node_id) in self._rotten)
            mirror.cut = known.cut
            mirror.lossy_since_epoch, mirror.lossy_life = known.lossy_since_epoch, known.lossy_life
            mirror.doubtful = known.doubtful
            mirror.member_since = known.member_since
        elif known is not None:
            mirror.released_epoch = known.released_epoch  # until it is a replica again
            mirror.member_since = (known.released_epoch or 0) + 1
        elif committed is not None and host.node_id not in committed.replicas:
            # The node knows older metadata. It will delete this log, and may be given another.
            mirror.released_epoch = committed.partition_epoch
        for number, batch in enumerate(mirror.batches):
            self._check_written(place, oracle, batch, mirror.batches[number - 1] if number else None)
        self.check_epoch_cache(place, log, mirror)
        oracle.mirrors[host.node_id] = mirror
        oracle.agree(mirror)
        return mirror

    def went_down(
        self, host: Host, oracle: PartitionOracle, *, lost_power: bool, mid_turn: bool, broker_epoch: int
    ) -> None:
        """The process has ended, or the machine lost its power and all that was not synced."""
        mirror = oracle.mirrors.get(host.node_id)
        if mirror is None:
            return
        clean = host.lives in host.clean_ends
        # Each life makes a new mirror; if this one has not opened its log, an older doubt remains.
        mirror.mid_turn = mirror.mid_turn or mid_turn
        mirror.doubtful = mirror.doubtful or not clean
        if oracle.trimming is not None:
            stopped = clean and mirror.life == host.lives
            on_disk = _checkpointed_start(host, mirror, lost_power=lost_power)
            mirror.durable_start = mirror.start if stopped else min(mirror.start, on_disk)
        if mid_turn and not lost_power and mirror.life == host.lives:
            # What it has written in that turn may be known to others: a follower asks for the next record.
            mirror.batches += _written_behind(host, mirror)
            oracle.agree(mirror)
        if lost_power:
            durable_end = _durable_end(host, mirror)
            # After an earlier loss that no process has seen: the lost part does not count as synced again.
            mirror.durable_end = durable_end if mirror.durable_end is None else min(durable_end, mirror.durable_end)
        # (Recovery truncates a rotten log before the damaged batch.)
        if (lost_power or (oracle.key, host.node_id) in self._rotten) and not clean:
            mirror.may_have_lost(broker_epoch, host.lives)

    def moved(self, place: Place, oracle: PartitionOracle, mirror: ReplicaMirror, log: Log) -> None:
        """S22: what takes the place of a log, in another directory, has the same records, and is as durable."""
        known = mirror.log
        if known is None or log.directory == known.directory:
            self._fail("S22", place, f": has another log in {log.directory}, and has not moved")
        since = 0 if oracle.trimming is not None else log.log_start_offset
        before = [batch for batch in mirror.batches if batch.end > since]
        found = oracle.content(place, log, since, log.written_end_offset, self._world.now_us, mirror.batches)
        if found[: len(before)] != before or (log.log_start_offset < mirror.start and not oracle.unclean):
            self._fail("S22", place, f": had {mirror.start} to {mirror.end} in {known.directory}, now has {log}")
        if log.flushed_offset < min(known.flushed_offset, mirror.end):
            self._fail("S22", place, f": was synced up to {known.flushed_offset}, and is up to {log.flushed_offset}")
        mirror.log = log
        self._world.counts["replicas moved between directories"] += 1

    # -- a log becomes longer or shorter

    def follow(
        self,
        place: Place,
        hosted: HostedPartition,
        oracle: PartitionOracle,
        mirror: ReplicaMirror,
        leader: ReplicaMirror | None,
    ) -> None:
        """Update the mirror to the log's end. `leader`: the mirror of the leader's log, which this one must become.

        (What it had queued when it led itself may be written when it has ceased to.)
        """
        log = hosted.log
        end = log.written_end_offset
        if mirror.end > end:
            self.cut_off(place, oracle, mirror, end)  # not by a requested truncation
        if oracle.trimming is not None:
            self._follow_trimmed(place, log, oracle, oracle.trimming, mirror)
        elif not mirror.batches:
            mirror.log_start = log.log_start_offset
        for batch in oracle.content(place, log, mirror.end, end, self._world.now_us):
            before = mirror.batches[-1] if mirror.batches else None
            if before is not None and batch.first != before.end:
                self._fail("S6", place, f": {batch} was appended behind {before}")
            self._check_written(place, oracle, batch, before)
            if leader is not None and batch.end > mirror.queued_end and leader.last_before(batch.end) != batch:
                self._fail("S21", place, f": has {batch}, its leader {leader.last_before(batch.end)}")
            mirror.batches.append(batch)
        mirror.queued_end = log.log_end_offset
        oracle.agree(mirror)
        _follow_start(log, mirror)
        if mirror.was_cut:
            mirror.was_cut = False
            self.check_epoch_cache(place, log, mirror)
        elif (
            mirror.batches
            and mirror.end > mirror.began_at
            and log.latest_epoch < mirror.batches[-1].epoch
            and (end > log.log_start_offset or not oracle.unclean)
        ):
            self._fail("S22", place, f": ends with {mirror.batches[-1]}, its latest leader epoch is {log.latest_epoch}")

    def _follow_trimmed(
        self, place: Place, log: Log, oracle: PartitionOracle, trimming: Trimming, mirror: ReplicaMirror
    ) -> None:
        """S26: within a life the log start never goes back, unless the log begins anew.

        It does so after an unclean election that has lost records, and one that begins at its leader's start, within a
        batch, has to take that whole batch.
        """
        if log.first_segment_offset > mirror.end:
            mirror.batches = trimming.from_history(0, log.first_segment_offset)
            mirror.agreeing = 0
            self._world.counts["trimming: logs begun anew at the leader's start"] += 1
        if oracle.unclean and log.log_start_offset >= mirror.end and mirror.agreeing < len(mirror.batches):
            # All is below its start: lost records may lie there, as in Kafka, until their segment goes.
            mirror.batches = trimming.from_history(0, mirror.end)
            mirror.agreeing = 0
        if log.log_start_offset < mirror.start and not oracle.unclean:
            whole_batch = mirror.began_at == mirror.start and log.log_start_offset == mirror.end
            if not whole_batch:
                self._fail("S26", place, f": its start went back from {mirror.start} to {log.log_start_offset}")

    def _check_written(self, place: Place, oracle: PartitionOracle, batch: Batch, before: Batch | None) -> None:
        """S6 in its strongest form: an offset and epoch are the same batch after the same batch on all replicas."""
        known = oracle.written.setdefault((batch.first, batch.epoch), (batch, before))
        if known[0] != batch:
            self._fail("S6", place, f": has {batch}, another replica {known[0]}")
        if before is not None and known[1] is not None and known[1] != before:
            self._fail("S6", place, f": has {batch} behind {before}, another replica behind {known[1]}")

    def cut_off(self, place: Place, oracle: PartitionOracle, mirror: ReplicaMirror, offset: int) -> None:
        """S21: no committed batch is truncated. Only diverging batches are."""
        mirror.was_cut = True
        mirror.queued_end = min(mirror.queued_end, offset)
        if mirror.batches and mirror.end > offset:
            self._world.counts["logs truncated"] += 1
        while mirror.batches and mirror.batches[-1].end > offset:
            gone = mirror.batches.pop()
            mirror.cut.add(gone)
            mirror.agreeing = min(mirror.agreeing, len(mirror.batches))
            if oracle.trimming is not None and gone.end <= oracle.trimming.highest:
                continue  # below the leader's start, where this replica begins anew
            position = oracle.position.get(gone.first)
            if position is not None and oracle.history[position] == gone:
                self._fail(
                    "S21",
                    place,
                    f": {gone} was cut off (at {offset}), though it was committed (true high watermark "
                    f"{oracle.high_watermark})",
                )

    # -- a log comes back

    def _check_restart(self, place: Place, known: ReplicaMirror, now: ReplicaMirror, *, rotten: bool) -> None:
        """S22: a crash loses nothing, a loss of power only unsynced batches, and neither adds any."""
        if now.start < known.durable_start and not (known.mid_turn or rotten):
            self._fail("S26", place, f": begins at {now.start}, {known.durable_start} was written down")
        before = [batch for batch in known.batches if batch.end > now.start]
        found = [batch for batch in now.batches if batch.end > now.start]
        same = 0
        for mine, theirs in zip(before, found):
            if mine != theirs:
                break
            same += 1
        if rotten and same == len(found):
            return  # truncated before the rotten batch, or somewhere after the durable end
        if known.durable_end is None:
            if not known.mid_turn and before != found:
                self._fail("S22", place, f": had {known.end} before the crash, has {now.end}, {same} batches the same")
            return
        kept = found[same - 1].end if same else now.start
        lost = before[same].end if same < len(before) else None
        if lost is not None:
            self._world.counts["logs recovered with a loss"] += 1
            if lost <= known.durable_end:
                self._fail(
                    "S22", place, f": was synced up to {known.durable_end}, has {now.end} of which {kept} as it was"
                )
        for batch in found[same:]:
            if batch not in known.cut and not known.mid_turn:
                self._fail("S22", place, f": has {batch} after the loss of power, which it never had")

    def check_epoch_cache(self, place: Place, log: Log, mirror: ReplicaMirror) -> None:
        """S22: the leader-epoch cache agrees with the log, from a log start on that it has, or had before a crash."""
        entries = [(entry.epoch, entry.start_offset) for entry in log.epochs.entries]
        end = log.written_end_offset
        since = entries[0][1] if entries else end
        if not log.log_start_offset < since <= mirror.most_start:
            since = log.log_start_offset
        found: list[tuple[int, int]] = []
        for batch in mirror.batches:
            if batch.end > since and (not found or batch.epoch != found[-1][0]):
                found.append((batch.epoch, max(batch.first, since)))
        # (A log that began anew within a batch has that whole batch.)
        if [(epoch, max(first, since)) for epoch, first in entries if first < end] != found:
            self._fail(
                "S22", place, f": its leader epochs are {entries}, those of its batches {found}, its end is {end}"
            )

    def _fail(self, property_id: str, *said: object) -> NoReturn:
        raise Violation(property_id, self._world.now_us, *said)


def _follow_start(log: Log, mirror: ReplicaMirror) -> None:
    mirror.start = log.log_start_offset
    mirror.most_start = max(mirror.most_start, mirror.start)
    end = log.log_end_offset
    mirror.began_at = end if log.latest_epoch == NO_EPOCH and end <= mirror.most_start else 0


def logs_of(node: Node) -> list[Log]:
    """All logs in the node's directories, whether the node hosts them or not."""
    return [log for directory in node.replicas.directories for log in directory.logs.values()]


def _checkpointed_start(host: Host, mirror: ReplicaMirror, *, lost_power: bool) -> int:
    """The log start offset that is on the disk: in the checkpoint, and by the first of the log's segments.

    After a loss of power: only what was there for certain. Without its topic id the log begins anew.
    """
    if mirror.log is None:
        return 0
    folder, _, name = mirror.log.directory.rpartition("/")
    contents = {
        path: bytes(inode.durable if lost_power else inode.data)
        for path, inode in host.disk.files(durable=lost_power).items()
    }
    if not contents.get(f"{folder}/{name}/{PARTITION_METADATA}"):
        return 0
    bases = [
        int(path.rpartition("/")[2].removesuffix(_LOG_SUFFIX))
        for path in contents
        if path.startswith(f"{folder}/{name}/") and path.endswith(_LOG_SUFFIX)
    ]
    start = min(bases, default=0)
    checkpoint = f"{folder}/{LOG_START_CHECKPOINT}"
    if contents.get(checkpoint):
        starts = decode_offsets(contents[checkpoint], checkpoint)
        start = max(start, starts.get(mirror.log.topic_partition, 0))
    return start


def _segments(host: Host, mirror: ReplicaMirror) -> Iterator[Inode]:
    """The files of the log's segments, in order."""
    if mirror.log is None:
        return
    folder = mirror.log.directory + "/"
    for path in host.disk.paths():
        if path.startswith(folder) and path.endswith(_LOG_SUFFIX):
            yield host.disk.inode(path)


def batches_of_copy(host: Host, log: Log) -> list[Batch] | None:
    """What a log's copy has that was on its way to another directory of its broker (KIP-113); None without a copy.

    The copy takes the place of a log that is lost.
    """
    folder = LogFolder(*log.topic_partition)
    files = [path for path in host.disk.paths() if parse_future_folder(path.split("/")[-2]) == folder]
    if not files:
        return None
    segments = [host.disk.inode(path) for path in files if path.endswith(_LOG_SUFFIX)]
    return [batch for segment in segments for batch in _whole_batches(segment.data)]


def _whole_batches(data: bytearray) -> Iterator[Batch]:
    """The batches in a part of a segment, up to one that is torn: the log has not been recovered."""
    with suppress(WireError):
        for _, header in iterate_headers(memoryview(bytes(data))):
            yield Batch.of(header)


def _written_behind(host: Host, mirror: ReplicaMirror) -> list[Batch]:
    """The batches in the files behind those of the mirror."""
    found: list[Batch] = []
    end = mirror.end
    for inode in _segments(host, mirror):
        for batch in _whole_batches(inode.data):
            if batch.first == end:
                end = batch.end
                found.append(batch)
    return found


def _durable_end(host: Host, mirror: ReplicaMirror) -> int:
    """The offset up to which the log is synced, from the synced lengths of its segments."""
    end = mirror.log_start
    for inode in _segments(host, mirror):
        for batch in _whole_batches(inode.data[: inode.synced_bytes]):
            end = max(end, batch.end)
        if inode.synced_bytes < len(inode.data):
            break
    return end
