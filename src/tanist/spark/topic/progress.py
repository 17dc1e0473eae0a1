"""How far a stream is behind, from its progress: metrics of Spark's own source, which sources in Python cannot have.

Owns the comparison of a trigger's end with the ends of the logs, as Spark reports both. It asks no broker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tanist.spark.topic.positions import Positions, from_json


def offsets_behind_latest(source: Mapping[str, Any]) -> dict[str, str]:
    """`minOffsetsBehindLatest`, `maxOffsetsBehindLatest` and `avgOffsetsBehindLatest`, over partitions.

    `source`: of a query's progress, `query.lastProgress["sources"][0]`, or `event.progress.sources[0]` in a listener.
    Empty before the first trigger.
    """
    ends, latest = _positions(source["endOffset"]), _positions(source["latestOffset"])
    behind = [max(0, latest[where].offset - each.offset) for where, each in ends.items() if where in latest]
    if not behind:
        return {}
    return {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": str(sum(behind) / len(behind)),
    }


def _positions(stored: Any) -> Positions:
    """Text, or what a progress has made of it."""
    found = json.loads(stored) if isinstance(stored, str) else stored
    return from_json(found or {})
