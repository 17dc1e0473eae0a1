"""`tanist reassign`: move partitions to other brokers of any Kafka cluster, or to other log directories of brokers, as
`kafka-reassign-partitions` does.

Its files are that tool's: what one writes the other reads.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tanist.cli.commands.reassign_file import assignment_text, read_assignment, read_log_dirs, read_topics
from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.tables import ids, print_json, print_table
from tanist.cli.tree import Group
from tanist.runtime.client import log_dirs, reassign
from tanist.runtime.client.client import Address, Client
from tanist.runtime.client.log_dirs import Placed, Replica
from tanist.runtime.client.reassign import Moving, Partition, Refusal
from tanist.runtime.client.reassign_plan import PlanError, plan
from tanist.text import counted
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC

EXIT_TIMEOUT = 3
_POLL_EVERY_S = 0.2
_ACCEPTED_S = 10.0
"""How long new replicas may take to be there."""


def _brokers(value: str) -> tuple[int, ...]:
    numbers = [each.strip() for each in value.split(",")]
    if not all(each.isdecimal() for each in numbers):
        raise click.BadParameter(f"{value!r} is not like 1,2,3")
    return tuple(dict.fromkeys(map(int, numbers)))


_file_argument = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.group("reassign", cls=Group)
def reassign_command() -> None:
    """Move partitions to other brokers or log directories.

    \b
    tanist reassign plan --topic orders --broker-list 2,3,4 > move.json
    tanist reassign apply move.json --save-current back.json --wait 600
    tanist reassign list
    """


@reassign_command.command("plan")
@click.option("--topic", "topics", multiple=True, help="Move this topic. Repeatable.")
@click.option(
    "--topics-to-move-json-file",
    "topics_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help='{"topics": [{"topic": "foo"}], "version": 1}',
)
@click.option("--all-topics", "everything", is_flag=True, help="All topics but internal ones.")
@click.option(
    "--broker-list", "brokers", type=_brokers, metavar="ID,...", help="Move to these brokers.  [default: all brokers]"
)
@click.option("--replication-factor", type=click.IntRange(1), help="Replicas of each partition.  [default: as now]")
@client_options
@json_option
def plan_command(
    topics: tuple[str, ...],
    topics_file: Path | None,
    everything: bool,
    brokers: tuple[int, ...] | None,
    replication_factor: int | None,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Print JSON for `apply` that spreads partitions over brokers.

    The plan moves as few replicas as it can: those on brokers outside --broker-list, and those of brokers with more
    than their share. It spreads replicas over racks. The command changes nothing.
    """
    if bool(topics) + everything + (topics_file is not None) != 1:
        raise click.UsageError("give one of --topic, --all-topics and --topics-to-move-json-file")
    with connect(bootstrap, folder) as client:
        named = None if everything else topics or read_topics(topics_file or Path())
        present = reassign.present_assignment(client, named)
        known = reassign.racks(client)
    if everything:
        present = {key: replicas for key, replicas in present.items() if key[0] != OFFSETS_TOPIC}
    if missing := [each for each in brokers or () if each not in known]:
        raise click.ClickException(f"there is no broker {ids(missing)} in the cluster: it has {ids(sorted(known))}")
    try:
        proposed = plan(present, {each: known[each] for each in brokers or sorted(known)}, replication_factor)
    except PlanError as error:
        raise click.ClickException(str(error)) from None
    click.echo(assignment_text(proposed))
    if not as_json:
        replicas = sum(len(set(proposed[key]) - set(present[key])) for key in proposed)
        changed = sum(proposed[key] != present[key] for key in proposed)
        click.echo(
            f"{counted(changed, 'partition')} of {len(proposed)} would change, {counted(replicas, 'replica')} move",
            err=True,
        )


