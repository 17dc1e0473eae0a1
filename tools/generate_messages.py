"""Write `src/tanist/wire/messages/`: one superset class per Kafka message, from the schemas that kio carries.

    python tools/generate_messages.py           write the files
    python tools/generate_messages.py --check   say which files differ from what would be written, and fail if any does

A development tool: it imports kio, which tanist itself does not need. kio has a class for each version of each message;
here the versions are merged. Three things are restored that kio changes on the way from Kafka's schemas: durations and
timestamps are plain ints again and get their `_ms` back, error codes are plain ints, and a zero uuid is not None.

Only messages that tanist uses are written: requests and responses of the APIs in `tanist.wire.apis.ApiKey`, and
`NOT_OF_AN_API`. To add an API, add its key there and run this tool.

`OVERRIDES` declares what KIP-966 and later versions of Kafka add to messages that kio knows. Messages that kio does not
know are written by hand, in the same style, in the same folder; this tool leaves them alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import re
import subprocess
import sys
import tempfile
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kio.schema.index import api_key_map, schema_name_map

from tanist.wire.apis import ApiKey

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "tanist" / "wire" / "messages"
BANNER = "Written by tools/generate_messages.py; do not edit."

WIRE_TYPES = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
PYTHON_TYPES = {
    "bool": "bool",
    "int8": "int",
    "int16": "int",
    "uint16": "int",
    "int32": "int",
    "int64": "int",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes | memoryview",
    "uuid": "UUID",
}
ZEROS: dict[str, object] = {"bool": False, "float64": 0.0, "string": "", "bytes": b"", "records": None}
RENAMED_MODULES = {"k_raft_version_record": "kraft_version_record"}
NOT_OF_AN_API = {
    "consumer_protocol_assignment",
    "consumer_protocol_subscription",
    "end_txn_marker",
    "k_raft_version_record",
    "leader_change_message",
    "request_header",
    "response_header",
    "snapshot_footer_record",
    "snapshot_header_record",
    "voters_record",
}
"""Messages beside requests and responses: headers, control records, and the blobs of the classic group protocol."""

# Nullable arrays whose default in Kafka's schemas is null; kio drops the default of an array.
NULL_BY_DEFAULT = {
    ("BrokerHeartbeatRequest", "cordoned_log_dirs"),
    ("ConsumerGroupHeartbeatRequest", "topic_partitions"),
    ("ListPartitionReassignmentsRequest", "topics"),
    ("Topology", "subtopologies"),
    ("StreamsGroupHeartbeatRequest", "active_tasks"),
    ("StreamsGroupHeartbeatRequest", "standby_tasks"),
    ("StreamsGroupHeartbeatRequest", "warmup_tasks"),
    ("StreamsGroupHeartbeatRequest", "client_tags"),
    ("StreamsGroupHeartbeatRequest", "task_offsets"),
    ("StreamsGroupHeartbeatRequest", "task_end_offsets"),
    ("StreamsGroupHeartbeatResponse", "active_tasks"),
    ("StreamsGroupHeartbeatResponse", "standby_tasks"),
    ("StreamsGroupHeartbeatResponse", "warmup_tasks"),
    ("StreamsGroupHeartbeatResponse", "partitions_by_user_endpoint"),
}

USED_KEYS = frozenset(int(key) for key in ApiKey)

Versions = tuple[int, int]


@dataclasses.dataclass
class FieldModel:
    """One field of the superset; the version sets grow as versions are merged in."""

    name: str
    wire_type: str
    """A primitive's name, or the name of a struct."""
    is_struct: bool
    is_array: bool
    default: object
    present: set[int] = dataclasses.field(default_factory=set)
    nullable: set[int] = dataclasses.field(default_factory=set)
    tagged: set[int] = dataclasses.field(default_factory=set)
    tag: int | None = None
    compact: bool = True


@dataclasses.dataclass
class StructModel:
    name: str
    fields: list[FieldModel] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class MessageModel:
    module: str
    root: str
    base: str
    """`Request`, `Response` or `Message`."""
    api_key: int | None
    structs: dict[str, StructModel] = dataclasses.field(default_factory=dict)
    versions: set[int] = dataclasses.field(default_factory=set)
    flexible: set[int] = dataclasses.field(default_factory=set)


ZERO = object()
"""Default of a field for which Kafka declares none."""


