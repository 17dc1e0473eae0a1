"""Partitions as requests and records name them: the indexes of each topic."""

from __future__ import annotations

from collections.abc import Iterable


def indexes_by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The sorted indexes of each topic, topics sorted by their names."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return topics
