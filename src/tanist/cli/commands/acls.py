"""`tanist acls`: who may do what, as `kafka-acls.sh`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.alerts import warn_of_age
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.tree import Group
from tanist.client.acls import AclEntry, AclFilter
from tanist.runtime.client.acls import create_acls, delete_acls, describe_acls
from tanist.runtime.client.client import Address
from tanist.runtime.client.quorum import metadata_age_ms
from tanist.text import counted
from tanist.wire.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, AclPermission, PatternType, ResourceType

F = TypeVar("F", bound=Callable[..., Any])

_OPERATIONS = {_each.name.replace("_", ""): _each for _each in AclOperation if _each > AclOperation.ANY}
"""As Kafka's tools write them, without regard to case and underscores."""
_PRODUCE = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_CONSUME = (AclOperation.READ, AclOperation.DESCRIBE)


def _operation(value: str) -> AclOperation:
    found = _OPERATIONS.get(value.replace("_", "").replace("-", "").upper())
    if found is None:
        known = ", ".join(each.name for each in _OPERATIONS.values())
        raise click.BadParameter(f"{value!r} is no operation; there are {known}")
    return found


def _principal(value: str) -> str:
    kind, colon, name = value.partition(":")
    if not kind or not colon or not name:
        raise click.BadParameter(f"{value!r} is no principal; write User:{value or 'NAME'}")
    return value


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The entries that the options name."""

    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    hosts: tuple[str, ...]
    operations: tuple[AclOperation, ...]
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    cluster: bool
    pattern: PatternType
    producer: bool
    consumer: bool

    def entries(self) -> list[AclEntry]:
        """Each once, in order. `UsageError` where the options do not say enough."""
        if not self.allowed and not self.denied:
            raise click.UsageError("name somebody by --allow-principal or --deny-principal")
        if not (self.topics or self.groups or self.transactional_ids or self.cluster):
            raise click.UsageError("name a resource by --topic, --group, --transactional-id or --cluster")
        if self.consumer and not (self.topics and self.groups):
            raise click.UsageError("--consumer needs a --topic and a --group")
        if self.producer and not self.topics:
            raise click.UsageError("--producer needs a --topic")
        if self.denied and (self.producer or self.consumer):
            raise click.UsageError("--producer and --consumer allow: leave out --deny-principal")
        found = {
            AclEntry(kind, name, pattern, principal, host, operation, permission)
            for kind, name, pattern, operation in self._wanted()
            for principals, permission in ((self.allowed, AclPermission.ALLOW), (self.denied, AclPermission.DENY))
            for principal in principals
            for host in self.hosts or ("*",)
        }
        return sorted(found)

    def _wanted(self) -> Iterable[tuple[ResourceType, str, PatternType, AclOperation]]:
        if self.producer:
            yield from self._each(ResourceType.TOPIC, self.topics, _PRODUCE)
            yield from self._each(
                ResourceType.TRANSACTIONAL_ID, self.transactional_ids, (AclOperation.WRITE, AclOperation.DESCRIBE)
            )
        if self.consumer:
            yield from self._each(ResourceType.TOPIC, self.topics, _CONSUME)
            yield from self._each(ResourceType.GROUP, self.groups, (AclOperation.READ,))
        if self.producer or self.consumer:
            return
        operations = self.operations or (AclOperation.ALL,)
        yield from self._each(ResourceType.TOPIC, self.topics, operations)
        yield from self._each(ResourceType.GROUP, self.groups, operations)
        yield from self._each(ResourceType.TRANSACTIONAL_ID, self.transactional_ids, operations)
        if self.cluster:
            for operation in _fitting(ResourceType.CLUSTER, operations):
                yield ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL, operation

    def _each(
        self, kind: ResourceType, names: Iterable[str], operations: Iterable[AclOperation]
    ) -> Iterable[tuple[ResourceType, str, PatternType, AclOperation]]:
        for name in names:
            for operation in _fitting(kind, operations):
                yield kind, name, self.pattern, operation


def _fitting(kind: ResourceType, operations: Iterable[AclOperation]) -> Iterable[AclOperation]:
    for operation in operations:
        if operation != AclOperation.ALL and operation not in SUPPORTED_OPERATIONS[kind]:
            known = ", ".join(each.name for each in SUPPORTED_OPERATIONS[kind])
            raise click.UsageError(f"{operation.name} is nothing that is done to a {kind.name}; that is {known} or ALL")
        yield operation


def _entry_options(command: F) -> F:
    for option in (
        click.option("--consumer", is_flag=True, help="What a consumer needs: of its topics and its group."),
        click.option("--producer", is_flag=True, help="What a producer needs: of its topics and transactional id."),
        click.option(
            "--resource-pattern-type",
            "pattern",
            type=click.Choice(["literal", "prefixed"], case_sensitive=False),
            default="literal",
            help="prefixed: all names that begin so.  [default: literal]",
        ),
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        click.option("--transactional-id", "transactional_ids", multiple=True, metavar="ID", help="Repeatable."),
        click.option("--group", "groups", multiple=True, metavar="NAME", help="A consumer group. Repeatable."),
        click.option("--topic", "topics", multiple=True, metavar="NAME", help="`*`: all topics. Repeatable."),
        click.option(
            "--operation",
            "operations",
            type=_operation,
            multiple=True,
            metavar="OPERATION",
            help="READ, WRITE, CREATE, DESCRIBE ... Repeatable.  [default: ALL]",
        ),
        click.option("--host", "hosts", multiple=True, metavar="ADDRESS", help="Only from there. Repeatable."),
        click.option("--deny-principal", "denied", type=_principal, multiple=True, metavar="User:NAME"),
        click.option(
            "--allow-principal",
            "allowed",
            type=_principal,
            multiple=True,
            metavar="User:NAME",
            help="Whom it is about; `User:*` is everybody. Repeatable.",
        ),
    ):
        command = option(command)
    return command


@click.group("acls", cls=Group)
def acls_command() -> None:
    """Show and change who may do what (access control lists).

    The cluster needs an authorizer: `tanist up --secure` makes one that has it.
    """


@acls_command.command("list")
@click.option("--principal", type=_principal, metavar="User:NAME", help="Only about this one.")
@click.option("--topic", metavar="NAME", help="Only those that stand for this topic.")
@click.option("--group", metavar="NAME", help="Only those that stand for this group.")
@client_options
@json_option
def list_command(
    principal: str | None,
    topic: str | None,
    group: str | None,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Show the entries."""
    if topic is not None and group is not None:
        raise click.UsageError("--topic and --group are two resources: name one")
    wanted = AclFilter(principal=principal)
    for kind, name in ((ResourceType.TOPIC, topic), (ResourceType.GROUP, group)):
        if name is not None:
            wanted = AclFilter(kind, name, PatternType.MATCH, principal)
    with connect(bootstrap, folder) as client:
        warn_of_age(metadata_age_ms(client), as_json)
        found = describe_acls(client, wanted)
    if as_json:
        print_json([_json(each) for each in found])
    elif not found:
        click.echo("there are no such entries: `tanist acls add` makes one")
    else:
        print_table(("RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"), _rows(found))


