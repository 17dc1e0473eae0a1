"""Of `tanist spark audit`: its engine; `--every`, with metrics over HTTP; and `--findings`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial, wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tanist.cli.output.spark_reports import audit_json, audit_lines, echo
from tanist.cli.spark.session import NotJudged, Start, refused
from tanist.installed import add_extra
from tanist.runtime.client.client import Address, parse_bootstrap

if TYPE_CHECKING:
    from tanist.spark.jobs import Progress
    from tanist.spark.jobs.audit.repeated import Audits
    from tanist.spark.jobs.audit.result import AuditResult


_DEFAULT = ParameterSource.DEFAULT


@dataclass(frozen=True, slots=True)
class Service:
    """`--every`, and `--metrics`."""

    every_s: float
    metrics: Address | None

    def run(self, start: Start, audit: Callable[[Any, Progress], AuditResult], *, as_json: bool, verbose: bool) -> int:
        """Audits until Ctrl-C or SIGTERM; the exit code."""
        from tanist.spark.jobs.audit.repeated import Audits, repeat, until_interrupted

        audits = Audits()
        with _served(self.metrics, audits):
            session = start()
            judged, unjudged = _Reports(as_json).report, partial(_unjudged, session, verbose)
            once = partial(audit, session, _silent)
            with _interrupted():
                until_interrupted(
                    session,
                    lambda stopped: repeat(
                        once, self.every_s, audits, judged=judged, unjudged=unjudged, stopped=stopped
                    ),
                )
        return audits.exit_code


def service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--every` and `--metrics`; the command gets `service`, None without --every."""

    @wraps(command)
    def with_service(*args: Any, every: str | None, metrics: str | None, **others: Any) -> Any:
        from tanist.spark.jobs.preconditions import interval_s

        if metrics is not None and every is None:
            raise click.UsageError("--metrics needs --every: a single audit has its exit code")
        service = None if every is None else Service(interval_s(every), _address(metrics))
        return command(*args, service=service, **others)

    metrics = click.option("--metrics", metavar="HOST:PORT", help="With --every: serve metrics for Prometheus.")
    every = click.option("--every", metavar="INTERVAL", help='Keep running, an audit every INTERVAL ("10 minutes").')
    return every(metrics(with_service))


def engine_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--engine`, behind `session_options`; `start` gives what `audit_folder` takes."""

    @wraps(command)
    def with_engine(*args: Any, engine: str | None, start: Start, **others: Any) -> Any:
        ctx = click.get_current_context()
        given = [f"--{name}" for name in ("master", "conf") if ctx.get_parameter_source(name) is not _DEFAULT]
        if engine == "duckdb" and given:
            raise click.UsageError(f"{given[0]} is Spark's: leave it out, or --engine duckdb")
        # Who says something about Spark, or comes by spark-submit, has Spark.
        by_spark = engine == "spark" or (engine is None and (given or "PYSPARK_GATEWAY_PORT" in os.environ))
        return command(*args, start=start if by_spark else _duckdb, **others)

    return click.option(
        "--engine",
        type=click.Choice(["duckdb", "spark"]),
        help="DuckDB in this process, without Java; or Spark, for more than a machine holds.  [duckdb; spark with "
        "--master or --conf]",
    )(with_engine)


def _duckdb() -> Any:
    if find_spec("duckdb") is None:
        raise NotJudged(f"an audit without Spark needs DuckDB: {add_extra('spark')}, or take --engine spark")
    from tanist.spark.jobs.audit.by_duckdb.session import DuckDB

    return DuckDB()


def findings_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--findings` and `--format`; the command gets `findings`, a table that can be written, or None."""

    @wraps(command)
    def with_table(*args: Any, place: str | None, table_format: Any, **others: Any) -> Any:
        from tanist.spark.jobs.audit.findings_table import FindingsTable

        findings = None if place is None else FindingsTable(place, table_format)
        if findings is not None:
            findings.check()
        return command(*args, findings=findings, **others)

    kinds = click.Choice(["delta", "parquet"])
    table_format = click.option("--format", "table_format", type=kinds, default="delta", help="Of --findings.  [delta]")
    place = click.option(
        "--findings", "place", metavar="PLACE", help="A table to add all findings to: a folder, or s3://BUCKET/PATH."
    )
    return place(table_format(with_table))


def _address(text: str | None) -> Address | None:
    if text is None:
        return None
    try:
        (found,) = parse_bootstrap(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not host:port", param_hint="--metrics") from None
    return found


def _unjudged(session: Any, verbose: bool, error: Exception) -> None:
    """Say it, and raise what no later audit can mend."""
    refusal = refused(error, verbose=verbose)
    if refusal is None:
        raise error
    click.echo(f"{_now()}  not judged: {refusal.message}", err=True)
    if not _is_alive(session):
        raise refusal from error


def _silent(_step: str) -> None:
    """Of an audit every few minutes nobody follows the steps."""


@contextmanager
def _served(metrics: Address | None, audits: Audits) -> Iterator[None]:
    if metrics is None:
        yield
        return
    from tanist.runtime.process.metrics_http import served_aside

    with served_aside(*metrics, {"/metrics": lambda: audits.page}, _failed_page):
        yield


def _failed_page(_name: str, error: Exception) -> None:
    raise error  # a page is a text that is there


@contextmanager
def _interrupted() -> Iterator[None]:
    """By SIGTERM as by Ctrl-C, whose handler PySpark has replaced."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, signal.default_int_handler) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before):
            signal.signal(each, handler)


class _Reports:
    """Each result: for programs as a line of JSON, for people in full when the counts are others than before."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._counts: dict[Any, int] | None = None

    def report(self, result: AuditResult) -> None:
        if self._as_json:
            click.echo(json.dumps({"time": _now(), **audit_json(result)}))
            return
        lines = audit_lines(result)
        same, self._counts = result.counts == self._counts, result.counts
        echo([f"{_now()}  {lines[-1]}", *([] if same else lines[:-1])])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _is_alive(session: Any) -> bool:
    """Whether Spark's Java still takes a job. DuckDB ends with this process only."""
    from tanist.spark.jobs.audit.by_duckdb.session import DuckDB

    if isinstance(session, DuckDB):
        return True
    try:
        return bool(session.range(1).count())
    except Exception as error:
        if refused(error, verbose=False) is None:
            raise
        return False
