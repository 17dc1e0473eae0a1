"""Which Spark a job runs on: its options, its start without Java's chatter, and its errors in a line or two.

Java is started by the command, when all that needs no Java has been looked at. What Java writes on standard error
while it runs goes into a file that nobody sees; `--verbose` leaves it on the terminal, and adds Python's traceback to
an error.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import click

from tanist.cli.errors import problem_of
from tanist.cli.options import key_value

Start = Callable[[], Any]
"""Gives the session; the first call starts Java."""

EXIT_NOT_JUDGED = 2
_REASON_MAX = 300
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)")
"""The last line of a traceback of Python's, in the text of an error of Java's."""


class NotJudged(click.ClickException):
    """The job did not run, or had nothing to look at. Not to be taken for an audit that found something."""

    exit_code = EXIT_NOT_JUDGED


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--master`, `--conf` and `--verbose`; the command gets `start`."""

    @wraps(command)
    def with_session(*args: Any, master: str, conf: tuple[tuple[str, str], ...], verbose: bool, **others: Any) -> Any:
        return command(*args, start=partial(_started, master, conf, verbose), **others)

    for option in (
        click.option("--verbose", is_flag=True, help="Show Java's output, and tracebacks."),
        click.option(
            "--conf", "conf", type=key_value, metavar="KEY=VALUE", multiple=True, help="A setting of Spark. Repeatable."
        ),
        click.option(
            "--master",
            default="local[*]",
            show_default=True,
            help="The Spark cluster, such as spark://host:7077. Its workers need the same paths, and tanist with the "
            "extra `spark`, or what `tanist spark package` packs.",
        ),
    ):
        with_session = option(with_session)
    return with_session


def refused(error: Exception, *, verbose: bool) -> NotJudged | None:
    """The error in words, if it is not a bug: whatever ends a job so, the job has judged nothing."""
    from tanist.spark.java_home import NoJava

    if isinstance(error, click.ClickException | click.Abort):
        return None
    if isinstance(error, ValueError | NoJava):
        return NotJudged(str(error))
    known = problem_of(error)
    reason = None
    if known is not None:
        reason = known.message
    elif isinstance(error, OSError):
        reason = str(error.strerror or error)
    elif type(error).__module__ == "_duckdb":
        reason = f"DuckDB failed: {_cause(str(error)) or type(error).__name__}"
    elif type(error).__module__.startswith(("pyspark", "py4j")):
        reason = _own_reason(str(error)) or (
            f"Spark failed: {_cause(str(error)) or type(error).__name__}. --verbose shows all of it"
        )
    if reason is None:
        return None
    if verbose:
        traceback.print_exception(error)
    return NotJudged(reason)


def _own_reason(text: str) -> str | None:
    """What a task of ours has said of what it was given; None of all else."""
    raised = _RAISED.findall(text)
    name, _, said = raised[-1].partition(": ") if raised else ("", "", "")
    return said if name.startswith("tanist.") else None


def _cause(text: str) -> str:
    """Of Spark's pages of stack what Python has raised or the last cause says most, else the first line that is not
    Py4J's own.
    """
    raised = _RAISED.findall(text)
    if raised:
        return str(raised[-1][:_REASON_MAX].rstrip("."))
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    own = [line for line in lines if not line.startswith("An error occurred while calling")]
    return (causes[-1:] or own[:1] or [""])[0][:_REASON_MAX].rstrip(".")


def _started(master: str, conf: tuple[tuple[str, str], ...], verbose: bool) -> Any:
    from tanist.spark import session

    settings = {"spark.master": master, **dict(conf)}
    click.echo("  starting Spark", err=True)
    if verbose:
        return session(**settings)
    with tempfile.TemporaryFile() as noise, errors_into(noise.fileno()):
        return session(**settings)


@contextmanager
def errors_into(descriptor: int) -> Iterator[None]:
    """A process that starts meanwhile keeps this as its standard error; this process gets its own back."""
    sys.stderr.flush()
    own = os.dup(2)
    try:
        os.dup2(descriptor, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(own, 2)
        os.close(own)
