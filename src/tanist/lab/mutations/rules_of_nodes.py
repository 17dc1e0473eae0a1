"""Rules of nodes, broken: a broker's disks, logs and clients, and the quorum's stored state.

Owns patches of `tanist.broker`, `tanist.log`, `tanist.quorum` and of the simulator's disk, each a function of the
mutation's number. They show in the simulator only, because the model checker has neither bytes nor connections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from tanist.broker.api.produce import ProduceWait
from tanist.broker.log_directories import LogDirectories
from tanist.broker.metadata.controller_service import ControllerService
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.network.channel import FrameLender
from tanist.broker.network.client_connection import ClientConnection
from tanist.broker.network.connections import Connections
from tanist.broker.replication import fetcher
from tanist.broker.replication.fetcher import Fetcher
from tanist.broker.replication.follower_sessions import FollowedPartition, FollowerSession
from tanist.broker.replication.found_logs import FoundLogs
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.replicas import Replicas
from tanist.broker.turn import Turn
from tanist.lab.mutations.patching import Patch, always, fixed, replaced
from tanist.log import appender
from tanist.log.append import examine_fetched
from tanist.log.checkpoints import CLEAN_SHUTDOWN, encode_clean_shutdown
from tanist.log.epochs import LeaderEpochCache
from tanist.log.log import Log
from tanist.log.producers import ProducerStates
from tanist.log.recovery import LogLoader
from tanist.log.segment import Segment
from tanist.quorum.state.roles import Role
from tanist.quorum.state.rules import QuorumRules
from tanist.quorum.storage.quorum_state_file import QuorumStateFile
from tanist.replica import reads
from tanist.replica.follower import FollowerState
from tanist.sim.checkers.checkers import Checkers
from tanist.sim.world.disk import SimDisk
from tanist.sim.world.scheduler import Process
from tanist.wire.errors import ErrorCode

# -- disks and logs


def a4_marked_early() -> tuple[Patch, ...]:
    """From the moment when the broker has its epoch, and whether its shutdown is clean or not."""
    activate = Replicas.activate

    def marks(replicas: Any) -> None:
        activate(replicas)
        mark = encode_clean_shutdown(replicas._lifecycle.broker_epoch)
        for directory in replicas.directories:
            replicas._context.disk.write_file(f"{directory.path}/{CLEAN_SHUTDOWN}", mark, sync=True)

    return (Patch(Replicas, "activate", marks),)


misses_no_log = fixed(LogDirectories, "lost_logs", always({}))


def a36_lying_disks() -> tuple[Patch, ...]:
    """Synced data is in the page cache only. (The files of `tanist format` are on the disk.)"""
    view = SimDisk.view

    def lies(disk: SimDisk, process: Process) -> Any:
        disk.lying = process.name != "format"
        return view(disk, process)

    return (Patch(SimDisk, "view", lies),)


a37_epochs_outlive_records = fixed(LeaderEpochCache, "truncate_from_end", always(False))


def a43_forgets_producers() -> tuple[Patch, ...]:
    finish = LogLoader.load

    def load(loader: LogLoader) -> Any:
        loaded = finish(loader)
        loaded.producers.clear()
        return loaded

    return (
        Patch(LogLoader, "_load_producers", always(None)),
        Patch(LogLoader, "_finish_producers", always(None)),
        Patch(LogLoader, "load", load),
    )


duplicates_are_appended = fixed(ProducerStates, "check", always(SimpleNamespace(error=0, duplicate=None)))


def producers_expire_by_their_timestamps() -> tuple[Patch, ...]:
    """As in Apache Kafka, but whenever a log is looked after."""

    def expire(producers: Any, wall_ms: int, now_ms: int, expiration_ms: int) -> int:
        gone = [
            producer_id
            for producer_id, entry in producers.entries.items()
            if entry.transaction_first_offset < 0 and wall_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in gone:
            del producers.entries[producer_id]
        return len(gone)

    return (Patch(ProducerStates, "expire", expire),)


def a50_ignores_topic_ids() -> tuple[Patch, ...]:
    """A log on disk belongs to the present topic of its name, whatever topic it was written for."""
    take = FoundLogs.take

    def takes(found: Any, name: str, topic_id: Any, index: int) -> Any:
        for log, _ in found._logs.get((name, index), ()):
            log.topic_id = topic_id
        return take(found, name, topic_id, index)

    def assign(log: Any, topic_id: Any) -> None:
        log.topic_id = topic_id

    return (Patch(FoundLogs, "take", takes), Patch(Log, "assign_topic_id", assign))


# -- answers


def a23_takes_any_answer() -> tuple[Patch, ...]:
    """The fetcher does not check that its fetch was of the present role, nor the follower that it was of its log
    end."""
    take = fetcher.Fetcher._take

    def takes_for_the_present(self: Any, hosted: Any, asked: Any, *rest: Any) -> None:
        take(self, hosted, asked._replace(follower=hosted.follower or asked.follower), *rest)

    return (
        Patch(fetcher.Fetcher, "_is_awaited", lambda _fetcher, hosted, _asked: hosted.follower is not None),
        Patch(fetcher.Fetcher, "_take", takes_for_the_present),
        Patch(FollowerState, "_answers_present_fetch", always(True)),
    )


def a44_late_is_refused() -> tuple[Patch, ...]:
    """A producer whose wait expires gets a refusal. The record was appended, and may still be committed."""

    def expire(wait: Any) -> None:
        for ticket, place in enumerate(wait.where):
            if place is not None:
                wait.complete(ticket, ErrorCode.INVALID_RECORD)

    return (Patch(ProduceWait, "expire", expire),)


def acks_with_the_next() -> tuple[Patch, ...]:
    add = ProduceWait.add
    return (Patch(ProduceWait, "add", lambda wait, hosted, _required_offset, results: add(wait, hosted, 0, results)),)


def deposed_leaders_acknowledge() -> tuple[Patch, ...]:
    lost = HostedPartition.leadership_lost
    return (Patch(HostedPartition, "leadership_lost", lambda hosted, _error=0: lost(hosted, 0)),)


def clients_are_heard_at_once() -> tuple[Patch, ...]:
    """All listeners listen from the start of the node, before it has read the metadata."""
    open_controller = Connections.open_controller

    def opens_all(connections: Connections) -> None:
        open_controller(connections)
        connections.open_broker()

    return (Patch(Connections, "open_controller", opens_all),)


consumers_read_to_the_end = fixed(reads, "consumer_fetch_bounds", always(1 << 62))

# -- sessions of followers


def sessions_forget_what_is_named() -> tuple[Patch, ...]:
    """A partition that the follower names is not looked at before its log grows."""
    take = FollowerSession.take

    def takes(session: FollowerSession, call: Any) -> None:
        take(session, call)
        session.active.clear()

    return (Patch(FollowerSession, "take", takes),)


sessions_leave_the_high_watermark_out = fixed(
    FollowedPartition, "has_news", lambda _followed, result: result.records is not None or bool(result.error)
)
sessions_hear_of_no_appends = fixed(FollowedPartition, "activate", always(None))

# -- appends that are written off the loop


@contextmanager
def _taken_for_written(logs: list[Log]) -> Iterator[None]:
    """Nobody ends the large writes of these logs meanwhile."""
    writes = [log.write_pending for log in logs]
    for log in logs:
        log.write_pending = always(None)
    yield
    for log, write in zip(logs, writes, strict=True):
        log.write_pending = write


_NO_WRITE_IS_LATE = Patch(Log, "writes_late", property(always(False)))


def acknowledges_what_is_not_written() -> tuple[Patch, ...]:
    """A follower's next request does not wait for the write, and does not end it."""
    wait = Turn._wait_for

    def waits(turn: Any, late: Any) -> None:
        callbacks, turn._after_writes = turn._after_writes, []
        with _taken_for_written([hosted.log for hosted, _ in late.partitions]):
            for callback in callbacks:
                callback()
        wait(turn, late)

    return (
        _NO_WRITE_IS_LATE,
        Patch(Turn, "beside_large", always(None)),
        Patch(Turn, "_wait_for", waits),
    )