@reassign_command.command("apply")
@_file_argument
@click.option(
    "--save-current",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the present assignment of these partitions, for a way back.",
)
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Return when all have moved; exit code 3 if they have not by then.",
)
@client_options
@json_option
def apply_command(
    file: Path,
    save_current: Path | None,
    wait_s: float | None,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Begin to move partitions as FILE says.

    FILE is the output of `plan` or of kafka-reassign-partitions --generate. The brokers copy in the background; a
    partition has moved when its new replicas are in sync. A new reassignment replaces one in progress.

    Where FILE has an absolute path in log_dirs, that replica goes to this log directory of its broker.
    """
    targets, directories = read_assignment(file), read_log_dirs(file)
    with connect(bootstrap, folder) as client:
        present = reassign.present_assignment(client, {topic for topic, _ in targets})
        if unknown := sorted(targets.keys() - present.keys()):
            topic, index = unknown[0]
            raise click.ClickException(f"{file}: there is no partition {topic}-{index}")
        if save_current is not None:
            now = {key: present[key] for key in targets}
            places = {each: place.path for each, place in _placed(client, directories).items()}
            save_current.write_text(assignment_text(now, places) + "\n", encoding="utf-8")
        if directories:
            log_dirs.move(client, directories)  # replicas that are not there yet are made in them
        refused = reassign.reassign(client, targets)
        begun = targets.keys() - {(each.topic, each.partition) for each in refused}
        directories = {each: path for each, path in directories.items() if each[:2] in begun}
        refused += _move_logs(client, directories)
        begun -= {(each.topic, each.partition) for each in refused}
        left = _wait(client, begun, directories, wait_s) if wait_s is not None else set()
    outcome = {"started": len(begun), "refused": _refusals_json(refused), "unfinished": len(left)}
    if as_json:
        print_json(outcome)
    else:
        _show_refusals(refused)
        if begun:
            what = counted(len(begun), "partition")
            text = f"{what} moved" if wait_s is not None else f"moving {what}; `tanist reassign list` shows how far"
            click.echo(f"{len(left)} of {what} {'has' if len(left) == 1 else 'have'} not moved yet" if left else text)
    if refused:
        raise click.exceptions.Exit(1)
    if left:
        raise click.exceptions.Exit(EXIT_TIMEOUT)


@reassign_command.command("cancel")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--all", "everything", is_flag=True, help="All in progress.")
@client_options
@json_option
def cancel_command(
    file: Path | None, everything: bool, bootstrap: list[Address] | None, folder: Path, as_json: bool
) -> None:
    """Cancel reassignments in progress.

    Cancels those of the partitions in FILE, or --all. The replicas being added are removed, and those being removed
    stay. Replicas on their way to another log directory stay where they are.
    """
    if (file is None) == (not everything):
        raise click.UsageError("give FILE or --all")
    with connect(bootstrap, folder) as client:
        partitions = None if file is None else read_assignment(file).keys()
        under_way = reassign.moving(client, partitions)
        places = log_dirs.placed(client, reassign.racks(client), partitions)
        stay = {each: place.path for each, place in places.items() if place.target is not None}
        refused = reassign.cancel(client, under_way.keys()) if under_way else []
        not_stayed = _move_logs(client, stay)
    done, stayed = len(under_way) - len(refused), len(stay) - len(not_stayed)
    refused += not_stayed
    if as_json:
        moves = {"log_dirs_cancelled": stayed} if stay else {}
        print_json({"cancelled": done, **moves, "refused": _refusals_json(refused)})
    else:
        _show_refusals(refused)
        what = [counted(done, "reassignment")] if under_way else []
        what += [f"{counted(stayed, 'move')} between log directories"] if stay else []
        click.echo(f"cancelled {' and '.join(what)}" if what else "nothing is under way")
    if refused:
        raise click.exceptions.Exit(1)


@reassign_command.command("list")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@client_options
@json_option
def list_command(file: Path | None, bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Show reassignments and their progress.

    With FILE, shows the state of each of its partitions: complete, moving, or other (its replicas are not those of the
    file, and are not moving there). COPIED compares the bytes of new replicas with the leader's; LOG DIRS shows
    replicas on their way to another log directory, those that FILE wants in one, and how much is copied.
    """
    with connect(bootstrap, folder) as client:
        targets = {} if file is None else read_assignment(file)
        directories = {} if file is None else read_log_dirs(file)
        partitions = None if file is None else targets.keys()
        under_way = reassign.moving(client, partitions)
        places = log_dirs.placed(client, reassign.racks(client), partitions)
        shown = {each: place for each, place in places.items() if place.target is not None or each in directories}
        names = sorted(targets or {*under_way, *(each[:2] for each in shown)})
        present = reassign.present_assignment(client, {topic for topic, _ in names}) if names else {}
    copied = _copied(places, under_way)
    rows = [
        {
            **_row(partition, under_way.get(partition), present.get(partition, ()), targets.get(partition), copied),
            "log_dirs": _log_dirs_json(partition, shown),
        }
        for partition in names
    ]
    for row in rows:
        if row["state"] == "complete":
            row["state"] = _state((row["topic"], row["partition"]), directories, shown)
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("nothing is under way")
    else:
        columns = ("PARTITION", "STATE", "REPLICAS", "ADDING", "REMOVING", "COPIED", *(["LOG DIRS"] if shown else []))
        print_table(columns, [_cells(row)[: len(columns)] for row in rows])


def _cells(row: Mapping[str, Any]) -> tuple[str | None, ...]:
    return (
        f"{row['topic']}-{row['partition']}",
        row["state"],
        ids(row["replicas"]),
        ids(row["adding"]),
        ids(row["removing"]),
        None if row["copied"] is None else f"{row['copied']:.0%}",
        ", ".join(
            f"{each['broker']}:{each['path']}"
            + ("" if each["target"] is None else f" to {each['target']} ({each['copied']:.0%})")
            for each in row["log_dirs"]
        ),
    )


def _log_dirs_json(partition: Partition, shown: Mapping[Replica, Placed]) -> list[dict[str, Any]]:
    return [
        {"broker": each[2], "path": place.path, "target": place.target, "copied": place.copied}
        for each, place in sorted(shown.items())
        if each[:2] == partition
    ]


def _state(partition: Partition, directories: Mapping[Replica, str], shown: Mapping[Replica, Placed]) -> str:
    """Of a partition whose replicas are those that are wanted."""
    places = {each: shown.get(each, Placed()) for each in {*directories, *shown} if each[:2] == partition}
    if all(place.path == directories.get(each) and place.target is None for each, place in places.items()):
        return "complete"
    wanted = (place.target in (None, directories.get(each, place.target)) for each, place in places.items())
    return "moving" if any(place.target for place in places.values()) and all(wanted) else "other"


def _row(
    partition: Partition,
    move: Moving | None,
    present: Sequence[int],
    target: Sequence[int] | None,
    copied: Mapping[Partition, float],
) -> dict[str, Any]:
    if move is not None:
        state = "moving" if target is None or tuple(target) == move.target else "other"
    else:
        state = "complete" if target is None or tuple(present) == tuple(target) else "other"
    return {
        "topic": partition[0],
        "partition": partition[1],
        "state": state,
        "replicas": list(present),
        "adding": [] if move is None else list(move.adding),
        "removing": [] if move is None else list(move.removing),
        "copied": copied.get(partition),
    }


def _copied(places: Mapping[Replica, Placed], under_way: Mapping[Partition, Moving]) -> dict[Partition, float]:
    """The part that the slowest new replica has, by its bytes; it may never be quite the leader's."""
    found = {}
    for partition, move in under_way.items():
        has = {broker: places.get((*partition, broker), Placed()).size_bytes for broker in move.replicas}
        old_bytes = [has[broker] for broker in move.replicas if broker not in move.adding]
        new_bytes = [has[broker] for broker in move.adding]
        if new_bytes and any(old_bytes):
            found[partition] = min(1.0, min(new_bytes) / max(old_bytes))
    return found


def _wait(
    client: Client, partitions: Collection[Partition], directories: Mapping[Replica, str], wait_s: float
) -> set[Partition]:
    """The partitions that have not moved by then."""
    deadline = time.monotonic() + wait_s
    while True:
        left = set(reassign.moving(client, partitions))
        places = _placed(client, directories)
        left |= {each[:2] for each, path in directories.items() if each not in places or places[each].path != path}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_POLL_EVERY_S)