def merged_messages() -> Iterator[MessageModel]:
    keys = {name: key for key, name in api_key_map.items()}
    for name, versions in sorted(schema_name_map.items()):
        if name not in NOT_OF_AN_API and keys.get(name) not in USED_KEYS:
            continue
        kinds = sorted({kind for paths in versions.values() for kind in paths}, key=lambda kind: kind.name)
        for kind in kinds:
            module_name = RENAMED_MODULES.get(name, name)
            if kind.name in ("request", "response"):
                module_name = f"{name}_{kind.name}"
            message: MessageModel | None = None
            for version in sorted(versions, reverse=True):
                if kind not in versions[version]:
                    continue
                root = load(versions[version][kind])
                if message is None:
                    base = {"request": "Request", "response": "Response"}.get(kind.name, "Message")
                    message = MessageModel(
                        module=module_name,
                        root=root.__name__,
                        base=base,
                        api_key=keys[name] if base != "Message" else None,
                    )
                message.versions.add(version)
                if root.__flexible__:
                    message.flexible.add(version)
                merge_struct(message, root, root.__name__, version)
            assert message is not None
            for struct in message.structs.values():
                for model in struct.fields:
                    if (struct.name, model.name) in NULL_BY_DEFAULT and model.nullable:
                        model.default = None
            override = OVERRIDES.get(message.root)
            if override is not None:
                override(message)
            yield message


def load(path: str) -> typing.Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def merge_struct(message: MessageModel, kio_class: typing.Any, name: str, version: int) -> None:
    """Add one version of one struct (and of the structs in it) to the superset. Later versions come first."""
    struct = message.structs.get(name)
    if struct is None:
        struct = StructModel(name)
    position = 0
    for kio_field in dataclasses.fields(kio_class):
        found = field_model(message, kio_field, version)
        index = next((i for i, known in enumerate(struct.fields) if known.name == found.name), None)
        if index is None:
            struct.fields.insert(position, found)
            known = found
        else:
            position = index
            known = struct.fields[index]
            for attribute in ("wire_type", "is_struct", "is_array", "tag"):
                ours, theirs = getattr(known, attribute), getattr(found, attribute)
                if attribute == "tag" and None in (ours, theirs):
                    known.tag = ours if theirs is None else theirs
                elif ours != theirs:
                    raise SystemExit(f"{name}.{found.name}: {attribute} differs between versions: {ours}, {theirs}")
            if known.default is ZERO:
                known.default = found.default
        position += 1
        known.present.add(version)
        if found.nullable:
            known.nullable.add(version)
        if found.tagged:
            known.tagged.add(version)
    message.structs.setdefault(name, struct)


def field_model(message: MessageModel, kio_field: dataclasses.Field[typing.Any], version: int) -> FieldModel:
    kind, nullable = without_none(kio_field.type)
    is_array = typing.get_origin(kind) is tuple
    if is_array:
        kind = without_none(typing.get_args(kind)[0])[0]
    is_struct = dataclasses.is_dataclass(kind)
    name = kio_field.name.removesuffix("_")  # id_, type_
    if is_struct:
        wire_type = kind.__name__
        merge_struct(message, kind, wire_type, version)
    else:
        kio_type = kio_field.metadata["kafka_type"]
        wire_type = WIRE_TYPES.get(kio_type, kio_type)
        if kio_type.startswith(("timedelta", "datetime")):
            name += "_ms"
        if wire_type == "uuid" and not is_array:
            nullable = False
        if kio_type.startswith("datetime"):
            nullable = False  # kio reads -1 as None
    tag = kio_field.metadata.get("tag")
    return FieldModel(
        name=name,
        wire_type=wire_type,
        is_struct=is_struct,
        is_array=is_array,
        default=plain_default(kio_field),
        nullable={version} if nullable else set(),
        tag=tag,
        tagged={version} if tag is not None else set(),
        compact=not (message.root == "RequestHeader" and name == "client_id"),
    )


def without_none(kind: typing.Any) -> tuple[typing.Any, bool]:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        rest = [part for part in typing.get_args(kind) if part is not types.NoneType]
        if len(rest) != 1:
            raise SystemExit(f"what is {kind}?")
        return rest[0], True
    return kind, False


