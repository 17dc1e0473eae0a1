"""`tanist spark`: the pipeline's jobs (docs/pipeline.md). Progress goes to standard error, results to standard output.

PySpark is imported by the command that needs it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tanist.cli.lab.run import Seeds, draw, parsed
from tanist.cli.lab.workload_options import SEEDS
from tanist.cli.options import client_options, cluster_given, json_option, key_value
from tanist.cli.output.spark_reports import (
    audit_json,
    audit_lines,
    echo,
    ingest_line,
    many,
    tell_merge,
    tell_package,
    tell_seeds,
)
from tanist.cli.output.tables import print_json
from tanist.cli.spark.audits import Service, engine_option, findings_option, service_options
from tanist.cli.spark.places import Place, replicas_option
from tanist.cli.spark.session import NotJudged, Start, refused, session_options
from tanist.cli.tree import Group
from tanist.client.security import is_of_security
from tanist.installed import add_extra
from tanist.runtime.client.client import Address, format_bootstrap

if TYPE_CHECKING:
    from tanist.spark.jobs.audit.findings_table import FindingsTable
    from tanist.spark.jobs.audit.result import AuditResult

EXIT_FOUND = 1
"""An audit that found something, as `tanist lab verify` has it."""


class Job(click.Command):
    """Says in a sentence what is missing, where it can be installed; help and mistakes need no PySpark."""

    def invoke(self, ctx: click.Context) -> Any:
        if find_spec("pyspark") is None:
            raise NotJudged(f"the pipeline needs PySpark (500 MB, Java included): {add_extra('spark')}")
        try:
            return super().invoke(ctx)
        except Exception as error:
            refusal = refused(error, verbose=bool(ctx.params.get("verbose")))
            if refusal is None:
                raise
            raise refusal from error


class Jobs(Group):
    """Its commands are jobs."""

    command_class = Job


@click.group("spark", cls=Jobs)
def spark_command() -> None:
    """Run jobs on topics, replicas' files and histories.

    The jobs use PySpark, on this machine or on a Spark cluster (docs/pipeline.md).
    """


def _cluster(bootstrap: list[Address] | None, folder: Path) -> tuple[list[Address], dict[str, str]]:
    """Where a job connects, and the sources' options that say as whom."""
    found = cluster_given(bootstrap, folder)
    return found.bootstrap, {f"kafka.{name}": each for name, each in found.properties.items() if is_of_security(name)}


def _say(what: str) -> None:
    click.echo(f"  {what}", err=True)


def _answer(as_json: bool, programs: Callable[[], Any], people: Callable[[], None]) -> None:
    """The result of a job on standard output, for people or for programs."""
    if as_json:
        print_json(programs())
    else:
        people()


@spark_command.command("audit")
@click.option(
    "--history",
    "histories",
    multiple=True,
    type=Place(exists=True),
    help="The clients' history, JSON Lines or Parquet (docs/history.md). Repeatable. Without it: replicas only.",
)
@click.option("--topic", "topics", multiple=True, help="This topic only. Repeatable.  [default: all but internal ones]")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="A file for the report with pictures.")
@findings_option
@service_options
@session_options
@engine_option
@replicas_option
@json_option
@click.pass_context
def audit_command(
    ctx: click.Context,
    histories: tuple[str, ...],
    topics: tuple[str, ...],
    html: Path | None,
    findings: FindingsTable | None,
    service: Service | None,
    start: Start,
    folder: str,
    as_json: bool,
) -> None:
    """Find lost, duplicated and reordered records, and unequal replicas.

    Compares the segment files of all replicas in --data with each other and with the clients' history. The exit code is
    0 when nothing is wrong, 1 when something is, 2 when there was nothing to judge or the audit could not run. With
    --every it is that of all audits until Ctrl-C or SIGTERM, 2 only if none could judge.
    """
    from tanist.spark.jobs import preconditions

    preconditions.audit(folder, topics, histories)
    preconditions.output_file(html)

    def audited(session: Any, say: Callable[[str], None]) -> AuditResult:
        from tanist.spark.jobs.audit.audit import audit_folder

        result = audit_folder(session, folder, histories, topics=topics, findings=findings, progress=say)
        if html is not None:
            from tanist.spark.report.audit_page import write_page

            write_page(html, result, title=folder)
            say(f"the report is {html}")
        return result

    if service is not None:
        ctx.exit(service.run(start, audited, as_json=as_json, verbose=bool(ctx.params.get("verbose"))))
    result = audited(start(), _say)
    _answer(as_json, lambda: audit_json(result), lambda: echo(audit_lines(result)))
    if not result.clean:
        ctx.exit(EXIT_FOUND)