def _placed(client: Client, replicas: Collection[Replica]) -> dict[Replica, Placed]:
    """Where these are."""
    places = log_dirs.placed(client, {each[2] for each in replicas}, {each[:2] for each in replicas})
    return {each: place for each, place in places.items() if each in replicas}


def _move_logs(client: Client, targets: Mapping[Replica, str]) -> list[Refusal]:
    """Ask for directories, as long as replicas are not there yet; gives what the brokers refuse."""
    deadline = time.monotonic() + _ACCEPTED_S
    refused: dict[Replica, int] = {}
    waiting = dict(targets)
    while waiting:
        answers = log_dirs.move(client, waiting)
        waiting = {each: targets[each] for each, code in answers.items() if code == ErrorCode.REPLICA_NOT_AVAILABLE}
        late = time.monotonic() > deadline
        refused |= {each: code for each, code in answers.items() if late or each not in waiting}
        if late:
            break
        if waiting:
            time.sleep(_POLL_EVERY_S)
    return [
        Refusal(topic, index, code, f"broker {broker}, log directory {targets[topic, index, broker]}")
        for (topic, index, broker), code in sorted(refused.items())
    ]


def _refusals_json(refused: Sequence[Refusal]) -> list[str]:
    return [str(each) for each in refused]


def _show_refusals(refused: Sequence[Refusal]) -> None:
    for each in refused:
        click.echo(f"refused: {each}", err=True)