def acknowledges_all_beside_what_is_written() -> tuple[Patch, ...]:
    """The request beside a large write names the partition that is being written as well."""
    send = Fetcher._send_beside_large

    def sends(fetcher: Any) -> None:
        with _taken_for_written([hosted.log for hosted in fetcher._partitions.values()]):
            send(fetcher)

    return (_NO_WRITE_IS_LATE, Patch(Fetcher, "_send_beside_large", sends))


def receives_into_what_is_lent() -> tuple[Patch, ...]:
    """The memory of a frame is used again while it is written."""
    nothing = always(None)
    owners = (ClientConnection, FrameLender)
    return tuple(Patch(owner, name, nothing) for owner in owners for name in ("hold", "release"))


def commits_what_is_not_written() -> tuple[Patch, ...]:
    """A leader counts a large append at once, and no turn ends the write."""
    write = Turn._write_large_later

    def writes(turn: Any, dirty: Any) -> Any:
        late = write(turn, dirty)
        for hosted, _ in () if late is None else late.partitions:
            if hosted.leader is not None:
                hosted.leader.appended(turn.now_ms)
        return late

    return (Patch(Turn, "_write_large_later", writes),)


# -- answers that wait while their log is cut

_EPOCH_MAX = (1 << 31) - 1


writes_over_what_readers_were_given = fixed(Segment, "was_given_more", property(always(False)))
"""What is cut is written over in its file, also where a reader was given it."""


