"""The topic of a folder's log: the topic id in `partition.metadata`.

A topic that is deleted and made anew has the same name and another id. If the old log were served as the new topic's,
consumers would get records that were never written to it (A50).
"""

from __future__ import annotations

from uuid import UUID

from tanist.log.checkpoints import decode_partition_metadata, encode_partition_metadata
from tanist.ports import Disk
from tanist.wire.ids import ZERO_UUID


class InconsistentTopicId(Exception):
    """The folder holds the log of another topic of the same name: an older one, that was deleted."""

    def __init__(self, path: str, actual: UUID, expected: UUID) -> None:
        super().__init__(f"{path} is of topic id {actual}, expected {expected}")
        self.actual = actual
        self.expected = expected


def read_or_write_topic_id(disk: Disk, path: str, topic_id: UUID) -> UUID:
    """The topic id of a folder: what `partition.metadata` says, else `topic_id`, which is then written there.

    A loss of power may leave a file that was written without a `sync` empty.
    """
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        data = b""
    if not data.strip(b"\0"):
        if topic_id != ZERO_UUID:
            disk.write_file(path, encode_partition_metadata(topic_id))
        return topic_id
    found = decode_partition_metadata(data, path)
    if topic_id not in (ZERO_UUID, found):
        raise InconsistentTopicId(path, found, topic_id)
    return found
