"""`tanist groups`: consumer groups of any Kafka cluster, as `kafka-consumer-groups.sh` shows and moves them.

Owns the words and the tables. A reset says what it would do, and does it with --execute only, as Kafka's own does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.tree import Group
from tanist.client.positions import EARLIEST, LATEST
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client import groups as of_groups
from tanist.runtime.client.admin import describe_topics
from tanist.runtime.client.client import Address, Client, KafkaError
from tanist.runtime.client.groups import GroupDescription
from tanist.runtime.client.records import list_offset
from tanist.text import counted
from tanist.wire.errors import ErrorCode

_EXIT_FAILED = 1
_EMPTY = ("Empty", "Dead")


@click.group("groups", cls=Group)
def groups_command() -> None:
    """List, describe, reset and delete consumer groups."""


@groups_command.command("list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only groups in this state. Repeatable.")
@client_options
@json_option
def list_command(states: tuple[str, ...], bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """List all groups of the cluster."""
    wanted = {state.lower() for state in states}
    with connect(bootstrap, folder) as client:
        found = [each for each in of_groups.list_groups(client) if not wanted or each.state.lower() in wanted]
    if as_json:
        print_json(
            [
                {"group": each.group, "type": each.kind, "state": each.state, "protocol_type": each.protocol_type}
                for each in found
            ]
        )
        return
    if not found:
        click.echo("no groups")
        return
    print_table(("GROUP", "TYPE", "STATE"), [(each.group, each.kind or "?", each.state) for each in found])


@groups_command.command("describe")
@click.argument("group")
@client_options
@json_option
def describe_command(group: str, bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Show a group's members, their partitions, and their lag.

    COMMITTED is the group's committed offset, or a share group's start offset.
    LAG is the number of offsets from there to the log's end; of a share group
    without those that it is done with. A partition without END is not there any
    more.
    """
    with connect(bootstrap, folder) as client:
        described = of_groups.describe_group(client, group)
        lags: dict[TopicPartition, int | None] = {}
        if described.kind == of_groups.SHARE:
            shared = of_groups.share_offsets(client, group)
            committed = {place: start for place, (start, _) in shared.items()}
            lags = {place: lag for place, (_, lag) in shared.items()}
        else:
            committed = of_groups.committed_offsets(client, group)
        owners: dict[TopicPartition, list[str]] = {}
        for member in described.members:
            for place in member.assigned:
                owners.setdefault(place, []).append(member.member_id)
        places = sorted(committed.keys() | owners.keys())
        there = of_groups.existing(client, group, places)
        ends = {place: list_offset(client, *place, LATEST) if place in there else None for place in places}
    rows = []
    for place in places:
        offset, end, members_there = committed.get(place), ends[place], owners.get(place)
        lag = lags.get(place)
        if offset is None or end is None:
            lag = None
        elif lag is None:
            lag = end - offset
        rows.append((*place, offset, end, lag, None if members_there is None else ", ".join(members_there)))
    if as_json:
        print_json(_as_json(described, rows))
        return
    epoch = "" if described.epoch is None else f", epoch {described.epoch}"
    members = counted(len(described.members), "member")
    assignor = f", {described.assignor}" if described.assignor else ""
    click.echo(
        f"{group}: {described.state}, {described.kind} protocol{assignor}{epoch}, {members}, "
        f"coordinator {described.coordinator}"
    )
    if rows:
        print_table(("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"), rows)
    idle = [member for member in described.members if not member.assigned]
    for member in idle:
        click.echo(f"{member.member_id} at {member.host} has no partition")
    for member in described.members:
        if member.target is not None and set(member.target) != set(member.assigned):
            click.echo(f"{member.member_id} is moving to {_shown(member.target)}")


def _shown(places: tuple[TopicPartition, ...]) -> str:
    return ", ".join(f"{topic}-{index}" for topic, index in places) or "nothing"


def _as_json(described: GroupDescription, rows: Sequence[tuple[object, ...]]) -> dict[str, object]:
    names = ("topic", "partition", "committed", "end", "lag", "member")
    return {
        "group": described.group,
        "type": described.kind,
        "state": described.state,
        "assignor": described.assignor,
        "epoch": described.epoch,
        "coordinator": described.coordinator,
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "epoch": member.epoch,
                "assigned": [list(place) for place in member.assigned],
                "target": None if member.target is None else [list(place) for place in member.target],
            }
            for member in described.members
        ],
        "offsets": [dict(zip(names, row)) for row in rows],
    }


