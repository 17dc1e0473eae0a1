"""A leader's checks of the producers of batches, before anything is appended.

Owns the rules by kind of writer: a client's batch must follow the last one of its producer; a coordinator's batch must
have the producer's epoch, and its sequences do not count; a marker must come from the current coordinator.
"""

from __future__ import annotations

from tanist.log.append import AppendResult, Examined, refuse
from tanist.log.config import LogConfig
from tanist.log.markers import parse_marker
from tanist.log.producers import ProducerEntry, ProducerStates
from tanist.wire.errors import ErrorCode


def check_producers(
    producers: ProducerStates, batches: memoryview, examined: list[Examined], config: LogConfig, *, internal: bool
) -> AppendResult | None:
    """None: append them. Else the refusal, or the offsets of the batch that this one repeats."""
    tried: dict[int, ProducerEntry] = {}
    for start, header in examined:
        producer_id, epoch = header.producer_id, header.producer_epoch
        if producer_id < 0:
            continue
        entry = tried.get(producer_id) or producers.entries.get(producer_id)
        if header.is_control:
            marker = parse_marker(batches[start : start + header.size_bytes])
            if marker is None:
                return refuse(ErrorCode.INVALID_RECORD, "a control batch of a producer must hold an end marker")
            verdict = producers.check_marker(entry, epoch, marker.coordinator_epoch)
        elif internal:
            verdict = producers.check_epoch(entry, epoch)
        else:
            verdict = producers.check(
                entry, epoch, header.base_sequence, header.last_offset_delta, transactional=header.is_transactional
            )
        if verdict.error:
            return AppendResult(error=verdict.error, message=verdict.message)
        duplicate = verdict.duplicate
        if duplicate is not None:
            append_time_ms = duplicate.timestamp if config.log_append_time else -1
            return AppendResult(0, duplicate.first_offset, duplicate.last_offset, append_time_ms, duplicate=True)
        plain = not (internal or header.is_control or header.is_transactional)
        if plain and producers.is_beyond_verification(producer_id, header.base_sequence):
            return refuse(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} has not sent the first batch of its transaction yet",
            )
        if len(examined) > 1:
            tried[producer_id] = trial = entry.copy() if entry is not None else ProducerEntry(producer_id)
            trial.enter_epoch(epoch)
    return None