def plain_default(kio_field: dataclasses.Field[typing.Any]) -> object:
    default: typing.Any = kio_field.default
    if default is dataclasses.MISSING:
        return ZERO
    if default is None:
        kio_type = kio_field.metadata.get("kafka_type", "")
        if kio_type.startswith("datetime"):
            return -1
        return ZERO if kio_type == "uuid" else None
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        if default != type(default)():
            raise SystemExit(f"{kio_field.name}: a struct whose default differs from its fields' defaults")
        return ZERO
    if hasattr(default, "total_seconds"):
        return round(default.total_seconds() * 1000)
    if isinstance(default, uuid.UUID):
        return default
    if hasattr(default, "timestamp"):
        return round(default.timestamp() * 1000)
    if hasattr(default, "value"):
        return int(default.value)
    for plain in (bool, int, float, str):
        if isinstance(default, plain):
            return plain(default)
    if default == ():
        return ()
    raise SystemExit(f"{kio_field.name}: default {default!r}")


def add_field(message: MessageModel, struct: str, after: str, model: FieldModel) -> None:
    fields = message.structs[struct].fields
    position = next(i for i, known in enumerate(fields) if known.name == after)
    fields.insert(position + 1, model)


def like_version(message: MessageModel, new: int, old: int) -> None:
    """Declare version `new` with the fields of `old`."""
    message.versions.add(new)
    if old in message.flexible:
        message.flexible.add(new)
    for struct in message.structs.values():
        for known in struct.fields:
            for versions in (known.present, known.nullable, known.tagged):
                if old in versions:
                    versions.add(new)


def designated_election(message: MessageModel) -> None:
    """KIP-966: version 3 names the desired leader of each partition, by index, beside `partitions`."""
    like_version(message, 3, 2)
    desired = FieldModel("desired_leaders", "int32", False, True, None, present={3}, nullable={3})
    add_field(message, "TopicPartitions", "partitions", desired)


def meant_node(message: MessageModel) -> None:
    """KIP-1242, of Kafka 4.4: version 5 names the cluster and the node that the client means."""
    like_version(message, 5, 4)
    cluster = FieldModel("cluster_id", "string", False, False, None, present={5}, nullable={5})
    add_field(message, message.root, "client_software_version", cluster)
    add_field(message, message.root, "cluster_id", FieldModel("node_id", "int32", False, False, -1, present={5}))


def cause_of_refusal(message: MessageModel) -> None:
    """Of Kafka 4.4: version 3 has the message of an error."""
    like_version(message, 3, 2)
    text = FieldModel("error_message", "string", False, False, None, present={3}, nullable={3})
    add_field(message, "DeletableGroupResult", "error_code", text)


def topic_by_id(message: MessageModel) -> None:
    """KIP-1319, of Kafka 4.4: since version 6 a topic goes by its id."""
    like_version(message, 6, 5)
    topic = f"{message.root}Topic"
    (name,) = (field for field in message.structs[topic].fields if field.name == "name")
    name.present.discard(6)
    add_field(message, topic, "name", FieldModel("topic_id", "uuid", False, False, ZERO, present={6}))


def lasting_loss(message: MessageModel) -> None:
    """Ours, in a tag that Kafka's clients pass over: the last leader epoch that began with an unclean election."""
    model = FieldModel("last_unclean_epoch", "int32", False, False, -1, present={0}, tagged={0}, tag=966)
    add_field(message, "DescribeTopicPartitionsResponsePartition", "offline_replicas", model)


def state_of_broker(message: MessageModel) -> None:
    """Ours, in a tag likewise: how old a broker's metadata is that hears from no active controller."""
    every = {0, 1, 2}
    age = FieldModel("metadata_age_ms", "int64", False, False, -1, present=set(every), tagged=set(every), tag=966)
    add_field(message, "DescribeClusterResponse", "cluster_authorized_operations", age)


def version_of_client(message: MessageModel) -> None:
    """Ours, in a tag likewise: by which `transaction.version` the client of a transactional id acts."""
    model = FieldModel("client_transaction_version", "int16", False, False, -1, present={0}, tagged={0}, tag=966)
    add_field(message, "TransactionState", "topics", model)


def offset_of_change(message: MessageModel) -> None:
    """Ours, in a tag likewise: up to where the metadata log was committed when the controller answered."""
    model = FieldModel("committed_offset", "int64", False, False, -1, present={0}, tagged={0}, tag=966)
    add_field(message, "EnvelopeResponse", "error_code", model)


def struct_of(message: MessageModel, name: str, *fields: FieldModel) -> None:
    """Declare a struct that a later version brings."""
    message.structs[name] = StructModel(name, list(fields))


