"""The start of a broker's logs: opened, and recovered where the last stop was not clean, by threads.

Owns which log is opened next (`num.recovery.threads.per.data.dir` at a time in each directory), the progress (a line in
the log, `tanist status`, KIP-831's numbers), and the previous broker epoch that the broker registers with (rule 87).

The order is safe because no replica is served before all are there. The node answers from the beginning: its controller
votes and leads, and its broker knows the metadata and answers NOT_LEADER_OR_FOLLOWER for each replica. The broker
registers when the last log is open: only then it is known whether this start is a clean one. Apache Kafka loads all
logs before it serves one, too, but registers before that, fenced (rule 88). A partition whose log is not open yet
cannot be made anew, empty, because roles are taken from the registration on. docs/decisions/0005 has the reasons.

Jobs open logs and change nothing else; all else happens on the loop. A crash on the way leaves logs of which some are
recovered and no mark of a clean stop, so the next start recovers all of them again. So does a stop.

Records that recovery cuts off are saved first (`salvage`), one log at a time: a job that meets some gives its log back,
and it is opened once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.log_directories import LogDirectories
from tanist.events.process import LogDirectoriesFailed, NodeFailed
from tanist.events.storage import LogDirectoryFailed, LogRecovered, LogsLoaded, LogsLoading, LogsLost
from tanist.events.text.storage import loading_progress
from tanist.log.config import LogConfig
from tanist.log.directory import FoundLog, LogDirectory
from tanist.log.log import Log
from tanist.log.recovery import LoadingCancelled, RecoveryProgress, Rescue
from tanist.log.salvage.reading import holds_a_batch
from tanist.ports import FileRange, Timer, is_descriptor_shortage
from tanist.text import counted
from tanist.wire.ids import TopicPartition

REPORT_EVERY_MS: Final = 5_000
_SLICE_MAX: Final = 32
"""Logs that one job opens: a thousand small ones need no thousand hops between threads."""


class Remaining(NamedTuple):
    """What a directory has left to load (KIP-831)."""

    path: str
    logs: int
    segments: tuple[int, ...]
    """Of the log that each thread recovers."""


class _SaveFirst(Exception):
    """Recovery is about to cut whole batches off."""


def _save_first(of: TopicPartition, topic_id: UUID) -> Rescue:
    del of, topic_id

    def stop(from_offset: int, ranges: tuple[FileRange, ...]) -> None:
        del from_offset
        if holds_a_batch(ranges):
            raise _SaveFirst

    return stop


_Opened = list[tuple[FoundLog, Log | OSError | None]]
"""None: records of the log have to be saved first."""


class _Load:
    """One directory that is being loaded."""

    __slots__ = ("directory", "free", "left", "over", "threads", "to_save", "waiting")

    def __init__(self, directory: LogDirectory, found: Iterable[FoundLog], threads: Iterable[RecoveryProgress]) -> None:
        self.directory = directory
        self.waiting = deque(found)
        self.to_save: deque[FoundLog] = deque()
        self.left = len(self.waiting)
        """Logs that are not open yet."""
        self.threads = tuple(threads)
        self.free = list(reversed(self.threads))
        self.over = False
        """All logs are open, or the directory has failed."""

    @property
    def at_work(self) -> bool:
        return len(self.free) < len(self.threads)

    def next_slice(self) -> list[FoundLog]:
        # Fewer towards the end, so that one thread does not have all large logs while the others have none.
        number = min(_SLICE_MAX, 1 + len(self.waiting) // (4 * len(self.threads)))
        return [self.waiting.popleft() for _ in range(number)]

    def open_logs(
        self,
        logs: Iterable[tuple[FoundLog, LogConfig]],
        now_ms: int,
        rescue: Callable[[TopicPartition, UUID], Rescue] | None,
        progress: RecoveryProgress,
    ) -> _Opened:
        """The job."""
        opened: _Opened = []
        for found, config in logs:
            if progress.is_cancelled():
                break
            try:
                opened.append((found, self.directory.open_log(found, config, now_ms, rescue, progress)))
            except LoadingCancelled:
                break
            except _SaveFirst:
                opened.append((found, None))
            except OSError as error:
                opened.append((found, error))
                break
        return opened


class LogLoading:
    """The loading of all log directories, once in a node's life."""

    def __init__(
        self,
        context: NodeContext,
        directories: LogDirectories,
        log_config: Callable[[str], LogConfig],
        loaded: Callable[[LogDirectory], None],
        delete_later: Callable[[Iterable[str]], None],
    ) -> None:
        """`loaded` is called with each directory whose logs are all open."""
        self._context = context
        self._directories = directories
        self._log_config = log_config
        self._loaded = loaded
        self._delete_later = delete_later
        self._log_configs: dict[str, LogConfig] = {}
        self._loads: list[_Load] = []
        self._total = 0
        self._saving = False
        self._previous_broker_epoch = -1
        self._done: Callable[[int], None] | None = None
        self._stopped: Callable[[], None] | None = None
        self._timer: Timer | None = None
        self._began_ms = 0
        self.complete = False
        """All logs are open, of the directories that have not failed."""

    # -- the progress

    @property
    def under_way(self) -> bool:
        return self._done is not None

    @property
    def progress(self) -> str:
        return loading_progress(self._progress())

    def _progress(self) -> LogsLoading:
        remaining = self.remaining()
        loaded = self._total - sum(each.logs for each in remaining)
        return LogsLoading(loaded, self._total, sum(sum(each.segments) for each in remaining))

    def remaining(self) -> list[Remaining]:
        return [
            Remaining(
                load.directory.path,
                0 if load.over else load.left,
                tuple(thread.segments_left for thread in load.threads),
            )
            for load in self._loads
        ]

    # -- begin and end

    def start(self, done: Callable[[int], None]) -> None:
        """Load all directories, then call `done` with the previous broker epoch. Not if the node ends before."""
        self._done = done
        self._began_ms = self._context.clock.now_ms()
        self._previous_broker_epoch = self._directories.previous_broker_epoch()
        number = self._context.config.num_recovery_threads_per_data_dir
        for directory in self._directories:
            try:
                found = directory.begin_load()
            except OSError as failure:
                self._failed(directory, failure)
                continue
            threads = (RecoveryProgress(is_cancelled=self._is_cancelled) for _ in range(number))
            self._loads.append(_Load(directory, found, threads))
            self._total += len(found)
        self._report_later()
        self._go_on()

    def stop(self, stopped: Callable[[], None]) -> None:
        """Give the loading up, and close the logs as they are. They get no mark of a clean stop."""
        self._stopped = stopped
        self._go_on()

    def _is_cancelled(self) -> bool:
        """Jobs ask this, too."""
        return self._stopped is not None or self._context.stopping

    def _go_on(self) -> None:
        """Whatever is next: after the start, each job, and a stop."""
        if self._is_cancelled():
            if not any(load.at_work for load in self._loads):
                self._give_up()
            return
        for load in self._loads:
            if not load.over and not load.left:
                self._end(load)
            self._give_work(load)
        if self._done is not None and not any(load.at_work or not load.over for load in self._loads):
            self._finish(self._done)

    def _give_up(self) -> None:
        self._close()
        for load in self._loads:
            load.directory.abandon()
        stopped, self._stopped = self._stopped, None
        if stopped is not None:
            stopped()

    def _finish(self, done: Callable[[int], None]) -> None:
        self._close()
        self.complete = True
        if self._total:
            took_ms = self._context.clock.now_ms() - self._began_ms
            self._context.events.emit(LogsLoaded(self._total, took_ms))
        done(self._previous_broker_epoch if self._all_logs_are_there() else -1)

    def _all_logs_are_there(self) -> bool:
        """Whether the mark of a clean stop may be believed: no broker may count as eligible for a log that is lost.

        A directory whose mark could be read may have failed since (rule 87); and an operator, or the repair of a file
        system, may have taken a log away and left the mark. KIP-966 has one word for both: an unclean shutdown.
        DEVIATION from rule 87: Apache makes an empty log, in silence, and lets it lead.
        """
        if self._previous_broker_epoch < 0 or self._directories.offline_ids():
            return False
        lost = self._directories.lost_logs()
        if self._directories.are_listed and not lost:
            return True
        self._context.events.emit(LogsLost(tuple((str(log), what) for log, what in sorted(lost.items()))))
        return False

    def _close(self) -> None:
        self._done = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- logs

    def _give_work(self, load: _Load) -> None:
        while load.free and not load.over:
            if load.to_save and not self._saving:
                self._saving = True
                self._open(load, [load.to_save.popleft()], saves=True)
            elif load.waiting:
                self._open(load, load.next_slice(), saves=False)
            else:
                return

    def _open(self, load: _Load, logs: list[FoundLog], *, saves: bool) -> None:
        clock, thread = self._context.clock, load.free.pop()
        configured = [(found, self._config_of(found.folder.topic)) for found in logs]
        rescue = load.directory.rescue if saves else _save_first
        self._context.disk.run(
            partial(load.open_logs, configured, clock.now_ms(), rescue, thread),
            partial(self._opened, load, thread, saves),
        )

    def _config_of(self, topic: str) -> LogConfig:
        """To resolve it costs as much as to open a log. It is set anew when the replica takes its role."""
        config = self._log_configs.get(topic)
        if config is None:
            config = self._log_configs[topic] = self._log_config(topic)
        return config

    def _opened(self, load: _Load, thread: RecoveryProgress, saves: bool, result: _Opened | BaseException) -> None:
        load.free.append(thread)
        if saves:
            self._saving = False
        if isinstance(result, BaseException):
            if not isinstance(result, Exception):
                raise result
            self._context.unexpected.crash("the loading of logs", result)
            result = []
        for found, log in result:
            if isinstance(log, OSError):
                load.directory.load_failed(log)
                self._fail(load, log)
            elif log is None:
                load.to_save.append(found)
            elif load.over or self._is_cancelled():
                log.abandon()
            else:
                self._take(load, found, log)
        self._go_on()

    def _take(self, load: _Load, found: FoundLog, log: Log) -> None:
        load.left -= 1
        recovery = log.recovery
        end = recovery.cut_at_offset
        if end is not None and recovery.bytes_cut:
            self._context.events.emit(LogRecovered(str(log.topic_partition), recovery.bytes_cut, end, recovery.reasons))
        try:
            load.directory.loaded(found, log)
        except OSError as failure:
            self._fail(load, failure)

    def _end(self, load: _Load) -> None:
        """All logs of the directory are open."""
        directory = load.directory
        try:
            directory.end_load()
        except OSError as failure:
            self._fail(load, failure)
            return
        load.over = True
        for complaint in directory.complaints:
            self._context.events.emit(complaint)
        self._delete_later(directory.paths_to_delete)
        self._loaded(directory)

    # -- failures

    def _fail(self, load: _Load, failure: OSError) -> None:
        if not load.over:
            load.over = True
            self._failed(load.directory, failure)
            load.directory.abandon()

    def _failed(self, directory: LogDirectory, failure: OSError) -> None:
        """A directory cannot be loaded. If it was the last, or descriptors are short, the node ends."""
        if is_descriptor_shortage(failure):
            opened = counted(sum(len(each.logs) for each in self._directories), "log")
            self._context.fatal(NodeFailed(f"only {opened} could be opened: {failure.strerror}"))
            return
        self._context.events.emit(LogDirectoryFailed(directory.path, str(failure)))
        if self._directories.all_failed:
            self._context.fatal(LogDirectoriesFailed(self._directories.failure_causes))

    # -- reports

    def _report_later(self) -> None:
        clock = self._context.clock
        self._timer = clock.call_at(clock.now_ms() + REPORT_EVERY_MS, self._report)

    def _report(self) -> None:
        self._context.events.emit(self._progress())
        self._report_later()
