"""`tanist recovery`: the operator's choice of a leader where no replica surely has every record (KIP-966, KIP-1275).

Owns the command lines, the question before the election, and the two ways to elect the replica that was chosen: by
KIP-966's designation, and on brokers of Apache Kafka, which elect the first live replica of the list, by making it the
first. The record of the decision is the controller's event `UncleanElection`. Exit code 1 if the chosen one does not
lead in the end.
"""

from __future__ import annotations

import getpass
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tanist.cli.commands.recovery_survey import Survey
from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.alerts import data_words
from tanist.cli.output.lines import say
from tanist.cli.output.recovery_plan import Recovery, choice_json, recovery_json, show_choice, show_recovery
from tanist.cli.output.tables import print_json
from tanist.cli.tree import Group
from tanist.client.admin import ElectionType
from tanist.runtime.client.admin import PartitionDescription, describe_topics
from tanist.runtime.client.client import Address, Client, format_bootstrap
from tanist.runtime.client.elect import Candidate, elect
from tanist.runtime.client.reassign import reassign
from tanist.runtime.client.recovery_plan import Choice
from tanist.text import counted
from tanist.wire.errors import ErrorCode

_PATIENCE_S = 10.0
_POLL_EVERY_S = 0.1
_INT32_MAX = 2**31 - 1


@click.group("recovery", cls=Group)
def recovery_command() -> None:
    """Choose a leader where no replica surely has every record.

    \b
    tanist recovery plan                          what each choice would lose
    tanist recovery apply orders 0 --leader 2     elect broker 2 after a question
    tanist events UncleanElection                 who has decided what, and when

    A partition has no leader when ISR and ELR are offline or empty. Before you choose: start the brokers that still
    have their disks. An election cannot be taken back.
    """


