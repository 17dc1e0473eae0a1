"""Properties of nodes with SASL, and clients' logins."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping

from tanist.broker.network.channel import ChannelLogin
from tanist.security.jaas import PLAIN_MODULE, SCRAM_MODULE
from tanist.security.sasl.client import Credentials

_BOTH = "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
PLAIN_JAAS = (
    f'{PLAIN_MODULE} required username="node" password="node-secret" user_node="node-secret" user_alice="alice-secret";'
)
SCRAM_JAAS = f'{SCRAM_MODULE} required username="node" password="node-secret";'

SASL_EVERYWHERE: Mapping[str, str] = {
    "listener.security.protocol.map": _BOTH,
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    **{
        f"listener.name.{name}.{mechanism}.sasl.jaas.config": jaas
        for name in ("plaintext", "controller")
        for mechanism, jaas in (("plain", PLAIN_JAAS), ("scram-sha-256", SCRAM_JAAS), ("scram-sha-512", SCRAM_JAAS))
    },
}
"""Brokers and controllers authenticate to each other by PLAIN."""

_numbers = itertools.count(1)


def seeded(count: int) -> bytes:
    """Bytes that nobody needs to foresee here: another row at each call, the same in each run of a test."""
    return hashlib.shake_256(str(next(_numbers)).encode()).digest(count)


def login(mechanism: str, user: str, password: str, **options: str) -> ChannelLogin:
    """A client's. What it is told of a failure goes to `failures_of`."""
    failures: list[str] = []
    credentials = Credentials(mechanism, {"username": user, "password": password, **options}, seeded)
    made = ChannelLogin(credentials, 5_000, lambda host, port, why: failures.append(why))
    _FAILURES[id(made)] = failures
    return made


def failures_of(made: ChannelLogin) -> list[str]:
    """Why its authentications have failed."""
    return _FAILURES[id(made)]


_FAILURES: dict[int, list[str]] = {}
