"""Faults by request without a cluster: each API's response takes an error; frames are divided right."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tanist.runtime.faults import request_counts
from tanist.runtime.faults.request_filter import _frames
from tanist.runtime.faults.request_rules import RequestFault, UnknownName, api_key_of, error_code_of, error_fault
from tanist.runtime.faults.settings import FaultSet, load, save
from tanist.wire.apis import ApiKey, request_class, response_class
from tanist.wire.error_responses import refusal, stamped
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import correlation_id_of, decode_response, encode_request, encode_response
from tanist.wire.schema import ZERO_UUID, Array, Field, Struct

CODE = ErrorCode.UNKNOWN_SERVER_ERROR


def full(cls: type[Struct]) -> Any:
    """A struct with one element in each of its arrays."""
    values: dict[str, Any] = {}
    for field in cls.FIELDS:
        if isinstance(field.type, Array) and isinstance(field.type.element, type):
            values[field.name] = (full(field.type.element),)
        elif isinstance(field.type, type):
            values[field.name] = full(field.type)
    return cls(**values)


def codes(struct: Struct, version: int) -> list[int]:
    found: list[int] = []
    for field in struct.FIELDS:
        if not field.versions[0] <= version <= field.versions[1]:
            continue
        value = getattr(struct, field.name)
        if field.name.endswith("error_code"):
            found.append(value)
        for each in value if isinstance(field.type, Array) and value else (value,):
            if isinstance(each, Struct):
                found += codes(each, version)
    return found


@pytest.mark.parametrize("api", list(ApiKey), ids=lambda api: api.name)
def test_every_api_s_response_takes_an_error(api: ApiKey) -> None:
    cls = response_class(api)
    taken = 0
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
        message = full(cls)
        frame = encode_response(message, version, 77)
        wanted = len(codes(message, version))
        changed = stamped(api, version, frame[4:], CODE, "why")
        if changed is None:
            assert wanted == 0
            continue
        assert int.from_bytes(changed[:4], "big") == len(changed) - 4
        found = codes(decode_response(api, version, changed[4:]), version)
        if api in (ApiKey.FETCH, ApiKey.METADATA) and version >= {ApiKey.FETCH: 7, ApiKey.METADATA: 13}[api]:
            assert sorted(found) == [*[CODE] * (wanted - 1), 0], "the top level has errors of its own"
        else:
            assert found == [CODE] * wanted
        taken += 1
    assert taken, "no version has a place for an error"


def test_a_session_s_error_stands_at_the_top_of_a_fetch() -> None:
    frame = encode_response(full(response_class(ApiKey.FETCH)), 12, 1)
    changed = stamped(ApiKey.FETCH, 12, frame[4:], ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "why")
    assert changed is not None
    assert codes(decode_response(ApiKey.FETCH, 12, changed[4:]), 12) == [ErrorCode.FETCH_SESSION_ID_NOT_FOUND]


CHANGING = [api for api in ApiKey if not RequestFault("error", api).reads]


def asked(cls: type[Struct], numbers: Iterator[int]) -> Any:
    """A request for two of everything, with a name or number of its own in each field that says what it is about."""
    values: dict[str, Any] = {}
    for field in cls.FIELDS:
        element = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(element, type):
            each: Any = partial(asked, element, numbers)
        elif field.name in ("topic_id", "id"):
            each = lambda: UUID(int=next(numbers))  # noqa: E731
        elif element == "string" and (isinstance(field.type, Array) or field.name in KEYS):
            each = lambda: f"name {next(numbers)}"  # noqa: E731
        elif element in ("int32", "int64") and (isinstance(field.type, Array) or field.name in KEYS):
            each = lambda: next(numbers)  # noqa: E731
        else:
            continue
        values[field.name] = (each(), each()) if isinstance(field.type, Array) else each()
    return cls(**values)


KEYS = {
    *("name", "topic", "topic_name", "topic_id", "partition", "index", "partition_index", "partition_id", "feature"),
    *("group_id", "member_id", "producer_id", "transactional_id", "resource_name", "id"),
}


def keys(struct: Struct, version: int) -> list[Any]:
    """What the elements with an error, or with elements that have one, are about, in their order."""
    found: list[Any] = []
    for field in struct.FIELDS:
        if not field.versions[0] <= version <= field.versions[1] or not isinstance(field.type, Array):
            continue
        for each in getattr(struct, field.name) or ():
            if isinstance(each, Struct):
                found += [
                    getattr(each, name.name) for name in each.FIELDS if name.name in KEYS and present(name, version)
                ]
                found += keys(each, version)
    return found


def present(field: Field, version: int) -> bool:
    return field.versions[0] <= version <= field.versions[1]


def leaves(struct: Struct, version: int) -> set[Any]:
    """All names and numbers that a request has."""
    found: set[Any] = set()
    for field in struct.FIELDS:
        value = getattr(struct, field.name)
        for each in value if isinstance(value, tuple) else (value,):
            found |= leaves(each, version) if isinstance(each, Struct) else {each} if present(field, version) else set()
    return found


@pytest.mark.parametrize("api", CHANGING, ids=lambda api: api.name)
def test_a_refusal_answers_for_everything_that_was_asked(api: ApiKey) -> None:
    first, last = request_class(api).VERSIONS
    for version in range(first, last + 1):
        request = asked(request_class(api), itertools.count(1))
        answer = refusal(memoryview(encode_request(request, version, 77, "app")[4:]), CODE, "why")
        assert answer is not None
        assert correlation_id_of(answer[4:]) == 77
        message = decode_response(api, version, answer[4:])
        found = codes(message, version)
        assert set(found) == {CODE}
        about = [each for each in keys(message, version) if each != ZERO_UUID]
        assert len(set(about)) == len(about), "nothing twice"
        assert set(about) <= leaves(request, version)
        assert len(about) == OTHERS.get((api, version), ELEMENTS.get(api, 0)), about


ELEMENTS = {
    # two topics of two partitions each, and their two names
    ApiKey.PRODUCE: 6,
    ApiKey.OFFSET_COMMIT: 6,
    ApiKey.TXN_OFFSET_COMMIT: 6,
    ApiKey.OFFSET_DELETE: 6,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 12,  # of two directories
    ApiKey.DELETE_RECORDS: 6,
    ApiKey.ELECT_LEADERS: 6,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 6,
    ApiKey.ALTER_PARTITION: 6,
    ApiKey.VOTE: 6,
    ApiKey.BEGIN_QUORUM_EPOCH: 6,
    ApiKey.END_QUORUM_EPOCH: 6,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: 6,
    ApiKey.READ_SHARE_GROUP_STATE: 6,
    ApiKey.WRITE_SHARE_GROUP_STATE: 6,
    ApiKey.DELETE_SHARE_GROUP_STATE: 6,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: 6,
    # two of something, with that in each
    ApiKey.ADD_PARTITIONS_TO_TXN: 14,
    ApiKey.WRITE_TXN_MARKERS: 14,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: 14,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: 14,
    # two of something
    ApiKey.CREATE_TOPICS: 2,
    ApiKey.DELETE_TOPICS: 2,
    ApiKey.CREATE_PARTITIONS: 2,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.ALTER_CONFIGS: 2,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 2,
    ApiKey.UPDATE_FEATURES: 2,
    ApiKey.SHARE_GROUP_DESCRIBE: 2,
    ApiKey.STREAMS_GROUP_DESCRIBE: 2,
}
OTHERS = {
    **{(ApiKey.ADD_PARTITIONS_TO_TXN, version): 6 for version in range(4)},  # of one transaction
    (ApiKey.DELETE_TOPICS, 6): 4,  # names and ids
    (ApiKey.UPDATE_FEATURES, 2): 0,  # all or nothing
}


def test_what_kafka_does_with_an_error() -> None:
    refused = error_fault(ApiKey.PRODUCE, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert refused.refuses
    assert str(refused.once()).endswith(": PRODUCE is refused with NOT_ENOUGH_REPLICAS, once")
    for error in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
        assert not error_fault(ApiKey.PRODUCE, error).refuses
        assert error_fault(ApiKey.PRODUCE, error, after=False).refuses
    assert not error_fault(ApiKey.PRODUCE, ErrorCode.NOT_ENOUGH_REPLICAS, after=True).refuses
    assert not error_fault(ApiKey.HEARTBEAT, ErrorCode.REBALANCE_IN_PROGRESS).refuses, "the session goes on"
    assert error_fault(ApiKey.OFFSET_COMMIT, ErrorCode.REBALANCE_IN_PROGRESS).refuses
    read = error_fault(ApiKey.FETCH, ErrorCode.KAFKA_STORAGE_ERROR, after=False)
    assert not read.refuses
    assert str(read.once()).endswith(": FETCH is answered with KAFKA_STORAGE_ERROR, once")


def test_what_cannot_be_decoded_is_left_alone() -> None:
    assert refusal(memoryview(b"\0\0\0\x09\0\0\0\1\xff\xffnonsense"), CODE, "why") is None
    assert stamped(ApiKey.PRODUCE, 9, b"\0\0\0\1nonsense", CODE, "why") is None
    assert stamped(ApiKey.PRODUCE, 99, b"\0\0\0\1", CODE, "why") is None


def test_frames_are_found_in_chunks_however_they_lie() -> None:
    def frame(text: bytes) -> bytes:
        return len(text).to_bytes(4, "big") + text

    one, two, three = frame(b"one!"), frame(b"second"), frame(b"third frame")
    for chunks in ([one + two + three], [one, two, three], [one[:6], one[6:] + two, three[:9], three[9:]]):
        found = [b"".join(map(bytes, each)) for each in _frames(chunks)]  # type: ignore[arg-type]
        assert found == [one, two, three]


def test_rules_are_in_the_file_of_faults(tmp_path: Path) -> None:
    rules = FaultSet().also_request(RequestFault("error", 0, error_code=19).times(3))
    rules = rules.also_request(RequestFault("blackhole", client_id="app").with_probability(0.25))
    save(tmp_path, rules)
    found = load(tmp_path)
    assert found is not None
    assert found.requests == rules.requests
    assert [rule.rule_id for rule in found.requests] == [1, 2]
    assert rules.without_request(1).requests == rules.requests[1:]
    assert rules.without([1]).requests == rules.requests
    assert rules.without().requests == ()


def test_counts_are_shared(tmp_path: Path) -> None:
    rule = RequestFault("error", 0, rule_id=4).on_call(2)
    assert not request_counts.call(tmp_path, 4, lambda number: True), "a rule that is gone hits nothing"
    request_counts.create(tmp_path, 4)
    assert [request_counts.call(tmp_path, 4, lambda number: rule.hits_call(number, 0.0)) for _ in range(3)] == [
        False,
        True,
        False,
    ]
    assert request_counts.read(tmp_path, 4) == (3, 1)
    request_counts.forget_all(tmp_path)
    assert request_counts.read(tmp_path, 4) == (0, 0)


def test_whose_requests_a_rule_is_about() -> None:
    rule = RequestFault("error", ApiKey.FETCH)
    assert rule.concerns(ApiKey.FETCH, "app")
    assert not rule.concerns(ApiKey.PRODUCE, "app")
    for own in ("broker-1-fetcher", "raft-3", "controller-1-to-broker-2", "tanist"):
        assert not rule.concerns(ApiKey.FETCH, own)
        assert RequestFault("error", ApiKey.FETCH, nodes=True).concerns(ApiKey.FETCH, own)
    assert not RequestFault("error", ApiKey.FETCH, client_id="shop").concerns(ApiKey.FETCH, "app")


def test_names() -> None:
    assert api_key_of("end_txn") == api_key_of("EndTxn") == api_key_of("END_TXN") == ApiKey.END_TXN
    assert error_code_of("not-leader-or-follower") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(UnknownName, match="did you mean FETCH"):
        api_key_of("FETSH")
    with pytest.raises(UnknownName, match="names are Kafka's"):
        error_code_of("qqqq")