@recovery_command.command("plan")
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@client_options
@json_option
def plan_command(topics: tuple[str, ...], bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Show what each choice of a leader would lose.

    For each partition without a leader: what its replicas have, which records each choice loses, the first and the last
    of them, and the command that elects. Replicas whose brokers do not answer are read from their files, if --data
    names a folder that has them. The command changes nothing.

    Records are counted by their offsets: markers of transactions count, and so do records that compaction has removed.
    A high watermark that a replica knows may be old, so more may be committed than is said.
    """
    where = _where(bootstrap, folder)
    with connect(bootstrap, folder) as client:
        found = list(Survey.of(client, _files(bootstrap, folder)).leaderless(topics))
    if as_json:
        print_json([recovery_json(each, where) for each in found])
        return
    if not found:
        click.echo("every partition has a leader" if not topics else f"every partition of {', '.join(topics)} has one")
    for number, each in enumerate(found):
        if number:
            click.echo()
        show_recovery(each, where)


@recovery_command.command("apply")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(0, _INT32_MAX))
@click.option("--leader", type=click.IntRange(0, _INT32_MAX), metavar="ID", required=True, help="The broker to elect.")
@click.option("--dry-run", is_flag=True, help="Show what would be lost; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@client_options
@json_option
def apply_command(
    topic: str,
    partition: int,
    leader: int,
    dry_run: bool,
    yes: bool,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Make a replica the leader, whatever is lost by it.

    Shows what `plan` says of this choice, asks, and elects. The others then truncate what the leader lacks; brokers of
    tanist save it first (`tanist salvage`). The election cannot be taken back.

    The controller's event UncleanElection records who has asked for it: principal, address, and the name of this user.
    """
    if as_json and not (yes or dry_run):
        raise click.UsageError("--json cannot ask: add --yes or --dry-run")
    with connect(bootstrap, folder) as client:
        client.client_id = f"tanist-recovery-{_user()}"
        survey = Survey.of(client, _files(bootstrap, folder))
        found = _partition(client, topic, partition)
        if found.leader == leader:
            _report_leader(topic, found, as_json)
            return
        recovery, choice = _chosen(survey, topic, partition, leader)
        if not as_json:
            show_choice(recovery, choice)
        if dry_run:
            _report(recovery, choice, None, as_json)
            return
        if not yes:
            click.confirm(_question(recovery, choice), abort=True, err=True)
            again, chosen = _chosen(survey, topic, partition, leader)
            if (chosen, again.plan.unknown) != (choice, recovery.plan.unknown):
                raise click.ClickException("the replicas have changed since: look again with `tanist recovery plan`")
        elected = _elect(client, recovery, choice.broker)
    _report(recovery, choice, elected, as_json)
    if not as_json:
        _show_next(recovery, choice, bootstrap, folder)


# -- the choice -------------------------------------------------------------------------------------------------------


def _chosen(survey: Survey, topic: str, partition: int, leader: int) -> tuple[Recovery, Choice]:
    """The partition and the choice; `ClickException` if it cannot be made."""
    recovery = next(survey.leaderless([topic], partition), None)
    if recovery is None:
        found = _partition(survey.client, topic, partition)
        raise click.ClickException(f"{topic}-{partition} has a leader, broker {found.leader}: nothing is to be decided")
    if leader not in recovery.partition.replicas:
        held = ", ".join(map(str, recovery.partition.replicas))
        raise click.ClickException(f"broker {leader} has no replica of {recovery.name}: brokers {held} have one")
    choice = recovery.choice(leader)
    if leader in recovery.partition.offline:
        raise click.ClickException(f"broker {leader} is offline and cannot lead: start it first")
    if choice is None:
        raise click.ClickException(
            f"broker {leader} does not say what it has of {recovery.name}, so nobody knows what would be lost; "
            "`tanist elect` elects without looking"
        )
    return recovery, choice


def _question(recovery: Recovery, choice: Choice) -> str:
    lost = choice.lost_count + choice.older
    and_lose = f", and lose {counted(lost, 'record')}" if lost else ""
    return f"Make broker {choice.broker} the leader of {recovery.name}{and_lose}? It cannot be taken back."


# -- the election -----------------------------------------------------------------------------------------------------


def _elect(client: Client, recovery: Recovery, leader: int) -> PartitionDescription:
    """Elect the replica; the partition with its new leader. `ClickException` if another one leads, or nobody."""
    if recovery.designates:
        _ask(client, ElectionType.DESIGNATION, recovery, leader)
        return _led(client, recovery, leader)
    replicas = recovery.partition.replicas
    live = [each for each in replicas if each not in recovery.partition.offline]
    if live[0] == leader:
        _ask(client, ElectionType.UNCLEAN, recovery, None)
        return _led(client, recovery, leader)
    _reorder(client, recovery, (leader, *(each for each in replicas if each != leader)))
    try:
        _ask(client, ElectionType.UNCLEAN, recovery, None)
        return _led(client, recovery, leader)
    finally:
        _reorder(client, recovery, replicas)


def _ask(client: Client, election: ElectionType, recovery: Recovery, leader: int | None) -> None:
    candidate = Candidate(recovery.topic, recovery.partition.partition, leader)
    (result,) = elect(client, election, [candidate], timeout_ms=30_000)
    if result.failed:
        name = ErrorCode.name_of(result.error_code)
        raise click.ClickException(f"{recovery.name}: {name}: {result.message}" if result.message else name)


def _reorder(client: Client, recovery: Recovery, replicas: Sequence[int]) -> None:
    """The same replicas in another order: no record moves. Apache Kafka elects the first that is live."""
    for refused in reassign(client, {(recovery.topic, recovery.partition.partition): tuple(replicas)}):
        raise click.ClickException(f"{recovery.name}: the order of its replicas cannot be changed: {refused}")


def _led(client: Client, recovery: Recovery, leader: int) -> PartitionDescription:
    deadline = time.monotonic() + _PATIENCE_S
    while (found := _partition(client, recovery.topic, recovery.partition.partition)).leader < 0:
        if time.monotonic() > deadline:
            raise click.ClickException(f"{recovery.name} still has no leader: look again with `tanist recovery plan`")
        time.sleep(_POLL_EVERY_S)
    if found.leader != leader:
        raise click.ClickException(
            f"broker {found.leader} leads {recovery.name}: it was elected before broker {leader}"
        )
    return found


def _partition(client: Client, topic: str, partition: int) -> PartitionDescription:
    (described,) = describe_topics(client, [topic])
    for each in described.partitions:
        if each.partition == partition:
            return each
    raise click.ClickException(f"topic {topic} has no partition {partition}")


# -- the words --------------------------------------------------------------------------------------------------------


def _report_leader(topic: str, found: PartitionDescription, as_json: bool) -> None:
    """The one that was asked for leads: by an earlier answer that was lost, perhaps."""
    if as_json:
        print_json({"topic": topic, "partition": found.partition, "leader": found.leader, "elected": False})
    else:
        click.echo(f"{topic}-{found.partition}: broker {found.leader} leads already")


def _report(recovery: Recovery, choice: Choice, elected: PartitionDescription | None, as_json: bool) -> None:
    if as_json:
        found: dict[str, Any] = {"topic": recovery.topic, "partition": recovery.partition.partition}
        found |= choice_json(recovery, choice)
        epoch = None if elected is None else elected.leader_epoch
        print_json(found | {"elected": elected is not None, "leader_epoch": epoch})
    elif elected is None:
        click.echo("a dry run: nothing was changed")
    else:
        say(f"{recovery.name}: broker {choice.broker} leads, from leader epoch {elected.leader_epoch} on")


def _show_next(recovery: Recovery, choice: Choice, bootstrap: list[Address] | None, folder: Path) -> None:
    if not recovery.designates:
        say(f"by {_user()}, at {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}; these brokers do not record it")
        return
    local = "" if bootstrap else data_words(folder)
    say(f"who has decided it: `tanist events UncleanElection --topic {recovery.topic}{local}`")
    if choice.lost_count or choice.salvage_only:
        command = f"tanist salvage export --topic {recovery.topic} --to topic --dry-run{local}"
        say(f"when the other replicas are in sync again, what the topic lacks: `{command}`")


def _where(bootstrap: list[Address] | None, folder: Path) -> str:
    """The options by which this command has found the cluster, and its files."""
    found = f" --bootstrap {format_bootstrap(bootstrap)}" if bootstrap else ""
    files = _files(bootstrap, folder)
    if bootstrap and files is not None:
        return f"{found} --data {shlex.quote(str(files))}"
    return found or data_words(folder)


def _files(bootstrap: list[Address] | None, folder: Path) -> Path | None:
    """The folder of the nodes' files: that of the cluster, or the one that was named beside `--bootstrap`."""
    source = click.get_current_context().get_parameter_source("folder")
    return folder if not bootstrap or source is not ParameterSource.DEFAULT else None


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