@acls_command.command("add")
@_entry_options
@client_options
@json_option
def add_command(bootstrap: list[Address] | None, folder: Path, as_json: bool, **options: Any) -> None:
    """Allow or deny operations on resources.

    `tanist acls add --allow-principal User:alice --producer --topic orders` lets alice write to orders. A denial wins
    over all that allows.
    """
    entries = _chosen(options).entries()
    with connect(bootstrap, folder) as client:
        create_acls(client, entries)
    _report("added", entries, as_json)


@acls_command.command("remove")
@_entry_options
@client_options
@json_option
def remove_command(bootstrap: list[Address] | None, folder: Path, as_json: bool, **options: Any) -> None:
    """Remove entries: the same options as those of `add` that made them."""
    entries = _chosen(options).entries()
    with connect(bootstrap, folder) as client:
        removed = delete_acls(client, entries)
    _report("removed", removed, as_json)


def _chosen(options: dict[str, Any]) -> _Chosen:
    return _Chosen(**{**options, "pattern": PatternType[options["pattern"].upper()]})


def _report(done: str, entries: list[AclEntry], as_json: bool) -> None:
    if as_json:
        print_json({done: [_json(each) for each in entries]})
        return
    click.echo(f"{done} {counted(len(entries), 'entry', 'entries')}")
    if entries:
        print_table(("RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"), _rows(entries))


def _rows(entries: Iterable[AclEntry]) -> list[tuple[str, ...]]:
    return [tuple(_json(each).values()) for each in entries]


def _json(entry: AclEntry) -> dict[str, str]:
    return {
        "resource_type": entry.resource_type.name,
        "resource_name": entry.name,
        "pattern_type": entry.pattern.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permission": entry.permission.name,
    }
