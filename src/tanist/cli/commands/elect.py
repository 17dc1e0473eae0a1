"""`tanist elect`: leader elections that an operator asks for, as `kafka-leader-election.sh` with KIP-966's additions.

Owns the command line, the JSON file of partitions and the words for each result. Exit code 1 if any partition's
election failed; one that was not needed has not failed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.tables import print_json
from tanist.client.admin import ElectionType
from tanist.runtime.client.client import Address
from tanist.runtime.client.elect import Candidate, ElectionResult, elect
from tanist.wire.errors import ErrorCode

_TYPES = {election.name.lower(): election for election in ElectionType}
_INT32_MAX = 2**31 - 1


class _Type(click.Choice[str]):
    """KIP-966 spells the types in capitals, and one of them in two ways."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        named = str(value).lower().replace("-", "_").replace("agressive", "aggressive")
        return super().convert(named, param, ctx)


@click.command("elect")
@click.option(
    "--type",
    "--election-type",
    "election",
    type=_Type(list(_TYPES)),
    metavar="TYPE",
    required=True,
    help="How to choose: see above.",
)
@click.option("--topic", help="With --partition: the one partition.")
@click.option("--partition", type=click.IntRange(0, _INT32_MAX), help="With --topic.")
@click.option("--all-topic-partitions", "everything", is_flag=True, help="All partitions of the cluster.")
@click.option(
    "--path-to-json-file",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help='{"partitions": [{"topic": "foo", "partition": 1, "desiredLeader": 0}, ...]}',
)
@click.option(
    "--desired-leader", type=click.IntRange(0, _INT32_MAX), metavar="ID", help="With --type designation and --topic."
)
@click.option(
    "--timeout-ms",
    type=click.IntRange(1, _INT32_MAX),
    default=60_000,
    show_default=True,
    help="How long an election may take.",
)
@client_options
@json_option
def elect_command(
    election: str,
    topic: str | None,
    partition: int | None,
    everything: bool,
    file: Path | None,
    desired_leader: int | None,
    timeout_ms: int,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Have the controller elect leaders.

    \b
    preferred               the first replica of the list
    unclean                 any live replica: may lose records
    longest_log_aggressive  the longest log of those that answer
    longest_log_balanced    the same, after all of LastKnownElr have answered
    designation             the replica you name: may lose records

    All but `preferred` change only partitions without a leader. The last three are KIP-966's; Apache Kafka does not
    have them. With `designation`, each partition of a file needs its desiredLeader; the other types ignore it.
    """
    chosen = _TYPES[election]
    candidates = _candidates(chosen, topic, partition, everything, file, desired_leader)
    with connect(bootstrap, folder, timeout_s=max(30.0, timeout_ms / 1000)) as client:
        results = elect(client, chosen, candidates, timeout_ms=timeout_ms)
    if as_json:
        print_json({"type": election, "partitions": [_result_json(result) for result in results]})
    else:
        for result in results:
            click.echo(f"{result.topic}-{result.partition}: {_result_text(result)}")
        if not results:
            click.echo("no partition needs an election")
    if any(result.failed for result in results):
        raise click.exceptions.Exit(1)


def _candidates(
    election: ElectionType,
    topic: str | None,
    partition: int | None,
    everything: bool,
    file: Path | None,
    desired_leader: int | None,
) -> list[Candidate] | None:
    """Which partitions; None for all. `UsageError` for what does not go together."""
    designating = election is ElectionType.DESIGNATION
    if (topic is not None) + everything + (file is not None) != 1:
        raise click.UsageError("give one of --topic, --all-topic-partitions and --path-to-json-file")
    if (topic is None) != (partition is None):
        raise click.UsageError("--topic and --partition go together")
    if desired_leader is not None and (topic is None or not designating):
        raise click.UsageError("--desired-leader goes with --type designation and --topic")
    if everything:
        if designating:
            raise click.UsageError("--type designation needs the leader of each partition: use --path-to-json-file")
        return None
    if file is not None:
        return _read(file, designating)
    if designating and desired_leader is None:
        raise click.UsageError("--type designation needs --desired-leader")
    return [Candidate(topic or "", partition or 0, desired_leader)]


def _read(file: Path, designating: bool) -> list[Candidate]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise click.ClickException(f"{file} is not JSON: {error}") from error
    entries = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries:
        raise click.ClickException(
            f'{file} has no partitions: it should look like {{"partitions": [{{"topic": "foo", ...'
        )
    found: dict[tuple[str, int], Candidate] = {}
    for number, entry in enumerate(entries):
        where = f"{file}, partitions[{number}]"
        candidate = _entry(where, entry, designating)
        if (candidate.topic, candidate.partition) in found:
            raise click.ClickException(f"{where}: {candidate} is listed twice")
        found[candidate.topic, candidate.partition] = candidate
    return list(found.values())


def _entry(where: str, entry: object, designating: bool) -> Candidate:
    if not isinstance(entry, dict):
        raise click.ClickException(f"{where} is not an object")
    topic = entry.get("topic")
    if not isinstance(topic, str) or not topic:
        raise click.ClickException(f"{where}: topic is not a name")
    partition = _number(where, entry, "partition")
    desired_leader = _number(where, entry, "desiredLeader") if designating else None
    return Candidate(topic, partition, desired_leader)


def _number(where: str, entry: dict[Any, Any], name: str) -> int:
    value = entry.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _INT32_MAX:
        what = "is missing" if name not in entry else f"is {json.dumps(value)}"
        raise click.ClickException(f"{where}: {name} {what}; it must be a number, 0 or more")
    return value


def _result_text(result: ElectionResult) -> str:
    if result.elected:
        return "elected"
    if result.needless:
        if result.asked_again:
            return "has the leader that was asked for (the answer to the first request was lost)"
        return "not needed"
    name = ErrorCode.name_of(result.error_code)
    return f"failed: {name}: {result.message}" if result.message else f"failed: {name}"


def _result_json(result: ElectionResult) -> dict[str, Any]:
    summary = "elected" if result.elected else "not needed" if result.needless else "failed"
    return {
        "topic": result.topic,
        "partition": result.partition,
        "result": summary,
        "error": None if result.elected else ErrorCode.name_of(result.error_code),
        "message": result.message,
        "asked_again": result.asked_again,
    }
