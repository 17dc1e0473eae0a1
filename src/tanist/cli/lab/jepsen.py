"""`tanist jepsen`: Jepsen's test of Kafka and its successors on a live cluster, ours or somebody else's."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tanist.cli.options import addresses_given, client_config_option, config_given
from tanist.cli.output import lines
from tanist.cli.output.progress import announce
from tanist.cli.output.tables import print_json
from tanist.lab.jepsen.schedule import MEANINGS, TESTS
from tanist.runtime.client.client import Address, AuthenticationFailed, parse_bootstrap

if TYPE_CHECKING:
    from tanist.lab.jepsen.plan import Workload
    from tanist.lab.jepsen.run import Settings
    from tanist.lab.jepsen.target import Target

EXIT_ANOMALIES = 1
EXIT_NOT_RUN = 2
_BEFORE_AND_AFTER_S = 15.0
"""To start a cluster, and to read and judge everything."""


def _addresses(value: str) -> list[Address]:
    try:
        return parse_bootstrap(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


class NotRun(click.ClickException):
    """Nothing can be said about the records."""

    exit_code = EXIT_NOT_RUN


_HELP = """Break a cluster under load, and count lost records.

Starts a cluster of three brokers and three controllers, or breaks the one at --bootstrap (Apache Kafka, too) with
the commands that you give. Idempotent producers with acks=all and consumers run in separate processes; the seed
decides the faults. At the end the test heals the cluster, reads everything, and judges the history as
`tanist lab verify` does.

With --workload transactions each client sends and polls in transactions, and aborts some of them. Readers of
committed records must get each transaction as a whole or not at all.

\b
{tests}
mixed          All of them, in turn.

The exit code is 0 when nothing is wrong, 1 when records are lost or another check fails, 2 when the test could not
run. --out gets history.jsonl, summary.json, picture.svg and, if anything is wrong, the cluster's data.

