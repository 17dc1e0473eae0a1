"""The message of a command that fails: the one place where exceptions become words.

Text: `Error: ` and one line that says what is wrong and what to do; after a mistake on the command line a second line
names the help. With --json: one line on standard error, {"error": {"kind": ..., "message": ..., ...}}. Standard output
has results only. The exit code is 1, or 2 where the command line is wrong; a command may have more of its own. An
exception that is not known here ends in a traceback, which is a bug.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import click

from tanist.runtime.client.acknowledged import LedgerError
from tanist.runtime.client.client import AuthenticationFailed, KafkaError, OutcomeUnknown, Unreachable, Unsupported
from tanist.runtime.client.quorum import NoQuorum
from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.runtime.format import FormatError
from tanist.runtime.ports.file_errors import remedy
from tanist.wire.errors import ErrorCode

EXIT_FAILED = 1
EXIT_USAGE = 2

_HINTS: dict[int, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`tanist topics list` shows which topics there are",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "each node needs delegation.token.secret.key, the same on all",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "tokens are for who has said by SASL or a certificate who he is, and not by a token: see --client-config"
    ),
    ErrorCode.TOPIC_ALREADY_EXISTS: "`tanist topics describe` shows it, `tanist topics alter` changes it",
}
"""The next step, by Kafka's errors, where the message does not say it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in words."""

    kind: str
    """usage, cluster, format, kafka, unknown (whether a change was made), authentication, no-quorum, unreachable,
    unsupported, file, aborted, or failed."""
    message: str
    exit_code: int = EXIT_FAILED
    hint: str | None = None
    code: str | None = None
    """Kafka's name of the error, if a broker answered with one."""

    def as_json(self) -> dict[str, object]:
        shown: dict[str, object] = {"kind": self.kind, "message": self.message}
        if self.code is not None:
            shown["code"] = self.code
        if self.hint is not None:
            shown["hint"] = self.hint
        return {"error": shown | {"exit_code": self.exit_code}}


def problem_of(error: BaseException) -> Problem | None:
    """The problem in words; None of an exception that is not known here."""
    match error:
        case click.UsageError():
            return _usage(error)
        case click.ClickException():
            cause = None if error.__cause__ is None else problem_of(error.__cause__)
            return Problem(
                "failed" if cause is None else cause.kind,
                error.format_message(),
                error.exit_code,
                code=None if cause is None else cause.code,
            )
        case click.Abort():
            return Problem("aborted", "aborted")
        case ClusterError():
            return Problem("cluster", str(error))
        case FormatError():
            return Problem("format", str(error))
        case KafkaError():
            hint = _HINTS.get(error.code) if "`tanist " not in str(error) else None
            return Problem("kafka", str(error), hint=hint, code=error.name)
        case OutcomeUnknown():
            return Problem("unknown", str(error))
        case NoQuorum():
            return Problem("no-quorum", f"{error}, and nothing was asked for. See `tanist status`")
        case Unreachable() if error.node_id is not None:
            return Problem("unreachable", f"{error.in_words}: `tanist status` shows whether it runs")
        case Unreachable():
            return Problem(
                "unreachable",
                f"{error.in_words}: check the address, and whether the cluster is up (`tanist status`)",
            )
        case Unsupported():
            return Problem("unsupported", f"{error}: this cluster is too old, or too new, for the command")
        case AuthenticationFailed():
            return Problem("authentication", f"{error}; --client-config says who you are")
        case LedgerError():
            return Problem("file", str(error))
        case OSError() if (remedied := remedy(error)) is not None:
            return Problem("file", remedied)
        case OSError() if error.filename is not None and error.strerror:
            return Problem("file", f"{error.filename}: {error.strerror}")
    return None


def _usage(error: click.UsageError) -> Problem:
    message = error.format_message()
    if isinstance(error, click.NoSuchOption):
        near = " or ".join(f"`{each}`" for each in sorted(error.possibilities or ()))
        message = f"no such option '{error.option_name}'" + (f"; did you mean {near}?" if near else "")
    elif message[:1].isupper() and message.startswith(("Invalid value", "No such", "Missing", "Got unexpected")):
        # click's own sentences, in the form of ours
        message = (message[0].lower() + message[1:]).removesuffix(".")
    hint = None if error.ctx is None else f"`{error.ctx.command_path} --help` says more"
    return Problem("usage", message, error.exit_code, hint)


def show(problem: Problem, *, as_json: bool) -> None:
    """On standard error."""
    if as_json:
        click.echo(json.dumps(problem.as_json()), err=True)
        return
    click.echo(f"Error: {problem.message}", err=True)
    if problem.hint is not None:
        click.echo(problem.hint, err=True)
