"""The output of `tanist account`: a table of partitions, the lost records, and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tanist.cli.output.lines import say
from tanist.cli.output.tables import print_table
from tanist.runtime.client.account import PartitionAccount, ranges
from tanist.text import counted

_SHOWN_MAX = 10


def print_accounts(accounts: Sequence[PartitionAccount]) -> None:
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
            _print_others(accounts)
        return
    for each in accounts:
        if each.lost:
            lost_here = counted(len(each.lost), "acknowledged record")
            say(f"{each.topic}-{each.partition}: {lost_here} lost, at {_where(each)}")
    for topic in sorted({each.topic for each in accounts if each.salvaged}):
        saved = sum(each.salvaged or 0 for each in accounts if each.topic == topic)
        verb = "is" if saved == 1 else "are"
        click.echo(f"{saved} of them {verb} in the salvage. To restore what the topic lacks:")
        click.echo(f"    tanist salvage export --topic {topic} --to topic")
    _print_others(accounts)


def _print_others(accounts: Sequence[PartitionAccount]) -> None:
    """The meaning of DOUBLE and DISORDER. An account knows contents only: older records may be the same."""
    doubled = sum(each.account.duplicated for each in accounts)
    if doubled:
        are = "is in the topic more often than it was" if doubled == 1 else "are in the topic more often than they were"
        say(
            f"{counted(doubled, 'record')} {are} acknowledged: sent twice, or equal to a record "
            "that is not in the ledger (one from before it began, for example)",
            hang=0,
        )
    disordered = sum(each.account.disordered for each in accounts)
    if disordered:
        stands = "stands before one" if disordered == 1 else "stand before ones"
        say(
            f"{counted(disordered, 'record')} {stands} that {'was' if disordered == 1 else 'were'} acknowledged earlier"
        )


def _where(each: PartitionAccount) -> str:
    offsets = [lost.offset for lost in each.lost if lost.offset >= 0]
    if not offsets:
        return "unknown offsets"
    shown = ranges(offsets).split(", ")
    more = f" and {len(shown) - _SHOWN_MAX} more ranges" if len(shown) > _SHOWN_MAX + 1 else ""
    return f"offset{'' if len(offsets) == 1 else 's'} " + ", ".join(shown[:_SHOWN_MAX] if more else shown) + more


def accounts_json(accounts: Sequence[PartitionAccount]) -> dict[str, object]:
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
