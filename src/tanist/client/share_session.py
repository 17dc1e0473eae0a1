"""A member's session with one broker (KIP-932): what it fetches there, and what it says of the records that it has got.

Owns the epochs, and what the broker knows of the session. One request is under way at a time. It begins with a fetch; a
session that the broker does not have any more, or an answer that does not come, begins it anew. Records of a session
that is lost are others' to have, so nothing may be said of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple
from uuid import UUID

from tanist.client.errors import Meaning, meaning_in
from tanist.wire.messages import share_acknowledge_request as of_acknowledge
from tanist.wire.messages import share_fetch_request as of_fetch
from tanist.wire.messages.share_acknowledge_request import ShareAcknowledgeRequest
from tanist.wire.messages.share_fetch_request import ForgottenTopic, ShareFetchRequest
from tanist.wire.schema import Response

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""What is said of a record. A gap: there is none at this offset."""
_FIRST_EPOCH: Final = 0
_LAST_EPOCH: Final = -1

Place = tuple[UUID, int]
"""Topic id and partition."""
Words = Mapping[Place, Mapping[int, int]]
"""What is said, by partition and offset."""


class FetchLimits(NamedTuple):
    """How much a member wants, and how long it waits for it."""

    max_records: int
    max_wait_ms: int
    max_bytes: int = 1 << 20
    exact: bool = False
    """Not a record more than `max_records`; else whole batches are better."""


class ShareSession:
    """One session, as its member knows it."""

    def __init__(self, group: str, member_id: str) -> None:
        self._group = group
        self._member_id = member_id
        self._epoch = _FIRST_EPOCH
        self._places: frozenset[Place] = frozenset()
        """That the broker knows of."""
        self._wanted: frozenset[Place] = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether the broker has it, as far as its member knows."""
        return self._epoch != _FIRST_EPOCH

    def fetch(self, wanted: Iterable[Place], words: Words, limits: FetchLimits) -> ShareFetchRequest:
        """More records of these partitions, and what is to be said of others. `ValueError`: nothing was got yet."""
        if words and not self.is_open:
            raise ValueError("a session does not begin with acknowledgements")
        self._wanted = frozenset(wanted)
        said = {place: words.get(place, {}) for place in sorted((self._wanted - self._places) | words.keys())}
        forgotten = sorted((self._places | words.keys()) - self._wanted)
        return ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=limits.max_wait_ms,
            max_bytes=limits.max_bytes,
            min_bytes=1,
            max_records=limits.max_records,
            batch_size=limits.max_records,
            share_acquire_mode=int(limits.exact),
            topics=_topics(of_fetch.FetchTopic, of_fetch.FetchPartition, of_fetch.AcknowledgementBatch, said),
            forgotten_topics_data=tuple(
                ForgottenTopic(topic_id=topic_id, partitions=tuple(index for _, index in places))
                for topic_id, places in groupby(forgotten, key=lambda place: place[0])
            ),
        )

    def acknowledge(self, words: Words, *, renews: bool = False, ends: bool = False) -> ShareAcknowledgeRequest:
        """What is to be said, alone. `renews`: it renews locks, too. `ends`: the session, so that nothing follows."""
        if not self.is_open:
            raise ValueError("there is no session")
        self._wanted = self._places
        said = {place: words[place] for place in sorted(words)}
        return ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=_LAST_EPOCH if ends else self._epoch,
            is_renew_ack=renews,
            topics=_topics(
                of_acknowledge.AcknowledgeTopic,
                of_acknowledge.AcknowledgePartition,
                of_acknowledge.AcknowledgementBatch,
                said,
            ),
        )

    def handle_response(self, answer: Response | None) -> bool:
        """Whether the session goes on; else it begins anew."""
        if meaning_in(answer) is Meaning.DONE:
            self._epoch += 1
            self._places = self._wanted
            return True
        self._epoch, self._places = _FIRST_EPOCH, frozenset()
        return False


def _topics(topic: Any, partition: Any, batch: Any, said: Words) -> tuple[Any, ...]:
    return tuple(
        topic(
            topic_id=topic_id,
            partitions=tuple(
                partition(partition_index=place[1], acknowledgement_batches=tuple(_batches(batch, said[place])))
                for place in places
            ),
        )
        for topic_id, places in groupby(said, key=lambda place: place[0])
    )


def _batches(batch: Any, said: Mapping[int, int]) -> Iterator[Any]:
    """Consecutive offsets are one batch: with one type, if all have the same."""
    for _, run in groupby(enumerate(sorted(said)), key=lambda each: each[1] - each[0]):
        offsets = [offset for _, offset in run]
        types = tuple(said[offset] for offset in offsets)
        alike = types[:1] if len(set(types)) == 1 else types
        yield batch(first_offset=offsets[0], last_offset=offsets[-1], acknowledge_types=alike)
