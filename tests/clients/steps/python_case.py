"""What the programs of two Python clients share: the spelling of settings, and a log that says why something fails.

Imports the standard library only. See `tests/clients/step_programs.py`.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def lines_of(logger: str) -> Iterator[list[str]]:
    """What a client has written to its log meanwhile."""
    handler = _Lines()
    logging.getLogger(logger).addHandler(handler)
    try:
        yield handler.lines
    finally:
        logging.getLogger(logger).removeHandler(handler)


def settings(case: dict[str, Any], token_provider: Callable[[str], Any]) -> dict[str, Any]:
    """The arguments of the clients of a case. `token_provider` makes the library's object that gives this token."""
    context = ssl.create_default_context(cafile=case["ca"])
    if "certificate" in case:
        context.load_cert_chain(case["certificate"])
    found = {
        "bootstrap_servers": case["bootstrap"],
        "security_protocol": case["protocol"],
        "ssl_context": context,
    }
    if "mechanism" in case:
        found["sasl_mechanism"] = case["mechanism"]
    if "username" in case:
        found |= {"sasl_plain_username": case["username"], "sasl_plain_password": case["password"]}
    if "token" in case:
        found["sasl_oauth_token_provider"] = token_provider(case["token"])
    return found
