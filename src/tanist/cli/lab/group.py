"""`tanist lab`: what tanist is held to, without a cluster. The lab is imported by the command that needs it."""

from __future__ import annotations

from pathlib import Path

import click

from tanist.cli.lab.check import check_command
from tanist.cli.lab.demo import demo_command
from tanist.cli.lab.mutants import mutants_command
from tanist.cli.lab.replay import replay_command
from tanist.cli.lab.report import report_command
from tanist.cli.lab.run import run_command
from tanist.cli.lab.search import search_command
from tanist.cli.lab.trace import trace_command
from tanist.cli.lab.verify import verify_command
from tanist.cli.output.tables import print_json
from tanist.cli.tree import Group

EXIT_FAILED = 1
EXIT_USAGE = 2


@click.group("lab", cls=Group)
def lab_command() -> None:
    """Simulate, search and judge clusters, in virtual time.

    The simulator and its seeds, the model checker, mutations (broken rules), and a checker of client histories of any
    Kafka.
    """


@lab_command.command("scenarios")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print every outcome, as JSON.")
@click.pass_context
def scenarios_command(ctx: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Play behaviour scenarios, and compare with Apache Kafka.

    Shows the scenarios in FILES whose result differs. A difference that docs/rules.md explains is a deviation; any
    other is a failure. The exit code is 0 without a failure, 1 with one, 2 when a file cannot be read or its kind is
    not known.
    """
    from tanist.lab import scenarios
    from tanist.lab.scenarios import report

    try:
        items = scenarios.load(files)
    except scenarios.ScenarioFileError as error:
        raise click.UsageError(str(error), ctx) from error
    outcomes = [scenarios.run(item) for item in items]
    if as_json:
        print_json(report.as_json(outcomes))
    else:
        for line in report.lines(outcomes):
            click.echo(line)
        click.echo(report.summary(outcomes))
    if any(outcome.unknown_kind for outcome in outcomes):
        ctx.exit(EXIT_USAGE)
    if any(outcome.verdict is scenarios.Verdict.FAILED for outcome in outcomes):
        ctx.exit(EXIT_FAILED)


lab_command.add_command(check_command)
lab_command.add_command(demo_command)
lab_command.add_command(mutants_command)
lab_command.add_command(replay_command)
lab_command.add_command(report_command)
lab_command.add_command(run_command)
lab_command.add_command(search_command)
lab_command.add_command(trace_command)
lab_command.add_command(verify_command)
