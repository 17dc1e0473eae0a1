"""The topics of a commit of offsets: by id or by name, there or not, the client's or not (KIP-848, KIP-1319)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar
from uuid import UUID

from tanist.controller.image.image import MetadataImage
from tanist.wire.errors import ErrorCode


class _Topic(Protocol):
    name: str
    topic_id: UUID


T = TypeVar("T", bound=_Topic)


def sort_topics(
    topics: Iterable[T], image: MetadataImage, may: Callable[[str], bool], denied: ErrorCode, *, by_id: bool
) -> tuple[tuple[T, ...], list[tuple[T, ErrorCode]]]:
    """Those that offsets can be committed for, with their names; and the others, with the reason.

    `may`: whether the client may, by the topic's name; `denied`: the reason where it may not.
    """
    known: list[T] = []
    refused: list[tuple[T, ErrorCode]] = []
    for topic in topics:
        if by_id:
            named = image.topics.get(topic.topic_id)
            if named is None:
                refused.append((topic, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            topic.name = named.name
        if may(topic.name):
            known.append(topic)
        else:
            refused.append((topic, denied))
    return tuple(known), refused
