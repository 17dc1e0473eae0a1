"""`tanist account`: the ledgers of `tanist produce --ledger`, compared with the topics as they are now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.tables import print_json, print_table
from tanist.runtime.client.account import PartitionAccount, account_of, ranges
from tanist.runtime.client.acknowledged import Acknowledged, read_ledger
from tanist.runtime.client.client import Address
from tanist.runtime.cluster.cluster_file import load
from tanist.text import counted

_EXIT_BAD = 1
_SHOWN_MAX = 10


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
        print_json(_as_json(accounts))
    else:
        _print(accounts)
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


def _print(accounts: Sequence[PartitionAccount]) -> None:
    rows = []
    for each in accounts:
        account = each.account
        gone = each.expired + each.superseded
        rows.append(
            (
                f"{each.topic}-{each.partition}",
                account.acknowledged,
                account.stored,
                len(each.lost),
                account.duplicated,
                account.disordered,
                gone,
                each.salvaged,
            )
        )
    print_table(("PARTITION", "ACKNOWLEDGED", "STORED", "LOST", "DOUBLE", "DISORDER", "EXPIRED", "SALVAGED"), rows)
    lost = sum(len(each.lost) for each in accounts)
    if not lost:
        if all(each.good for each in accounts):
            click.echo("every acknowledged record is there, once and in order")
        else:
            click.echo("no acknowledged record is lost")
            _say_what_else(accounts)
        return
    for each in accounts:
        if each.lost:
            lost_here = counted(len(each.lost), "acknowledged record")
            click.echo(f"{each.topic}-{each.partition}: {lost_here} lost, at {_where(each)}")
    for topic in sorted({each.topic for each in accounts if each.salvaged}):
        saved = sum(each.salvaged or 0 for each in accounts if each.topic == topic)
        verb = "is" if saved == 1 else "are"
        click.echo(f"{saved} of them {verb} in the salvage. To restore what the topic lacks:")
        click.echo(f"    tanist salvage export --topic {topic} --to topic")
    _say_what_else(accounts)


def _say_what_else(accounts: Sequence[PartitionAccount]) -> None:
    """What DOUBLE and DISORDER mean. An account knows contents only: older records may be the same."""
    doubled = sum(each.account.duplicated for each in accounts)
    if doubled:
        are = "is in the topic more often than it was" if doubled == 1 else "are in the topic more often than they were"
        click.echo(f"{counted(doubled, 'record')} {are} acknowledged: sent twice, or")
        click.echo("equal to a record that is not in the ledger (one from before it began, for example)")
    disordered = sum(each.account.disordered for each in accounts)
    if disordered:
        stands = "stands before one" if disordered == 1 else "stand before ones"
        click.echo(
            f"{counted(disordered, 'record')} {stands} that {'was' if disordered == 1 else 'were'} acknowledged earlier"
        )


def _where(each: PartitionAccount) -> str:
    offsets = [lost.offset for lost in each.lost if lost.offset >= 0]
    if not offsets:
        return "unknown offsets"
    shown = ranges(offsets).split(", ")
    more = f" and {len(shown) - _SHOWN_MAX} more ranges" if len(shown) > _SHOWN_MAX + 1 else ""
    return f"offset{'' if len(offsets) == 1 else 's'} " + ", ".join(shown[:_SHOWN_MAX] if more else shown) + more


def _as_json(accounts: Sequence[PartitionAccount]) -> dict[str, object]:
    return {
        "good": all(each.good for each in accounts),
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "acknowledged": each.account.acknowledged,
                "stored": each.account.stored,
                "lost": len(each.lost),
                "lost_offsets": [None if lost.offset < 0 else lost.offset for lost in each.lost],
                "duplicated": each.account.duplicated,
                "out_of_order": each.account.disordered,
                "expired": each.expired,
                "superseded": each.superseded,
                "salvaged": each.salvaged,
            }
            for each in accounts
        ],
    }