def recovery_lag(message: MessageModel) -> None:
    """KIP-1331, of Kafka 4.4: version 1 asks for a description of the topology, and has the lag as an int64."""
    like_version(message, 1, 0)
    fields = message.structs[message.root].fields
    (legacy,) = (field for field in fields if field.name == "acceptable_recovery_lag")
    legacy.name = "acceptable_recovery_lag_legacy"
    legacy.present.discard(1)
    lag = FieldModel("acceptable_recovery_lag", "int64", False, False, -1, present={1})
    add_field(message, message.root, "task_offset_interval_ms", lag)
    wanted = FieldModel("topology_description_required", "bool", False, False, False, present={1})
    add_field(message, message.root, "warmup_tasks", wanted)


def asks_for_topology(message: MessageModel) -> None:
    """KIP-1331, of Kafka 4.4: version 1 may ask for the description of the topology."""
    like_version(message, 1, 0)
    asked = FieldModel("include_topology_description", "bool", False, False, False, present={1})
    add_field(message, message.root, "include_authorized_operations", asked)


def described_topology(message: MessageModel) -> None:
    """KIP-1331 and KIP-1357, of Kafka 4.4: version 1 has the description of the topology, and the assignor."""
    like_version(message, 1, 0)

    def field(name: str, kind: str, *, array: bool = False, nullable: bool = False, struct: bool = False) -> FieldModel:
        versions = {1} if nullable else set()
        default = None if nullable else ZERO
        return FieldModel(name, kind, struct, array, default, present={1}, nullable=versions)

    node, subtopology = "TopologyDescriptionNode", "TopologyDescriptionSubtopology"
    struct_of(
        message,
        node,
        field("name", "string"),
        field("node_type", "int8"),
        field("source_topics", "string", array=True),
        field("sink_topic", "string", nullable=True),
        field("stores", "string", array=True),
        field("successors", "string", array=True),
    )
    struct_of(message, subtopology, field("subtopology_id", "string"), field("nodes", node, array=True, struct=True))
    store = "TopologyDescriptionGlobalStore"
    struct_of(message, store, field("source", node, struct=True), field("processor", node, struct=True))
    struct_of(
        message,
        "TopologyDescription",
        field("subtopologies", subtopology, array=True, struct=True),
        field("global_stores", store, array=True, struct=True),
    )
    group = "DescribedGroup"
    described = field("topology_description", "TopologyDescription", nullable=True, struct=True)
    add_field(message, group, "authorized_operations", described)
    add_field(message, group, "topology_description", field("topology_description_status", "int8"))
    add_field(message, group, "topology_description_status", field("assignor_name", "string", nullable=True))


OVERRIDES: dict[str, Callable[[MessageModel], None]] = {
    "ApiVersionsRequest": meant_node,
    "ApiVersionsResponse": lambda message: like_version(message, 5, 4),
    "DeleteGroupsRequest": lambda message: like_version(message, 3, 2),
    "DeleteGroupsResponse": cause_of_refusal,
    "DescribeClusterResponse": state_of_broker,
    "DescribeTopicPartitionsResponse": lasting_loss,
    "DescribeTransactionsResponse": version_of_client,
    "ElectLeadersRequest": designated_election,
    "ElectLeadersResponse": lambda message: like_version(message, 3, 2),
    "EnvelopeResponse": offset_of_change,
    "StreamsGroupDescribeRequest": asks_for_topology,
    "StreamsGroupDescribeResponse": described_topology,
    "StreamsGroupHeartbeatRequest": lambda message: like_version(message, 1, 0),
    "StreamsGroupHeartbeatResponse": recovery_lag,
    "TxnOffsetCommitRequest": topic_by_id,
    "TxnOffsetCommitResponse": topic_by_id,
}


def span(versions: Iterable[int], what: str) -> Versions:
    ordered = sorted(versions)
    if ordered != list(range(ordered[0], ordered[-1] + 1)):
        raise SystemExit(f"{what}: versions {ordered} have a gap")
    return ordered[0], ordered[-1]


def source(message: MessageModel) -> str:
    body = "\n\n\n".join(struct_source(message, struct) for struct in in_order_of_use(message))
    schema_names = ["Field", message.base]
    if "= own(" in body:
        schema_names.append("own")
    if "Array(" in body:
        schema_names.append("Array")
    if re.search(r"\(Struct\)", body):
        schema_names.append("Struct")
    if "ZERO_UUID" in body:
        schema_names.append("ZERO_UUID")
    first, last = span(message.versions, message.root)
    about = f"API key {message.api_key}, " if message.api_key is not None else ""
    plural = f"versions {first} to {last}" if first != last else f"version {first}"
    lines = [f'"""{message.root}: {about}{plural}.\n\n{BANNER}\n"""', "", "from __future__ import annotations", ""]
    lines.append("from typing import ClassVar")
    if re.search(r"\bUUID\b", body):
        lines.append("from uuid import UUID")
    lines += ["", f"from tanist.wire.schema import {', '.join(schema_names)}", "", "", body, ""]
    return "\n".join(lines)


