"""Messages are objects like dataclasses, though they are none: constructor, equality, repr, defaults of their own."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any
from uuid import UUID

import pytest

from tanist.wire.codec import decoder, encoder
from tanist.wire.messages.fetch_response import FetchResponse, PartitionData
from tanist.wire.messages.vote_request import TopicData, VoteRequest
from tanist.wire.metadata_records import BeginTransactionRecord, NoOpRecord, TopicRecord
from tanist.wire.schema import ZERO_UUID, Field, Message, MetadataRecord, Request, Struct


def test_fields_have_their_defaults_or_what_was_given() -> None:
    record = TopicRecord(name="t")
    assert (record.name, record.topic_id) == ("t", ZERO_UUID)
    assert record == TopicRecord(name="t", topic_id=ZERO_UUID)
    assert record != TopicRecord(name="u")
    assert record != VoteRequest()
    assert repr(record) == f"TopicRecord(name='t', topic_id={ZERO_UUID!r})"


def test_a_field_that_is_a_struct_is_each_messages_own() -> None:
    one, other = PartitionData(), PartitionData()
    one.current_leader.leader_id = 5
    assert other.current_leader.leader_id == -1
    assert PartitionData(current_leader=one.current_leader).current_leader is one.current_leader


def test_only_keywords_and_only_known_ones_are_taken() -> None:
    with pytest.raises(TypeError, match=r"VoteRequest.*unexpected keyword argument 'cluster'"):
        VoteRequest(cluster="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        TopicData("t")  # type: ignore[call-arg]


def test_a_kind_of_messages_is_none_and_leaves_the_messages_alone() -> None:
    for kind in (Struct, Request, MetadataRecord):
        assert repr(kind()) == f"{kind.__name__}()"
        with pytest.raises(TypeError, match="has no fields"):
            kind(name="t")
    assert NoOpRecord() == NoOpRecord()
    assert NoOpRecord() != BeginTransactionRecord()
    with pytest.raises(AttributeError):
        TopicRecord().nome = "a typing error"  # type: ignore[attr-defined]


def test_a_message_has_no_hash_since_it_can_change() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(TopicRecord())


def test_a_field_without_default_is_noticed_when_the_class_is_made() -> None:
    with pytest.raises(KeyError, match="missing"):
        type("Wrong", (Struct,), {"FIELDS": (Field("missing", "int32", (0, 0)),)})


def test_what_was_read_is_like_what_was_constructed(message_class: type[Message]) -> None:
    """All fields are there, in versions that lack some of them too."""
    plain = message_class()
    for version in range(message_class.VERSIONS[0], message_class.VERSIONS[1] + 1):
        read, _ = decoder(message_class, version)(encoder(message_class, version)(plain), 0)
        assert [hasattr(read, field.name) for field in message_class.FIELDS] == [True] * len(message_class.FIELDS)


def test_copies() -> None:
    record = TopicRecord(name="t", topic_id=UUID(int=3))
    assert copy.deepcopy(record) == copy.copy(record) == pickle.loads(pickle.dumps(record)) == record


def test_the_functions_of_dataclasses_work_on_them() -> None:
    response = FetchResponse(error_code=3)
    assert dataclasses.replace(response, session_id=9) == FetchResponse(error_code=3, session_id=9)
    assert [field.name for field in dataclasses.fields(PartitionData)] == [f.name for f in PartitionData.FIELDS]
    assert dataclasses.asdict(TopicRecord(name="t")) == {"name": "t", "topic_id": ZERO_UUID}


def test_the_default_of_a_field_is_made_anew_each_time() -> None:
    first: Any = PartitionData.default_of("snapshot_id")
    assert first == PartitionData.default_of("snapshot_id")
    assert first is not PartitionData.default_of("snapshot_id")
    assert PartitionData.default_of("log_start_offset") == -1