def torn_answers() -> tuple[Patch, ...]:
    """A follower takes what has its offset, of whatever epoch. The leader writes over what it has given, as one of
    another program might, whose sending no checker sees.
    """
    return (
        *writes_over_what_readers_were_given(),
        Patch(appender, "examine_fetched", lambda batches, _last, _leader: examine_fetched(batches, -1, _EPOCH_MAX)),
        Patch(Checkers, "_sent_torn", always(None)),
    )


def begins_at_the_cut() -> tuple[Patch, ...]:
    """Where a log is cut in a hole that compaction left, the next segment begins there, and not where the last ends."""
    cut = Log._cut

    def roll_for(self: Any, first_offset: int, _last_offset: int, now_ms: int) -> Any:
        return self.roll(first_offset, now_ms)

    def cuts(log: Any, *rest: Any) -> None:
        with replaced((Patch(appender.Appender, "roll_for", roll_for),)):
            cut(log, *rest)

    return (Patch(Log, "_cut", cuts),)


# -- roles and the quorum

a48_roles_before_the_registration = fixed(Lifecycle, "caught_up", property(always(True)))
a49_begins_before_all_is_replayed = fixed(QuorumRules, "may_announce", always(True))


def _answers_before_the_commit(host: ControllerService, call: Any, response: Any, request: Any) -> None:
    call.reply(response)


a49b_answers_before_the_commit = fixed(ControllerService, "_reply_when_committed", _answers_before_the_commit)


def _commits_what_it_has_itself(_rules: QuorumRules, ends: Sequence[int], epoch_start_offset: int) -> int | None:
    return ends[0] if ends[0] > epoch_start_offset else None


commits_without_a_majority = fixed(QuorumRules, "commit_offset", _commits_what_it_has_itself)
votes_are_not_stored = fixed(QuorumRules, "must_store", always(False))


def votes_are_forgotten() -> tuple[Patch, ...]:
    """A process that starts knows its epoch, and not that it has voted in it."""
    load = QuorumStateFile.load
    return (Patch(QuorumStateFile, "load", lambda file: replace(load(file), voted=None)),)


def votes_again() -> tuple[Patch, ...]:
    """In an epoch without a leader, for every candidate that is as good."""

    def grants(role: Role, _ask: Any, up_to_date: bool) -> bool:
        return role.leader_id is None and up_to_date

    return (Patch(Role, "_grants_while_leaderless", grants),)
