"""The field tables against the schemas in Apache Kafka's own jars: names, types, versions, null, tags, defaults, order.

kio carries Kafka 4.2; this says whether later versions are the same, and whether what kio changes on the way was
restored. The jars are those that the interop tests fetch; without them there is nothing to compare with.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import typing
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from tanist.wire import metadata
from tanist.wire.apis import ApiKey
from tanist.wire.schema import ZERO_UUID, ApiMessage, Array, Message, MetadataRecord, Struct
from tests.interop import apache

pytestmark = pytest.mark.interop

ZEROS: dict[str, Any] = {"bool": False, "string": "", "bytes": b"", "records": None, "uuid": ZERO_UUID, "float64": 0.0}

OURS = {
    # KIP-966 adds a version.
    ("ElectLeadersRequest", "versions"),
    ("ElectLeadersResponse", "versions"),
    ("ElectLeadersRequest.TopicPartitions", "desired_leaders"),
    # Tagged fields of our own, which others skip: the epoch that last began with an unclean election.
    ("DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition", "last_unclean_epoch"),
    ("DescribeClusterResponse", "metadata_age_ms"),
    # By which transaction.version the client acts: a broker must know it to end a transaction without its coordinator.
    ("DescribeTransactionsResponse.TransactionState", "client_transaction_version"),
    ("PartitionRecord", "last_unclean_epoch"),
    # Up to where the metadata log is committed: a broker that has forwarded a change answers when it has as much.
    ("EnvelopeResponse", "committed_offset"),
}
ALWAYS_PRESENT = {
    # These structs stand in newer versions only, so that it makes no difference when their fields begin or end.
    "FetchResponse.SnapshotId",
    "UpdateFeaturesResponse.UpdatableFeatureResult",
}

KEYS = frozenset(int(key) for key in ApiKey)
NOT_GENERATED = {"ControlRecordTypeSchema", "DefaultPrincipalData", "AbortedTxn"}
RENAMED = {("TxnOffsetCommitRequest", "generation_id_or_member_epoch"): "generation_id"}
"""Fields that a later version of Apache Kafka calls by another name than kio."""
if apache.VERSION == "4.3.1":  # 4.4 has a field of another size under this name
    RENAMED["StreamsGroupHeartbeatResponse", "acceptable_recovery_lag"] = "acceptable_recovery_lag_legacy"
LATER = {
    "4.3.1": {
        "ApiVersionsRequest",
        "ApiVersionsResponse",
        "DeleteGroupsRequest",
        "DeleteGroupsResponse",
        "StreamsGroupDescribeRequest",
        "StreamsGroupDescribeResponse",
        "StreamsGroupHeartbeatRequest",
        "StreamsGroupHeartbeatResponse",
        "TxnOffsetCommitRequest",
        "TxnOffsetCommitResponse",
    }
}
"""By version of Apache Kafka: the messages of which a later one, and we, have more versions."""

Range = tuple[int, int]


def schemas(jar: str, folder: str) -> Iterator[dict[str, Any]]:
    found = apache.jar_folder() / f"{jar}-{apache.VERSION}.jar"
    if not found.exists():
        pytest.skip(f"no {found}; the interop tests fetch it")
    with zipfile.ZipFile(found) as archive:
        for name in archive.namelist():
            if name.startswith(folder) and name.endswith(".json"):
                text = archive.read(name).decode()
                text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
                yield json.loads(re.sub(r"//[^\"\n]*$", "", text, flags=re.MULTILINE))


def snake(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def span(text: str | None, last: int) -> Range | None:
    if text is None or text == "none":
        return None
    if text.endswith("+"):
        return int(text[:-1]), last
    first, _, end = text.partition("-")
    return int(first), int(end or first)


def cut(versions: Range | None, within: Range | None) -> Range | None:
    if versions is None or within is None:
        return None
    first, last = max(versions[0], within[0]), min(versions[1], within[1])
    return (first, last) if first <= last else None


def message_class(schema: dict[str, Any]) -> type[Message] | None:
    name = schema["name"]
    if schema["type"] == "metadata":
        found: type[Message] = getattr(metadata, name)
        return found
    if schema["validVersions"] == "none" or name in NOT_GENERATED or schema.get("apiKey", 0) not in KEYS:
        return None
    module = importlib.import_module(f"tanist.wire.messages.{snake(name).replace('k_raft', 'kraft')}")
    return typing.cast(type[Message], getattr(module, name))


def differences(schema: dict[str, Any]) -> Iterator[tuple[str, str, object, object]]:
    cls = message_class(schema)
    if cls is None:
        return
    versions = span(schema["validVersions"], 99)
    assert versions is not None
    has_more = versions[0] == cls.VERSIONS[0] and versions[1] < cls.VERSIONS[1]
    if has_more != (schema["name"] in LATER.get(apache.VERSION, ())) or not (has_more or versions == cls.VERSIONS):
        yield schema["name"], "versions", cls.VERSIONS, versions
    flexible = cut(span(schema["flexibleVersions"], versions[1]), versions)
    if (flexible and flexible[0]) != cls.FLEXIBLE_FROM:
        yield schema["name"], "flexible", cls.FLEXIBLE_FROM, flexible
    if issubclass(cls, ApiMessage) and schema["apiKey"] != cls.API_KEY:
        yield schema["name"], "key", cls.API_KEY, schema["apiKey"]
    if issubclass(cls, MetadataRecord) and schema["apiKey"] != cls.RECORD_KEY:
        yield schema["name"], "key", cls.RECORD_KEY, schema["apiKey"]
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    yield from field_differences(cls, schema["fields"], common, versions, schema["name"])


def field_differences(
    cls: type[Struct], fields: list[dict[str, Any]], common: dict[str, Any], versions: Range, path: str
) -> Iterator[tuple[str, str, object, object]]:
    tables = {field.name: field for field in cls.FIELDS}
    plain = cls()
    defaults = {declared.name: getattr(plain, declared.name) for declared in dataclasses.fields(cls)}
    order = []
    for field in fields:
        name = snake(field["name"])
        name = RENAMED.get((path, name), name)
        present = cut(span(field["versions"], versions[1]), versions)
        if present is None:
            continue
        ours = tables.pop(name, None)
        if ours is None:
            yield path, name, "missing", present
            continue
        order.append(name)
        is_array = field["type"].startswith("[]")
        element = field["type"].removeprefix("[]")
        kind = ours.type.element if isinstance(ours.type, Array) else ours.type
        kind_name = kind if isinstance(kind, str) else kind.__name__
        if path not in ALWAYS_PRESENT:
            # An added last version, as KIP-966's, reaches as far as the field did.
            yield from unequal(path, name, cut(ours.versions, versions), present)
            nullable = cut(span(field.get("nullableVersions"), versions[1]), present)
            yield from unequal(path, f"{name} null", cut(ours.nullable, versions), nullable)
        tagged = cut(span(field.get("taggedVersions"), versions[1]), present)
        yield from unequal(path, f"{name} tagged", cut(ours.tagged, versions), tagged)
        yield from unequal(path, f"{name} tag", ours.tag, field["tag"] if tagged else None)
        yield from unequal(path, f"{name} type", (isinstance(ours.type, Array), kind_name), (is_array, element))
        yield from unequal(path, f"{name} default", defaults[name], default_of(field, is_array, element, kind))
        if not isinstance(kind, str):
            yield from field_differences(
                kind, field.get("fields") or common[element], common, versions, f"{path.split('.')[0]}.{element}"
            )
    for name, table in tables.items():
        if cut(table.versions, versions) is not None:
            yield path, name, "ours alone", None
    yield from unequal(path, "order", order, wire_order(order, cls))


def unequal(path: str, what: str, ours: object, theirs: object) -> Iterator[tuple[str, str, object, object]]:
    if ours != theirs:
        yield path, what, ours, theirs


def wire_order(order: list[str], cls: type[Struct]) -> list[str]:
    """Our order, or Apache's if the two differ only between fields that no version has both of."""
    ours = [field.name for field in cls.FIELDS if field.name in order]
    versions = {field.name: field.versions for field in cls.FIELDS}
    for i, first in enumerate(ours):
        for second in ours[i + 1 :]:
            if order.index(first) > order.index(second) and cut(versions[first], versions[second]) is not None:
                return ours
    return order


