"""The message of a task that has written. The driver reads it without Arrow, unless rows are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from tanist.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from tanist.spark.sink.already_written import Identity, Written


@dataclass
class TaskWritten(WriterCommitMessage):
    """The records that one task wrote, and those that it left out because they were there."""

    records: int
    known: int
    who: Identity | None = None
    """None: at least once."""
    earlier: Mapping[TopicPartition, Written] = field(default_factory=dict)
    """The records that were there before the micro-batch's tasks began; the same for all of them."""
    left_out: Mapping[TopicPartition, bytes] = field(default_factory=dict)
    """The fingerprints of the rows that are among them."""
