"""Spark beside a Kafka-wire cluster: topics, replicas' files and histories as DataFrames (docs/spark.md).

Needs the extra `spark`. No other package imports this one: import-linter holds it. The modules `batch_table`,
`record_columns` and `fingerprints` know numpy only; `arrow_rows` makes Arrow of what they find. `session` is loaded
when it is asked for: each of Spark's Python workers imports this package on its way to one source, and needs no other.
"""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tanist.spark.local_session import register, session
    from tanist.spark.metadata.source import MetadataDataSource
    from tanist.spark.segments.source import SegmentsDataSource
    from tanist.spark.topic.progress import offsets_behind_latest
    from tanist.spark.topic_source import TopicDataSource

__all__ = [
    "MetadataDataSource", "SegmentsDataSource", "TopicDataSource", "offsets_behind_latest", "register", "session",
]  # fmt: skip

if "SPARK_REUSE_WORKER" in os.environ:
    # A Python worker of Spark's collects after each of its tasks. What it has imported until here, PySpark and mostly
    # Arrow, stays: to look through it takes 20 ms.
    gc.freeze()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "offsets_behind_latest":
        from tanist.spark.topic import progress

        return getattr(progress, name)
    from tanist.spark import local_session

    return getattr(local_session, name)