\b
tanist jepsen --minutes 5
tanist jepsen --workload transactions
tanist jepsen --test last-replica --elr off --min-isr 1 --unclean
""".format(tests="\n".join(f"{kind:14} {meaning}" for kind, meaning in MEANINGS.items()))


@click.command("jepsen", help=_HELP)
@click.option("--minutes", type=click.FloatRange(0.2, 1440), default=5.0, show_default=True, help="How long to write.")
@click.option(
    "--test",
    "tests",
    type=click.Choice(TESTS),
    multiple=True,
    default=("mixed",),
    show_default=True,
    metavar="TEST",
    help="The faults: see above. Repeatable.",
)
@click.option(
    "--workload",
    type=click.Choice(["records", "transactions"]),
    default="records",
    show_default=True,
    help="What the clients do; with transactions they send and poll in them.",
)
@click.option("--rate", type=click.FloatRange(1, 100_000), default=200.0, show_default=True, help="Records a second.")
@click.option(
    "--partitions", type=click.IntRange(1, 100), default=4, show_default=True, help="Partitions of the topic."
)
@click.option(
    "--min-isr", type=click.IntRange(1, 3), default=2, show_default=True, help="min.insync.replicas; RF is 3."
)
@click.option(
    "--elr",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="KIP-966 on or off; not with --bootstrap.",
)
@click.option("--unclean", is_flag=True, help="unclean.leader.election.enable=true")
@click.option("--seed", type=click.IntRange(0), help="Seed of the faults.  [default: random]")
@click.option(
    "--client",
    type=click.Choice(["auto", "confluent", "tanist"]),
    default="auto",
    show_default=True,
    help="auto: confluent-kafka if it is installed, else tanist's own.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for the results.  [default: tanist-jepsen-TIME]",
)
@click.option("--bootstrap", type=_addresses, metavar="HOST:PORT,...", help="Brokers of a running cluster.")
@client_config_option
@click.option(
    "--secure", is_flag=True, help="The cluster that it starts has TLS, SCRAM and ACLs; not with --bootstrap."
)
@click.option("--start", metavar="CMD", help="With --bootstrap: starts a node; {node} is its id.")
@click.option("--crash", metavar="CMD", help="With --bootstrap: kills a node, as SIGKILL does.")
@click.option("--lose", metavar="CMD", help="With --bootstrap: removes unsynced bytes from a dead node's disk.")
@click.option("--pause", metavar="CMD", help="With --bootstrap: SIGSTOP.")
@click.option("--resume", metavar="CMD", help="With --bootstrap: SIGCONT.")
@click.option("--name", help="With --bootstrap: the cluster's name in the results.  [default: cluster]")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON; the rest goes to standard error.")
@click.pass_context
def jepsen_command(
    ctx: click.Context,
    minutes: float,
    tests: tuple[str, ...],
    workload: Workload,
    rate: float,
    partitions: int,
    min_isr: int,
    elr: str,
    unclean: bool,
    seed: int | None,
    client: str,
    out: Path | None,
    bootstrap: list[Address] | None,
    secure: bool,
    start: str | None,
    crash: str | None,
    lose: str | None,
    pause: str | None,
    resume: str | None,
    name: str | None,
    as_json: bool,
) -> None:
    from tanist.lab.jepsen import run
    from tanist.lab.jepsen.target import RunFailed

    commands = {"start": start, "crash": crash, "lose": lose, "pause": pause, "resume": resume}
    given = {what: command for what, command in commands.items() if command is not None}
    if given:
        bootstrap = addresses_given(bootstrap) or None
    _require_fit(bootstrap, given, ctx)
    out = out or Path(f"tanist-jepsen-{time.strftime('%Y%m%d-%H%M%S')}")
    if out.is_dir() and any(out.iterdir()):
        raise click.UsageError(f"{out} is not empty: name another folder with --out")

    def say(line: str) -> None:
        if as_json:
            click.echo(line, err=True)
        else:
            lines.say(line)

    run.interrupt_on_sigterm()
    try:
        settings = run.Settings(
            minutes=minutes,
            rate=rate,
            partitions=partitions,
            tests=tests,
            workload=workload,
            min_isr=min_isr,
            unclean=unclean,
            seed=secrets.randbelow(1_000_000) if seed is None else seed,
            client=run.choose_client(client),
            topic="jepsen" if bootstrap is None else f"jepsen-{time.time_ns() // 1_000_000}",
        )
        announce(f"{minutes:g} min of load, then all is read and judged", 60 * minutes + _BEFORE_AND_AFTER_S)
        out.mkdir(parents=True, exist_ok=True)
        target = _target(bootstrap, given, out / "cluster", name, elr=elr == "on", secure=secure)
        try:
            failed = _carry_out(target, settings, out, "" if bootstrap else f", ELR {elr}", as_json, say)
            say("stopping the cluster" if bootstrap is None else "healing the remaining faults")
        finally:
            target.close()
    except (RunFailed, AuthenticationFailed) as error:
        raise NotRun(str(error)) from error
    except KeyboardInterrupt:
        raise NotRun("interrupted; nothing that the test has started is left running") from None
    if failed:
        ctx.exit(EXIT_ANOMALIES)
    shutil.rmtree(out / "cluster", ignore_errors=True)


def _require_fit(bootstrap: list[Address] | None, given: dict[str, str], ctx: click.Context) -> None:
    if bootstrap is None:
        if given:
            raise click.UsageError(f"--{next(iter(given))} needs --bootstrap")
        return
    if not {"start", "crash"} <= given.keys():
        raise click.UsageError("--bootstrap needs --start CMD and --crash CMD, which break the cluster")
    if ("pause" in given) != ("resume" in given):
        raise click.UsageError("--pause and --resume go together")
    for what, command in given.items():
        if "{node}" not in command:
            raise click.UsageError(f"--{what} {command!r} does not name the node: write {{node}} for its id")
    if ctx.get_parameter_source("elr") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--elr does not go with --bootstrap: set that cluster's feature before the test")
    if ctx.params["secure"]:
        raise click.UsageError(
            "--secure does not go with --bootstrap: --client-config says how that cluster is reached"
        )


def _target(
    bootstrap: list[Address] | None, given: dict[str, str], folder: Path, name: str | None, *, elr: bool, secure: bool
) -> Target:
    if bootstrap is not None:
        from tanist.lab.jepsen.outside import OutsideCluster, brokers_of

        config = config_given()
        properties: Mapping[str, str] = {} if config is None else config.properties
        return OutsideCluster(brokers_of(bootstrap, properties), given, name or "cluster", properties)
    from tanist.lab.jepsen.own import OwnCluster

    return OwnCluster(folder, elr=elr, secure=secure)


def _carry_out(
    target: Target, settings: Settings, out: Path, about: str, as_json: bool, say: Callable[[str], None]
) -> bool:
    """Run, tell, and leave the results in `out`; whether anything is wrong."""
    from tanist.lab.jepsen import picture, run
    from tanist.lab.jepsen.schedule import NotPossible

    unclean = ", unclean election allowed" if settings.unclean else ""
    about = f"min.insync.replicas={settings.min_isr}{about}{unclean}"
    library = "confluent-kafka (librdkafka)" if settings.client == "confluent" else "tanist's own client"
    load = ", in transactions" if settings.workload == "transactions" else ""
    say(f"{target.name}: {len(target.node_ids)} brokers, {about}; seed {settings.seed}; clients: {library}{load}")
    try:
        for line in run.planned(target, settings):
            say(f"  {line}")
        result = run.play(target, settings, out, say)
    except NotPossible as error:
        raise click.UsageError(str(error)) from error
    run.save(result, out)
    title = f"{target.name}, {about}"
    (out / "picture.svg").write_text(picture.draw(result, title))
    say("")
    for line in result.lines:
        say(line)
    say("")
    for line in result.outcome.lines(has_salvage=target.data is not None):
        say(line)
    if as_json:
        print_json(result.as_json())
    say("")
    say(f"in {out}: history.jsonl, summary.json, picture.svg" + (", cluster" if result.failed and target.data else ""))
    return result.failed
