"""`tanist lab check`: search all that may happen in a small cluster, by the real core objects."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tanist.cli.options import json_option
from tanist.cli.output.lines import say, say_all
from tanist.cli.output.progress import Progress, announce
from tanist.cli.output.tables import print_json, print_table

if TYPE_CHECKING:
    from tanist.lab.model.checking import Checked

EXIT_FAILED = 1

_DEFAULT_STATES = 1_000_000
"""About half a gigabyte."""
_STATES_PER_S = 20_000
"""Of one core."""


@click.command("check")
@click.option(
    "--config", "name", metavar="NAME", help="The configuration to search: see --list. [last-replica-standing]"
)
@click.option("--list", "listing", is_flag=True, help="List the configurations, and the rules that can be broken.")
@click.option("--depth", type=click.IntRange(min=0), metavar="N", help="Go no further than N steps.")
@click.option(
    "--states",
    type=click.IntRange(min=1),
    metavar="N",
    default=_DEFAULT_STATES,
    show_default=True,
    help="Visit no more than N states.",
)
@click.option("--seconds", type=click.FloatRange(min=0), metavar="N", help="Stop after N seconds.")
@click.option("--mutate", metavar="RULE", help="Break a rule first, for example A2.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the counterexample to FILE, for `tanist lab replay FILE`.",
)
@json_option
@click.pass_context
def check_command(
    ctx: click.Context,
    name: str | None,
    listing: bool,
    depth: int | None,
    states: int,
    seconds: float | None,
    mutate: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Search all states of a small cluster for a broken property.

    A breadth-first search. Controllers and replicas are the real ones; logs, network, time and crashes are abstract. It
    prints a counterexample step by step; no shorter one exists. The exit code is 0 when all properties hold in the
    states that were searched, 1 when one does not.
    """
    if listing:
        _list(as_json)
        return
    from tanist.lab.model import CONFIGURATIONS, Limits, checking
    from tanist.lab.model_scenario import ALL_MUTATIONS
    from tanist.lab.mutations.model import applied

    if mutate is not None and mutate not in ALL_MUTATIONS:
        raise click.BadParameter(f"{mutate!r} is not one of {', '.join(ALL_MUTATIONS)}", ctx, param_hint="--mutate")
    mutation = None if mutate is None else ALL_MUTATIONS[mutate]
    name = name or (mutation.configuration if mutation is not None else "last-replica-standing")
    if name not in CONFIGURATIONS:
        raise click.BadParameter(f"{name!r} is not one of {', '.join(CONFIGURATIONS)}", ctx, param_hint="--config")
    limits = Limits(depth=depth, states=states, seconds=seconds)
    if depth is None and mutation is None:  # otherwise it ends much earlier
        longest_s = states / _STATES_PER_S
        announce(f"up to {states:,} states", longest_s if seconds is None else min(seconds, longest_s), at_most=True)
    with nullcontext() if mutation is None else applied(mutation):
        with Progress() as show:
            checked = checking.check(
                CONFIGURATIONS[name],
                limits,
                unwatched=frozenset() if mutation is None else mutation.unwatched,
                on_level=lambda outcome: show(
                    f"depth {outcome.depth}, {outcome.states:,} states, {outcome.rate:,.0f} states/s"
                ),
            )
        written = out is not None and _write(checked, mutate, out)
        if as_json:
            print_json(checking.as_json(checked) | {"mutation": mutate})
        else:
            if mutation is not None:
                say(f"With {mutation.number} ({mutation.rule}):")
            say_all(checking.lines(checked))
            if written:
                say(f"See it again: `tanist lab replay {out}`")
    if not checked.passed:
        ctx.exit(EXIT_FAILED)


def _write(checked: Checked, mutate: str | None, out: Path) -> bool:
    """Keep the counterexample, if there is one."""
    from tanist.lab.model_scenario import document

    found = checked.outcome.counterexample
    if found is None:
        return False
    title = f"{checked.configuration.name}: {found.violation}"
    names = () if mutate is None else (mutate,)
    try:
        out.write_text(json.dumps(document(title, checked.configuration, checked.model, found, names), indent=2) + "\n")
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}") from error
    return True


def _list(as_json: bool) -> None:
    from tanist.lab.model import CONFIGURATIONS
    from tanist.lab.model_scenario import ALL_MUTATIONS

    if as_json:
        print_json(
            {
                "configurations": {each.name: each.about for each in CONFIGURATIONS.values()},
                "mutations": {
                    each.number: {"rule": each.rule, "configuration": each.configuration}
                    for each in ALL_MUTATIONS.values()
                },
            }
        )
        return
    print_table(("CONFIGURATION", "ABOUT"), [(each.name, each.about) for each in CONFIGURATIONS.values()])
    click.echo()
    print_table(
        ("RULE", "BROKEN: INSTEAD", "FOUND IN"),
        [(each.number, each.rule, each.configuration) for each in ALL_MUTATIONS.values()],
    )
