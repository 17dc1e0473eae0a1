"""Differences between the two nodes' answers that are meant, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tanist.wire.messages.produce_request import ProduceRequest
from tanist.wire.schema import Request
from tests.interop.requests.batches import Batch

Explains = Callable[[Request, int, Any, Any], bool]
"""Whether it explains this request of this version with these answers, Apache Kafka's and ours."""


def _unreadable(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    if not isinstance(request, ProduceRequest):
        return False
    parts = [part for topic in request.topic_data for part in topic.partition_data]
    return any(isinstance(part.records, Batch) and part.records.damage == "compression" for part in parts)


def _of_nobody(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    return isinstance(request, ProduceRequest) and any(
        isinstance(part.records, Batch) and part.records.transactional and part.records.producer_id == -1
        for topic in request.topic_data
        for part in topic.partition_data
    )


def _acks_of_a_transaction(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    return isinstance(request, ProduceRequest) and request.transactional_id is not None and request.acks != -1


KNOWN: Mapping[str, Explains] = {
    "Apache Kafka does not answer": lambda request, version, apache, tanist: apache == "timed out",
    "Records are not decoded when they are appended (GAPS.md)": _unreadable,
    "A transaction needs acks=all": _acks_of_a_transaction,
    "A batch of a transaction has a producer": _of_nobody,
}
