"""Bugs of idempotent producers: retries that are written twice, and replicas that refuse what their leader took."""

from __future__ import annotations

from typing import Any

from tanist.lab.mutations.patching import Patch, always, fixed
from tanist.log.append import AppendResult, refuse
from tanist.log.appender import Appender
from tanist.log.producers import ProducerEntry, ProducerStates
from tanist.wire.batch import read_header
from tanist.wire.errors import ErrorCode
from tests.field.catalogue import NEITHER_HAS_IT, bug
from tests.log.log_batches import batch
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import open_log
from tests.log.test_log_follower import fetched

PRODUCER: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0}


@bug(
    "redpanda #3039",
    planted=fixed(ProducerEntry, "duplicate_of", always(None)),
    mutations=("A43",),
    apache="never had it",
)
def test_a_retry_to_the_next_leader_is_recognised() -> None:
    """A retry was refused as out of order, so clients bumped their epoch and wrote the record twice."""
    log = open_log()
    log.append_as_follower(fetched(0, 2, sequence=0, **PRODUCER), 0)
    log.append_as_follower(fetched(2, 1, sequence=2, **PRODUCER), 0)
    retry = log.append_as_leader(batch([b"value"] * 2, sequence=0, **PRODUCER), 1, 0)
    assert (retry.error, retry.duplicate, retry.first_offset) == (0, True, 0)
    assert log.log_end_offset == 3


def _checks_as_a_leader() -> tuple[Patch, ...]:
    append = Appender.append_as_follower

    def checked(appender: Appender, batches: memoryview, *args: Any) -> AppendResult:
        header = read_header(batches, 0)
        if header.producer_id not in appender.producers.entries and header.base_sequence > 0:
            return refuse(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "the producer is not known")
        return append(appender, batches, *args)

    return (Patch(Appender, "append_as_follower", checked),)


@bug("KAFKA-6003", planted=_checks_as_a_leader)
def test_a_replica_takes_any_sequence_of_a_producer_that_it_does_not_know() -> None:
    """A replica whose log began later than its leader's refused batches of producers whose first sequences it had not
    seen.
    """
    log = open_log()
    assert log.append_as_follower(fetched(40, 1, sequence=7, **PRODUCER), 0).error == 0
    assert log.producers.entries[5].next_sequence == 8


def _forgets_all(states: ProducerStates, offset: int) -> None:
    states.entries.clear()


@bug("KAFKA-7190, redpanda #29623", planted=fixed(ProducerStates, "forget_below", _forgets_all), shown=NEITHER_HAS_IT)
def test_a_producer_outlives_its_records() -> None:
    """A producer's state was forgotten with its records, and its next batch was refused or a retry written twice."""
    disk = MemoryDisk()
    log = open_log(disk)
    log.append_as_leader(batch([b"value"] * 3, sequence=0, **PRODUCER), 0, 0)
    log.write_pending()
    log.advance_log_start_offset(3)
    assert log.append_as_leader(batch([b"value"] * 3, sequence=0, **PRODUCER), 0, 0).duplicate
    log.close()
    again = open_log(disk, log_start_offset=3)
    assert again.append_as_leader(batch([b"next"], sequence=3, **PRODUCER), 0, 0).error == 0
    gap = again.append_as_leader(batch([b"gap"], sequence=9, **PRODUCER), 0, 0)
    assert gap.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def _mutates_first() -> tuple[Patch, ...]:
    check = ProducerStates.check

    def noted(states: ProducerStates, entry: Any, epoch: int, base_sequence: int, delta: int, **how: Any) -> Any:
        verdict = check(states, entry, epoch, base_sequence, delta, **how)
        if entry is not None and not verdict.error and verdict.duplicate is None:
            entry.next_sequence = base_sequence + delta + 1
        return verdict

    return (Patch(ProducerStates, "check", noted),)


@bug("KAFKA-6683", planted=_mutates_first)
def test_a_refused_batch_is_not_in_its_producers_state() -> None:
    """A producer's state was changed before its append, and stayed so when that failed."""
    log = open_log()
    log.append_as_leader(batch([b"one"], sequence=0, **PRODUCER), 0, 0)
    states = log.producers
    assert states.check(states.entries[5], 0, 1, 0, transactional=False).error == 0
    assert states.entries[5].next_sequence == 1, "asked, not appended"
    log.append_as_leader(batch([b"two"], sequence=1, **PRODUCER), 0, 0)
    assert states.entries[5].next_sequence == 2
