"""`tanist lab search`: TLC in all states of the public model with unclean recovery."""

from __future__ import annotations

from pathlib import Path

import click

from tanist.cli.lab.trace import tlc_options
from tanist.cli.options import json_option
from tanist.cli.output.tables import print_json

EXIT_FAILED = 1


@click.command("search")
@click.option(
    "--strategy", type=click.Choice(["None", "Balanced", "Aggressive"]), default="Balanced", show_default=True
)
@click.option("--replicas", type=click.IntRange(2, 4), default=3, show_default=True)
@click.option("--records", type=click.IntRange(1, 3), default=1, show_default=True)
@click.option("--crashes", type=click.IntRange(0, 4), default=2, show_default=True, help="Each loses what it likes.")
@click.option("--stops", type=click.IntRange(0, 4), default=0, show_default=True, help="Clean ones.")
@click.option("--any-order", is_flag=True, help="Messages and metadata arrive whenever they like, not at once.")
@click.option("--break", "broken", metavar="RULE", default="", help="Break a rule, for example broker-epoch.")
@tlc_options
@json_option
@click.pass_context
def search_command(
    ctx: click.Context,
    strategy: str,
    replicas: int,
    records: int,
    crashes: int,
    stops: int,
    any_order: bool,
    broken: str,
    model: Path | None,
    jar: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Search all states of the public model with unclean recovery.

    TLC goes through all that a partition can come to at this size, by one strategy, and looks for a state that
    violates a property. The exit code is 0 when there is none, 1
    when there is one; with a broken rule it is the other way round.
    """
    from tanist.lab.trace import searching, tlc

    if broken and broken not in searching.RULES:
        raise click.BadParameter(f"the rules are {', '.join(searching.RULES)}", ctx, param_hint="--break")
    search = searching.Search(strategy, replicas, records, crashes, stops, broken, any_order)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        searching.write(search, out)
        if as_json:
            print_json({"written": str(out)})
        else:
            click.echo(f"written to {out}")
        return
    try:
        tools = tlc.find(model, jar)
    except tlc.Unavailable as error:
        raise click.ClickException(str(error)) from error
    found = searching.run(search, tools, lambda line: click.echo(line, err=True))
    if as_json:
        print_json({"violated": found.violated, "states": found.distinct, "depth": found.depth})
    elif found.violated:
        click.echo(f"VIOLATED {found.violated}")
    else:
        click.echo(f"HOLDS    in all {found.distinct:,} states, up to {found.depth} steps deep")
    if bool(found.violated) != bool(broken):
        ctx.exit(EXIT_FAILED)
