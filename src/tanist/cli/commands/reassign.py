"""`tanist reassign`: move partitions to other brokers of any Kafka cluster, as `kafka-reassign-partitions` does.

Its files are that tool's: what one writes the other reads.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tanist.cli.commands.reassign_file import assignment_text, read_assignment, read_topics
from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.tables import ids, print_json, print_table
from tanist.cli.tree import Group
from tanist.runtime.client import reassign
from tanist.runtime.client.client import Address, Client
from tanist.runtime.client.reassign import Moving, Partition, Refusal
from tanist.runtime.client.reassign_plan import PlanError, plan
from tanist.text import counted
from tanist.wire.internal_topics import OFFSETS_TOPIC

EXIT_TIMEOUT = 3
_POLL_EVERY_S = 0.2


def _brokers(value: str) -> tuple[int, ...]:
    numbers = [each.strip() for each in value.split(",")]
    if not all(each.isdecimal() for each in numbers):
        raise click.BadParameter(f"{value!r} is not like 1,2,3")
    return tuple(dict.fromkeys(map(int, numbers)))


_file_argument = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.group("reassign", cls=Group)
def reassign_command() -> None:
    """Move partitions to other brokers.

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
    """
    targets = read_assignment(file)
    with connect(bootstrap, folder) as client:
        present = reassign.present_assignment(client, {topic for topic, _ in targets})
        if unknown := sorted(targets.keys() - present.keys()):
            topic, index = unknown[0]
            raise click.ClickException(f"{file}: there is no partition {topic}-{index}")
        if save_current is not None:
            save_current.write_text(assignment_text({key: present[key] for key in targets}) + "\n", encoding="utf-8")
        refused = reassign.reassign(client, targets)
        begun = targets.keys() - {(each.topic, each.partition) for each in refused}
        left = _wait(client, begun, wait_s) if wait_s is not None else {}
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
    stay.
    """
    if (file is None) == (not everything):
        raise click.UsageError("give FILE or --all")
    with connect(bootstrap, folder) as client:
        under_way = reassign.moving(client, None if file is None else read_assignment(file).keys())
        refused = reassign.cancel(client, under_way.keys()) if under_way else []
    done = len(under_way) - len(refused)
    if as_json:
        print_json({"cancelled": done, "refused": _refusals_json(refused)})
    else:
        _show_refusals(refused)
        click.echo(f"cancelled {counted(done, 'reassignment')}" if under_way else "nothing is under way")
    if refused:
        raise click.exceptions.Exit(1)


@reassign_command.command("list")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@client_options
@json_option
def list_command(file: Path | None, bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Show reassignments and their progress.

    With FILE, shows the state of each of its partitions: complete, moving, or other (its replicas are not those of the
    file, and are not moving there). COPIED compares the bytes of new replicas with the leader's.
    """
    with connect(bootstrap, folder) as client:
        targets = {} if file is None else read_assignment(file)
        under_way = reassign.moving(client, targets.keys() if file is not None else None)
        topics = {topic for topic, _ in targets or under_way}
        present = reassign.present_assignment(client, topics) if topics else {}
        copied = _copied(client, under_way)
    rows = [
        _row(partition, under_way.get(partition), present.get(partition, ()), targets.get(partition), copied)
        for partition in sorted(targets or under_way)
    ]
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("nothing is under way")
    else:
        print_table(
            ("PARTITION", "STATE", "REPLICAS", "ADDING", "REMOVING", "COPIED"),
            [
                (
                    f"{row['topic']}-{row['partition']}",
                    row["state"],
                    ids(row["replicas"]),
                    ids(row["adding"]),
                    ids(row["removing"]),
                    None if row["copied"] is None else f"{row['copied']:.0%}",
                )
                for row in rows
            ],
        )


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
        state = "complete" if tuple(present) == tuple(target or ()) else "other"
    return {
        "topic": partition[0],
        "partition": partition[1],
        "state": state,
        "replicas": list(present),
        "adding": [] if move is None else list(move.adding),
        "removing": [] if move is None else list(move.removing),
        "copied": copied.get(partition),
    }


def _copied(client: Client, under_way: Mapping[Partition, Moving]) -> dict[Partition, float]:
    """The part that the slowest new replica has, by its bytes; it may never be quite the leader's."""
    brokers = {broker for move in under_way.values() for broker in move.replicas}
    has = {broker: reassign.sizes(client, broker, under_way.keys()) for broker in sorted(brokers)}
    found = {}
    for partition, move in under_way.items():
        old_bytes = [has[broker].get(partition, 0) for broker in move.replicas if broker not in move.adding]
        new_bytes = [has[broker].get(partition, 0) for broker in move.adding]
        if new_bytes and any(old_bytes):
            found[partition] = min(1.0, min(new_bytes) / max(old_bytes))
    return found


def _wait(client: Client, partitions: Collection[Partition], wait_s: float) -> dict[Partition, Moving]:
    deadline = time.monotonic() + wait_s
    while left := reassign.moving(client, partitions):
        if time.monotonic() > deadline:
            return left
        time.sleep(_POLL_EVERY_S)
    return {}


def _refusals_json(refused: Sequence[Refusal]) -> list[str]:
    return [str(each) for each in refused]


def _show_refusals(refused: Sequence[Refusal]) -> None:
    for each in refused:
        click.echo(f"refused: {each}", err=True)
