"""OpenSSL's errors in words, for the operator's log and for commands."""

from __future__ import annotations

import ssl

_ALERT = "_ALERT_"


def in_words(error: ssl.SSLError) -> str:
    """What is wrong, as this side sees it."""
    return (error.reason or str(error)).replace("_", " ").lower()


def alert_of(error: ssl.SSLError) -> str | None:
    """What the other side says is wrong; None: it has said nothing."""
    _, found, said = (error.reason or str(error)).partition(_ALERT)
    return said.replace("_", " ").lower() if found else None