@groups_command.command("reset-offsets")
@click.argument("group")
@click.option(
    "--topic", "topics", multiple=True, metavar="NAME[:0,1,...]", help="The topic, or partitions of it. Repeatable."
)
@click.option("--all-topics", is_flag=True, help="All topics with committed offsets of the group.")
@click.option("--to-earliest", "earliest", is_flag=True, help="To the log's start.")
@click.option("--to-latest", "latest", is_flag=True, help="To the log's end.")
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="To this offset.")
@click.option("--shift-by", type=int, metavar="N", help="Forward by N offsets, or back by -N.")
@click.option(
    "--to-datetime",
    metavar="TIME",
    help="To the first record at or after this time, such as 2026-11-21T20:30:00 (UTC).",
)
@click.option("--execute", is_flag=True, help="Make the change. Without it, only show the change.")
@client_options
@json_option
def reset_command(
    group: str,
    topics: tuple[str, ...],
    all_topics: bool,
    earliest: bool,
    latest: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    execute: bool,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Change the committed offsets of a group without members.

    An offset outside the log becomes the log's start or end.
    """
    ways = [earliest, latest, to_offset is not None, shift_by is not None, to_datetime is not None]
    if sum(ways) != 1:
        raise click.UsageError("give one of --to-earliest, --to-latest, --to-offset, --shift-by, --to-datetime")
    if all_topics == bool(topics):
        raise click.UsageError("give --topic NAME[:0,1] or --all-topics")
    try:
        named = of_groups.split_places(topics)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--topic") from None
    since_ms = None if to_datetime is None else _milliseconds(to_datetime)
    with connect(bootstrap, folder) as client:
        _require_nobody(client, group)
        committed = of_groups.committed_offsets(client, group)
        if all_topics:
            places = sorted(of_groups.existing(client, group, committed))
            for topic, index in sorted(committed.keys() - set(places)):
                click.echo(f"{topic}-{index} is not there, and is left out", err=True)
        else:
            places = _named_places(client, named)
        if not places:
            raise click.ClickException(f"{group} has committed nothing; name the topics with --topic")
        target: dict[TopicPartition, int] = {}
        for place in places:
            first, end = list_offset(client, *place, EARLIEST), list_offset(client, *place, LATEST)
            if earliest or latest:
                wanted = first if earliest else end
            elif to_offset is not None:
                wanted = to_offset
            elif shift_by is not None:
                wanted = committed.get(place, end) + shift_by
            else:
                found = list_offset(client, *place, since_ms or 0)
                wanted = end if found < 0 else found
            target[place] = max(first, min(wanted, end))
        if execute:
            of_groups.commit_offsets(client, group, target)
    rows = [(*place, committed.get(place), target[place]) for place in places]
    if as_json:
        print_json(
            {
                "group": group,
                "executed": execute,
                "offsets": [dict(zip(("topic", "partition", "before", "after"), row)) for row in rows],
            }
        )
        return
    print_table(("TOPIC", "PARTITION", "BEFORE", "AFTER"), rows)
    if not execute:
        click.echo("nothing was changed: --execute makes the change")


def _require_nobody(client: Client, group: str) -> None:
    try:
        described = of_groups.describe_group(client, group)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return  # a group that begins with these offsets
    if described.state not in _EMPTY:
        raise click.ClickException(
            f"{group} is {described.state} and has {counted(len(described.members), 'member')}: stop them first, "
            "for members do not notice reset offsets"
        )


def _named_places(client: Client, named: list[tuple[str, tuple[int, ...] | None]]) -> list[TopicPartition]:
    places: set[TopicPartition] = set()
    for topic, indexes in named:
        (described,) = describe_topics(client, [topic])
        known = {each.partition for each in described.partitions}
        unknown = sorted(set(indexes or ()) - known)
        if unknown:
            raise click.ClickException(f"{topic} has no partition {unknown[0]}; it has 0 to {max(known)}")
        places |= {(topic, index) for index in (known if indexes is None else indexes)}
    return sorted(places)


def _milliseconds(text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no time like 2026-11-21T20:30:00", param_hint="--to-datetime") from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return int(when.timestamp() * 1000)


@groups_command.command("delete")
@click.argument("groups", nargs=-1, required=True)
@client_options
@json_option
@click.pass_context
def delete_command(
    ctx: click.Context, groups: tuple[str, ...], bootstrap: list[Address] | None, folder: Path, as_json: bool
) -> None:
    """Delete GROUPS without members, and their committed offsets."""
    with connect(bootstrap, folder) as client:
        results = of_groups.delete_groups(client, dict.fromkeys(groups))
    if as_json:
        print_json(
            [
                {"group": group, "deleted": not error, "error": ErrorCode.name_of(error) if error else None}
                for group, error in results.items()
            ]
        )
    else:
        for group, error in results.items():
            click.echo(_deleted(group, error), err=bool(error))
    if any(results.values()):
        ctx.exit(_EXIT_FAILED)


def _deleted(group: str, error: int) -> str:
    if not error:
        return f"deleted {group}"
    if error == ErrorCode.NON_EMPTY_GROUP:
        return f"Error: {group} has members: stop them first"
    if error == ErrorCode.GROUP_ID_NOT_FOUND:
        return f"Error: there is no group {group}"
    return f"Error: {group}: {ErrorCode.name_of(error)}"