def in_order_of_use(message: MessageModel) -> list[StructModel]:
    """The structs, each after those that it uses."""
    ordered: dict[str, StructModel] = {}

    def visit(name: str) -> None:
        struct = message.structs[name]
        for model in struct.fields:
            if model.is_struct:
                visit(model.wire_type)
        ordered.setdefault(name, struct)

    visit(message.root)
    return list(ordered.values())


def struct_source(message: MessageModel, struct: StructModel) -> str:
    is_root = struct.name == message.root
    lines = [f"class {struct.name}({message.base if is_root else 'Struct'}):"]
    for model in struct.fields:
        lines.append(f"    {model.name}: {annotation(model)} = {default_source(model)}")
    if struct.fields:
        lines.append("")
    if is_root:
        if message.api_key is not None:
            lines.append(f"    API_KEY: ClassVar[int] = {message.api_key}")
        lines.append(f"    VERSIONS: ClassVar[tuple[int, int]] = {span(message.versions, message.root)}")
        flexible_from = min(message.flexible, default=None)
        lines.append(f"    FLEXIBLE_FROM: ClassVar[int | None] = {flexible_from}")
    lines.append("    FIELDS: ClassVar[tuple[Field, ...]] = (")
    lines += [f"        {field_source(struct, model)}," for model in struct.fields]
    lines.append("    )")
    return "\n".join(lines)


def annotation(model: FieldModel) -> str:
    plain = model.wire_type if model.is_struct else PYTHON_TYPES[model.wire_type]
    if model.is_array:
        plain = f"tuple[{plain}, ...]"
    return f"{plain} | None" if model.nullable or model.default is None or model.wire_type == "records" else plain


def default_source(model: FieldModel) -> str:
    if model.default is not ZERO:
        return repr(model.default)
    if model.is_array:
        return "()"
    if model.is_struct:
        return f"own({model.wire_type})"
    if model.wire_type == "uuid":
        return "ZERO_UUID"
    return repr(ZEROS.get(model.wire_type, 0))


def field_source(struct: StructModel, model: FieldModel) -> str:
    what = f"{struct.name}.{model.name}"
    wire_type = model.wire_type if model.is_struct else f'"{model.wire_type}"'
    if model.is_array:
        wire_type = f"Array({wire_type})"
    parts = [f'"{model.name}"', wire_type, repr(span(model.present, what))]
    if model.nullable:
        parts.append(f"nullable={span(model.nullable, what)}")
    if model.tag is not None:
        parts.append(f"tag={model.tag}, tagged={span(model.tagged, what)}")
    if not model.compact:
        parts.append("compact=False")
    return f"Field({', '.join(parts)})"


def write(folder: Path) -> None:
    """Write every message's module into `folder`, formatted as the project formats its code."""
    for message in merged_messages():
        (folder / f"{message.module}.py").write_text(source(message))
    config = ["--config", str(ROOT / "pyproject.toml")]
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "--quiet", "--fix", "--select", "I", *config, str(folder)], check=True)
    subprocess.run([*ruff, "format", "--quiet", *config, str(folder)], check=True)


def differences(folder: Path, fresh_folder: Path) -> list[str]:
    """Names of the modules in `folder` that are not what this tool wrote into the other: changed, missing, surplus."""
    fresh = {path.name: path.read_text() for path in fresh_folder.glob("*.py")}
    present = {path.name: path.read_text() for path in folder.glob("*.py")}
    ours = {name for name, text in present.items() if BANNER in text}
    return sorted(name for name in ours | fresh.keys() if present.get(name) != fresh.get(name))


def main() -> int:
    parser = argparse.ArgumentParser(description="Write tanist's message modules from kio's schemas.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not up to date")
    check_only = parser.parse_args().check
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch))
        stale = differences(TARGET, Path(scratch))
        for name in stale:
            print(f"differs: {name}")
            if not check_only:
                (TARGET / name).unlink(missing_ok=True)
                if (Path(scratch) / name).exists():
                    (TARGET / name).write_text((Path(scratch) / name).read_text())
    return 1 if stale and check_only else 0


if __name__ == "__main__":
    sys.exit(main())
