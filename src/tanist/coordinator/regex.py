"""Regular expressions that clients send: RE2's, as in Apache Kafka since 4.0.

With a backtracking engine one client could stop a broker.
"""

from __future__ import annotations

from collections.abc import Callable


class InvalidRegex(Exception):
    """The expression does not compile; the message has the reason."""


def full_matcher(regex: str) -> Callable[[str], bool]:
    """Whether the whole expression matches a name. `InvalidRegex` if it does not compile."""
    import re2  # imported late: only a coordinator of groups with expressions needs it

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(regex, options)
    except re2.error as error:
        detail = error.args[0] if error.args else error
        raise InvalidRegex(detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)) from error
    return lambda name: compiled.fullmatch(name) is not None