@spark_command.command("merge-back")
@click.option("--topic", "topics", multiple=True, help="This topic only. Repeatable.  [default: all that was saved]")
@click.option("--apply", is_flag=True, help="Put lost records back. Without it, a dry run that changes nothing.")
@click.option("--mark", is_flag=True, help="Add headers tanist.salvage.* to restored records: where they come from.")
@click.option("--output", type=click.Path(path_type=Path), help="A folder for the verdict on each record, as Parquet.")
@session_options
@client_options
@json_option
@click.pass_context
def merge_back_command(
    ctx: click.Context,
    topics: tuple[str, ...],
    apply: bool,
    mark: bool,
    output: Path | None,
    start: Start,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Put records that replicas have dropped back into topics.

    Puts back only records that the topics lack, so it can be repeated: it finds what an earlier run restored. The exit
    code is 0 when it is done, 1 when a partition could not be repaired, 2 when there is no salvage or the job could not
    run.
    """
    from tanist.spark.jobs import preconditions
    from tanist.spark.jobs.merge_plan import planned
    from tanist.spark.topic.options import connecting_to

    addresses, options = _cluster(bootstrap, folder)
    preconditions.output_folder(output)
    plan = planned(folder, connecting_to(addresses, options), topics)
    spark = start()
    from tanist.spark.jobs.merge_back import merge_back

    result = merge_back(
        spark,
        folder,
        addresses,
        topics=topics,
        plan=plan,
        apply=apply,
        mark=mark,
        output=output,
        options=options,
        progress=_say,
    )
    _answer(as_json, lambda: asdict(result), lambda: tell_merge(result))
    if result.problems:
        ctx.exit(1)


@spark_command.command("story")
@click.option(
    "--port", type=click.IntRange(1024, 65000), default=29092, show_default=True, help="The first broker's port."
)
@click.option("--keep", type=click.Path(path_type=Path), help="An empty folder for the cluster, history and reports.")
@session_options
def story_command(port: int, keep: Path | None, start: Start) -> None:
    """Break a cluster, audit it, and restore its topic.

    A power loss with ELR off, an audit, the merge-back, and a second audit that finds nothing.
    """
    from tanist.spark.jobs import preconditions

    if keep is not None:
        preconditions.empty_folder(keep)
    from tanist.spark.jobs.story import StoryFailed, tell

    with tempfile.TemporaryDirectory(prefix="tanist-story-") as scratch:
        folder = Path(scratch) if keep is None else keep
        folder.mkdir(parents=True, exist_ok=True)

        def tell_audit(name: str, result: AuditResult) -> None:
            if keep is not None:
                from tanist.spark.report.audit_page import write_page

                write_page(folder / f"audit-{name}.html", result, title=f"the story, {name} the merge-back")
            echo(["", *audit_lines(result), ""])

        try:
            story = tell(start(), folder, port=port, say=_say, on_audit=tell_audit)
        except StoryFailed as error:
            raise click.ClickException(f"the story did not go as expected: {error}") from error
    merged = story.merged
    if merged is not None:
        click.echo(
            f"{story.acknowledged} records were acknowledged, {len(story.lost)} of them lost, and found by the audit; "
            f"{merged.restored} were put back, and the second audit is clean. Of transactions, "
            f"{merged.count('aborted')} aborted and {merged.count('undecided')} undecided records were left out."
        )


@spark_command.command("ingest")
@click.argument("table", type=Place(file_okay=False))
@click.option("--topic", "topics", multiple=True, required=True, help="Repeatable.")
@click.option("--kind", type=click.Choice(["delta", "parquet"]), default="delta", show_default=True)
@click.option(
    "--checkpoint",
    type=Place(file_okay=False),
    metavar="PLACE",
    help="A folder for how far the query has come, or an address that Spark has a jar for.  [default: in TABLE]",
)
@click.option(
    "--every",
    metavar="INTERVAL",
    help='Keep running, a micro-batch every INTERVAL ("5 seconds").  [default: stop at the end]',
)
@click.option(
    "--option",
    "options",
    type=key_value,
    metavar="KEY=VALUE",
    multiple=True,
    help="An option of the `tanist` source. Repeatable.",
)
@session_options
@client_options
@json_option
def ingest_command(
    table: str,
    topics: tuple[str, ...],
    kind: Any,
    checkpoint: str | None,
    every: str | None,
    options: tuple[tuple[str, str], ...],
    start: Start,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Append the records of topics to a table, each once.

    The same command continues where the last one ended. TABLE is a folder, or s3://BUCKET/PATH with --checkpoint: a
    Delta table, partitioned by topic and partition, or in a folder only Parquet files with --kind parquet.
    """
    from tanist.spark.jobs.tables import fit_to_ingest

    addresses, more = _cluster(bootstrap, folder)
    servers, more = format_bootstrap(addresses), more | dict(options)
    fit_to_ingest(servers, topics, table, kind, every, more, checkpoint=checkpoint)
    spark = start()
    from tanist.spark.jobs.ingest import ingest

    result = ingest(
        spark, servers, topics, table, kind=kind, checkpoint=checkpoint, every=every, options=more, progress=_say
    )
    _answer(as_json, lambda: asdict(result), lambda: echo([ingest_line(result)]))


@spark_command.command("egress")
@click.argument("table", type=Place(exists=True, file_okay=False))
@click.option("--topic", help="Write all records to this topic.  [default: each to the topic it came from]")
@click.option("--by-key", is_flag=True, help="Choose partitions by the records' keys, instead of keeping them.")
@session_options
@client_options
@json_option
def egress_command(
    table: str,
    topic: str | None,
    by_key: bool,
    start: Start,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Write the records of a table into topics, at least once.

    TABLE is a table that `tanist spark ingest` made.
    """
    from tanist.spark.jobs.tables import fit_to_egress

    addresses, options = _cluster(bootstrap, folder)
    servers = format_bootstrap(addresses)
    fit_to_egress(servers, table, topic, keep_partitions=not by_key, options=options)
    spark = start()
    from tanist.spark.jobs.ingest import egress

    count = egress(spark, table, servers, topic=topic, keep_partitions=not by_key, options=options, progress=_say)
    _answer(as_json, lambda: {"records": count}, lambda: click.echo(f"{many(count, 'record')} written"))


@spark_command.command("seeds")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), metavar="TABLE", required=True)
@click.option("--seeds", type=parsed, metavar="A..B", help="Which to play, both ends included.")
@click.option(
    "--draw", "draw_count", type=click.IntRange(min=1), metavar="N", help="N fresh seeds from the system's entropy."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(SEEDS),
    metavar="KIND",
    help=f"{', '.join(SEEDS)}: options of `tanist lab run`, but for the first; the last compares --rf, --min-isr and "
    "--strategy. Repeatable.  [default: plain]",
)
@click.option("--rf", "factors", multiple=True, type=click.IntRange(1, 9), help="Of settings. Repeatable.  [3]")
@click.option("--min-isr", "least", multiple=True, type=click.IntRange(1, 9), help="Likewise.  [1 and 2]")
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    type=click.Choice(["None", "Balanced", "Aggressive"]),
    help="unclean.recovery.strategy, likewise.  [all]",
)
@click.option("--down-max", type=click.IntRange(0, 9), help="Of settings: at most so many brokers down at once.  [3]")
@click.option("--fault", "faults", multiple=True, metavar="KIND", help="Only this kind of fault. Repeatable.")
@click.option("--mutate", metavar="RULE", help="Break a rule first, for example A2.")
@click.option(
    "--shrink",
    "shrink_s",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Shrink a failure for so long; 0: do not shrink.",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="A file for the report with pictures.")
@session_options
@json_option
@click.pass_context
def seeds_command(
    ctx: click.Context,
    output: Path,
    seeds: range | None,
    draw_count: int | None,
    kinds: tuple[str, ...],
    factors: tuple[int, ...],
    least: tuple[int, ...],
    strategies: tuple[str, ...],
    down_max: int | None,
    faults: tuple[str, ...],
    mutate: str | None,
    shrink_s: float,
    html: Path | None,
    start: Start,
    as_json: bool,
) -> None:
    """Play seeds of the simulator into a table, and report.

    TABLE is a folder of Parquet files, a row for each seed and kind. A run that the table has is not played again, so
    the same seeds go on where a job has stopped. The first line names the seeds that --draw has drawn. Without --seeds
    and --draw the command only reports. Seeds that fail are shrunk, and kept in TABLE/_failures for `tanist lab
    replay`; those in which a setting lost acknowledged records are in TABLE/_losses. The exit code is 0 when no seed
    violates a property, 1 when one does, 2 when nothing could be played or judged.
    """
    from tanist.spark.jobs import preconditions

    if seeds is not None and draw_count is not None:
        raise click.UsageError("--seeds names the seeds and --draw draws them: give one of the two", ctx)
    preconditions.of_this_machine(output)
    preconditions.output_file(html)
    from tanist.spark.jobs.seeds import lots, table

    table.fit_to_hold(output)
    asked = lots.asked(
        kinds, factors=factors, least=least, strategies=strategies, down_max=down_max, faults=faults, mutation=mutate
    )
    chosen = draw(draw_count) if draw_count is not None else None if seeds is None else Seeds(seeds)
    if chosen is not None and chosen.drawn:
        _say(f"drawn: seeds {chosen}; to go on after a stop: --seeds {chosen}")
    spark, into = start(), table.SeedTable(output)
    from tanist.spark.jobs.seeds.job import play_seeds
    from tanist.spark.jobs.seeds.summary import summaries

    if chosen is not None:
        play_seeds(spark, into, asked, chosen.numbers, shrink_s=shrink_s, progress=_say)
    found = summaries(spark, into)
    if html is not None:
        from tanist.spark.report.seeds_page import write_page

        write_page(html, into, found)
        _say(f"the report is {html}")
    numbers = None if chosen is None else [chosen.numbers.start, chosen.numbers.stop - 1]
    _answer(
        as_json,
        lambda: {"code": into.code, "seeds": numbers, "kinds": [each.as_json() for each in found]},
        lambda: tell_seeds(into, found),
    )
    unjudged = [each.lot.name for each in found if each.lot.kind == lots.SETTINGS and not each.is_judged]
    if unjudged:
        raise NotJudged(f"no record was acknowledged with {'; '.join(unjudged)}: nothing to lose")
    if not found:
        raise NotJudged(f"{output} has no seed of this code: give --draw or --seeds")
    if any(each.violations for each in found):
        ctx.exit(EXIT_FOUND)


@spark_command.command("package")
@click.argument("archive", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def package_command(archive: Path, as_json: bool) -> None:
    """Pack what the workers of a Spark cluster need.

    ARCHIVE, a .tar.gz, gets this tanist and the packages that it imports. With it the workers of a cluster need no
    install: only Spark, and a Python of the same version on the same system. Prints the options that bring it to them.
    """
    from tanist.spark.jobs import preconditions
    from tanist.spark.worker_archive import SUFFIXES, machine, python, write_archive

    preconditions.output_file(archive)
    if not archive.name.endswith(SUFFIXES):
        raise click.UsageError(f"Spark unpacks archives by their names: end {archive.name} with .tar.gz")
    written = write_archive(archive)
    needs = {"python": python(), "machine": machine()}
    found = {**asdict(written), "path": str(written.path), **needs, "conf": written.conf}
    _answer(as_json, lambda: found, lambda: tell_package(written, **needs))
