"""Requests for committed offsets say the same in each version."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.client.offsets import VERSION_MAX, offset_commit, offset_fetch, offsets_in
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_request, encode_request, parse_request_header
from tanist.wire.messages import offset_fetch_response
from tanist.wire.messages.offset_fetch_response import OffsetFetchResponse


@pytest.mark.parametrize("version", range(2, VERSION_MAX + 1))
def test_a_fetch_names_the_partitions(version: int) -> None:
    def sent(partitions: list[tuple[str, int]] | None) -> dict[str, list[int]] | None:
        request = offset_fetch("g", partitions, require_stable=version >= 7)
        frame = memoryview(encode_request(request, version, 1, "c"))[4:]
        decoded: Any = decode_request(parse_request_header(frame), frame)
        (group,) = decoded.groups or (decoded,)
        assert group.group_id == "g"
        return None if group.topics is None else {each.name: list(each.partition_indexes) for each in group.topics}

    assert sent([("t", 1), ("t", 0), ("u", 3)]) == {"t": [0, 1], "u": [3]}
    assert sent([]) == {}
    assert sent(None) is None


def test_answers_of_one_group_and_of_several_read_the_same() -> None:
    one = offset_fetch_response.OffsetFetchResponsePartition
    several = offset_fetch_response.OffsetFetchResponsePartitions
    failed = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)
    old = OffsetFetchResponse(
        topics=(
            offset_fetch_response.OffsetFetchResponseTopic(
                name="t",
                partitions=(
                    one(partition_index=0, committed_offset=5, metadata="m"),
                    one(partition_index=1, committed_offset=-1, metadata=None),
                    one(partition_index=2, committed_offset=-1, error_code=failed),
                ),
            ),
        )
    )
    topics = (
        offset_fetch_response.OffsetFetchResponseTopics(
            name="t",
            partitions=(
                several(partition_index=0, committed_offset=5, metadata="m"),
                several(partition_index=1, committed_offset=-1, metadata=None),
                several(partition_index=2, committed_offset=-1, error_code=failed),
            ),
        ),
    )
    new = OffsetFetchResponse(groups=(offset_fetch_response.OffsetFetchResponseGroup(group_id="g", topics=topics),))
    assert offsets_in(old) == offsets_in(new) == {("t", 0): (5, "m"), ("t", 1): (-1, "")}


def test_a_commit_has_its_member_and_each_offset() -> None:
    request = offset_commit("g", {("t", 1): 4, ("t", 0): 3, ("u", 0): 0}, member_id="m", epoch=9, metadata="note")
    assert (request.group_id, request.member_id, request.generation_id_or_member_epoch) == ("g", "m", 9)
    found = {
        (topic.name, each.partition_index): (each.committed_offset, each.committed_metadata)
        for topic in request.topics
        for each in topic.partitions
    }
    assert found == {("t", 0): (3, "note"), ("t", 1): (4, "note"), ("u", 0): (0, "note")}
