"""`tanist account`: the ledgers of `tanist produce --ledger`, compared with the topics as they are now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.accounts import accounts_json, print_accounts
from tanist.cli.output.tables import print_json
from tanist.runtime.client.account import PartitionAccount, account_of
from tanist.runtime.client.acknowledged import Acknowledged, read_ledger
from tanist.runtime.client.client import Address
from tanist.runtime.cluster.cluster_file import load

_EXIT_BAD = 1


@click.command("account")
@click.argument(
    "ledgers", metavar="LEDGER...", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path)
)
@click.option("--topic", "topics", multiple=True, help="Compare this topic only. Repeatable.")
@client_options
@json_option
@click.pass_context
def account_command(
    ctx: click.Context,
    ledgers: tuple[Path, ...],
    topics: tuple[str, ...],
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Compare what was acknowledged with what is there.

    \b
    seq 1 1000 | tanist produce orders --ledger acked.jsonl
    tanist account acked.jsonl

    LEDGER is a file that `tanist produce --ledger` wrote: the acknowledged records. The command compares them with the
    topic's records by key, value and headers, so a restored record counts as there. Begin the ledger with an empty
    topic: an older record with the same content counts as a second copy. Records that retention or compaction removed
    are not lost. Exit code 0: every acknowledged record is there, once and in order.
    """
    acknowledged = _read_all(ledgers, topics)
    accounts: list[PartitionAccount] = []
    salvage = folder if bootstrap is None and load(folder) is not None else None
    with connect(bootstrap, folder) as client:
        for topic, partitions in sorted(acknowledged.items()):
            accounts += account_of(client, topic, partitions, salvage)
    if as_json:
        print_json(accounts_json(accounts))
    else:
        print_accounts(accounts)
    if not all(each.good for each in accounts):
        ctx.exit(_EXIT_BAD)


def _read_all(ledgers: Sequence[Path], topics: Sequence[str]) -> dict[str, dict[int, list[Acknowledged]]]:
    found: dict[str, dict[int, list[Acknowledged]]] = {}
    for path in ledgers:
        for (topic, partition), records in read_ledger(path).items():
            if not topics or topic in topics:
                found.setdefault(topic, {}).setdefault(partition, []).extend(records)
    missing = sorted(set(topics) - found.keys())
    names = " and ".join(map(str, ledgers))
    if missing:
        raise click.ClickException(f"{names}: no record of topic {missing[0]}, so there is nothing to compare")
    if not found:
        raise click.ClickException(
            f"{names}: no record in it, so there is nothing to compare. `tanist produce --ledger` fills one"
        )
    return found
