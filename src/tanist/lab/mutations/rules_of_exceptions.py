"""Rules of what an exception may have torn, broken: what goes on although it should have been given up.

Owns the patches, and `EXCEPTION_MUTANTS`, each with the runs that show it: exceptions are planted in them
(`sim.planted`). Each patch tells of the exception as before, unless not telling is what it breaks: that nobody tells is
a violation by itself, and would hide what becomes of the torn state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tanist.broker.coordinator_runtime.runtime import CoordinatorRuntime
from tanist.broker.metadata.controller_service import ControllerService
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.replay import MetadataReplay
from tanist.broker.network.client_connection import ClientConnection
from tanist.broker.network.connections import Connections
from tanist.broker.node import Node
from tanist.broker.replication.replicas import Replicas
from tanist.broker.unexpected import Unexpected
from tanist.lab.mutations.patching import Breaks, Patch, always
from tanist.lab.mutations.simulator import Mutation
from tanist.log import appender
from tanist.log.appender import Appender
from tanist.log.checkpoints import CLEAN_SHUTDOWN, encode_clean_shutdown
from tanist.log.torn import TornLog, as_failure
from tanist.sim.faults.schedule import Fault
from tanist.sim.planted import PLACES
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import GROUPS, RECORDS
from tanist.sim.run.drawing import config_of, faults_of

_PAUSE_MS = (50, 400)


def handlers_are_masked() -> tuple[Patch, ...]:
    """Whatever a handler raises is taken for malformed bytes: its connection closes, and nobody hears of it."""
    return (
        Patch(Connections, "handler_failed", always(None)),
        Patch(ClientConnection, "_fast_path_failed", lambda connection, *_: connection.close()),
    )


def loops_go_on() -> tuple[Patch, ...]:
    """The end of a turn that raises leaves the turn begun, so that none ever ends again."""
    return (Patch(Node, "crash", lambda node, place, error: node.context.unexpected.met(place, error)),)


def quorums_go_on() -> tuple[Patch, ...]:
    """What it could not replay it has passed."""
    apply_some = MetadataReplay._apply_some

    def met(quorum: Any, error: Exception) -> None:
        quorum._context.unexpected.met("the metadata quorum", error)

    def applies(replay: Any) -> None:
        passed = replay._next_offset
        for batch in replay._log.read_batches(passed, replay._committed_offset):
            passed = batch.next_offset
        try:
            apply_some(replay)
        except Exception:
            replay._next_offset = passed
            raise

    return (Patch(MetadataQuorum, "_crash", met), Patch(MetadataReplay, "_apply_some", applies))


def controllers_go_on() -> tuple[Patch, ...]:
    """Records are replayed before they are appended; an exception before the append leaves a phantom in the image."""
    append = MetadataQuorum.append

    def replays_first(quorum: Any, values: Sequence[bytes], *, atomic: bool, appended: Callable[[], None]) -> int:
        appended()
        return append(quorum, values, atomic=atomic, appended=lambda: None)

    def guarded(service: Any, step: Callable[[], None]) -> bool:
        try:
            step()
        except Exception as error:
            service._context.unexpected.met("the controller", error)
            return False
        return True

    return (Patch(MetadataQuorum, "append", replays_first), Patch(ControllerService, "_guarded", guarded))


def logs_go_on() -> tuple[Patch, ...]:
    """An exception in the middle of an append refuses that, and fails nothing."""
    failed = Replicas.directory_failed

    def unless_torn(error: Exception) -> OSError | None:
        failure = as_failure(error)
        return None if isinstance(failure, TornLog) else failure

    @contextmanager
    def changing(log: Appender) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            log.failed = unless_torn(error)
            raise

    def directory_failed(replicas: Any, directory: Any, failure: OSError) -> None:
        if isinstance(failure, TornLog):
            replicas._context.unexpected.met("a log", failure.cause)
        else:
            failed(replicas, directory, failure)

    return (
        Patch(appender, "as_failure", unless_torn),
        Patch(Appender, "changing", changing),
        Patch(Replicas, "directory_failed", directory_failed),
    )


def shards_go_on() -> tuple[Patch, ...]:
    """Whatever a shard has met in a step, or while its log was replayed into it."""

    def failed(runtime: Any, _partition: Any, error: Exception) -> None:
        runtime._context.unexpected.met(f"a coordinator of {runtime._kind.topic}", error)

    return (Patch(CoordinatorRuntime, "failed", failed),)


def crashes_are_clean() -> tuple[Patch, ...]:
    """A process that ends by an exception leaves the mark of a clean end, as one that unwinds might."""
    activate, crash = Replicas.activate, Unexpected.crash
    running: dict[Unexpected, Any] = {}

    def activates(replicas: Any) -> None:
        activate(replicas)
        running[replicas._context.unexpected] = replicas

    def crashes(unexpected: Unexpected, place: str, error: Exception) -> None:
        replicas = running.get(unexpected)
        if replicas is not None:
            mark = encode_clean_shutdown(replicas._lifecycle.broker_epoch)
            for directory in replicas.directories:
                replicas._context.disk.write_file(f"{directory.path}/{CLEAN_SHUTDOWN}", mark, sync=True)
        crash(unexpected, place, error)

    return (Patch(Replicas, "activate", activates), Patch(Unexpected, "crash", crashes))


def _planted(rule: str, patches: Breaks, place: str = "", workload: str = RECORDS) -> Mutation:
    """Shows in random runs in which exceptions are planted all the time, in one place or in all."""
    names = list(PLACES)

    def there(fault: Fault) -> Fault:
        if fault.kind != "raise" or not place:
            return fault
        return replace(fault, detail=(names.index(place) + fault.detail) / len(names))

    def play(seed: int) -> ChaosRun:
        config = replace(config_of(seed, workload), raise_pause_ms=_PAUSE_MS)
        return ChaosRun(seed, config, faults=list(map(there, faults_of(seed, config))))

    return Mutation(rule, patches, play)


EXCEPTION_MUTANTS: Mapping[str, Mutation] = {
    "torn-masked": _planted("what a handler raises is taken for malformed bytes", handlers_are_masked, "request"),
    "torn-turn": _planted("a turn whose end has raised is left as it is", loops_go_on, "write"),
    "torn-quorum": _planted("a quorum goes on behind records that it could not replay", quorums_go_on, "replay"),
    "torn-controller": _planted(
        "a controller goes on with records in its image that an exception kept from its log",
        controllers_go_on,
        "controller",
    ),
    "torn-log": _planted("a log goes on after an exception in the middle of an append", logs_go_on, "append"),
    "torn-shard": _planted("a coordinator's shard goes on after an exception", shards_go_on, "coordinator", GROUPS),
    "torn-marked": _planted("a process that an exception ends leaves the mark of a clean end", crashes_are_clean),
}