def default_of(field: dict[str, Any], is_array: bool, element: str, kind: Any) -> object:
    default = field.get("default")
    if default == "null":
        return None
    if default is None:
        return () if is_array else ZEROS.get(element, 0) if isinstance(kind, str) else kind()
    if element == "bool":
        return default in (True, "true")
    return default if element == "string" else int(str(default), 0)


@pytest.mark.parametrize(
    ("jar", "folder", "least"),
    [("kafka-clients", "common/message/", 120), ("kafka-metadata", "common/metadata/", 26)],
)
def test_field_tables_are_apaches(jar: str, folder: str, least: int) -> None:
    compared = 0
    found = []
    for schema in schemas(jar, folder):
        compared += message_class(schema) is not None
        found += [each for each in differences(schema) if each[:2] not in OURS]
    assert found == []
    assert compared >= least


def test_a_difference_would_be_noticed() -> None:
    changed = 0
    for schema in schemas("kafka-clients", "common/message/"):
        if schema["name"] == "VoteRequest":
            schema["fields"][0].update(name="ClusterName")
            schema["fields"][1].update(default="7")
            schema["fields"].reverse()
            changed += 1
            assert {what for _, what, _, _ in differences(schema)} == {
                "cluster_name", "cluster_id", "voter_id default", "order"
            }  # fmt: skip
    assert changed == 1
