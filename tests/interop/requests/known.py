"""Differences between the two nodes' answers that are meant, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tanist.wire.schema import Request

Explains = Callable[[Request, int, Any, Any], bool]
"""Whether it explains this request of this version with these answers, Apache Kafka's and ours."""

KNOWN: Mapping[str, Explains] = {}
