"""As whom a client of this machine connects: the properties of a Kafka client, with their files and randomness.

One for the commands' `--client-config`, Spark's options and all else that is given such properties.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from tanist.client.security import ClientSecurity, client_security


def security_by(properties: Mapping[str, str]) -> ClientSecurity:
    """`ClientConfigError` for properties that no client can connect by."""
    return _security(tuple(sorted(properties.items())))


@lru_cache(maxsize=8)
def _security(properties: tuple[tuple[str, str], ...]) -> ClientSecurity:
    """Kept, so that a password is salted once in a process."""
    return client_security(dict(properties), os.urandom, lambda name: Path(name).read_bytes())
