"""A cluster in which everybody says who he is: the properties of its nodes, its users, and what clients log in by.

Nodes are `node` to each other, and the clients of a run's workload are `client`: super users, to whom all promises of
the protocol are made as in any run. The subjects of the run (`workload.subjects`) may do what the entries allow.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tanist.broker.logins import ChannelLogin
from tanist.security.jaas import PLAIN_MODULE, SCRAM_MODULE
from tanist.security.sasl.client import Authenticated, Credentials, SaslDialogue
from tanist.security.sasl.outcome import PLAIN, SCRAM_SHA_256
from tanist.wire.schema import Request, Response

CLIENT: Final = "client"
BY_PASSWORD, BY_SCRAM, BY_TOKEN = "bob", "alice", "carol"
"""Subjects: users of PLAIN and of SCRAM, and one who comes by delegation tokens."""
NOBODY: Final = "mallory"
"""Does not say who it is."""
SUBJECTS: Final = (BY_SCRAM, BY_PASSWORD, BY_TOKEN)
GROUP: Final = "accounts"
TOPICS: Final = ("ledger", "ledger-eu", "letters")
"""Of the subjects: one name is a prefix of another."""
METERED_USERS: Final = ("dora", "emil")
"""Of clients with quotas (`sim.metered`)."""
SUPER_USERS: Final = ("User:node", f"User:{CLIENT}", *(f"User:{name}" for name in METERED_USERS))
PASSWORDS: Final = {
    "node": "node-secret",
    CLIENT: "client-secret",
    BY_PASSWORD: "bob-secret",
    **{name: f"{name}-secret" for name in METERED_USERS},
}
"""Of PLAIN."""
TOKEN_SECRET: Final = "secret-of-all"

_TIMEOUT_MS: Final = 3_000
_NEWEST_SHARE: Final = 0.75
_ONCE_SHARE: Final = 0.5
_LISTENERS: Final = ("plaintext", "controller")
_JAAS: Final = f'{PLAIN_MODULE} required username="node" password="{PASSWORDS["node"]}" ' + " ".join(
    f'user_{name}="{password}"' for name, password in PASSWORDS.items()
)
PROPERTIES: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": ";".join(SUPER_USERS),
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": f"{PLAIN},{SCRAM_SHA_256}",
    "sasl.mechanism.inter.broker.protocol": PLAIN,
    "sasl.mechanism.controller.protocol": PLAIN,
    **{f"listener.name.{name}.plain.sasl.jaas.config": f"{_JAAS};" for name in _LISTENERS},
    **{f"listener.name.{name}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;" for name in _LISTENERS},
    "delegation.token.secret.key": TOKEN_SECRET,
    "delegation.token.expiry.check.interval.ms": "2000",
    "connection.failed.authentication.delay.ms": "20",
    "offsets.topic.num.partitions": "1",
}


class _OnceDialogue(SaslDialogue):
    def handle_response(self, response: Response) -> Request | Authenticated:
        step = super().handle_response(response)
        return Authenticated(None) if isinstance(step, Authenticated) else step


class _Once(Credentials):
    """Of a client from before KIP-368, which goes on when its session has ended."""

    def begin(self) -> SaslDialogue:
        return _OnceDialogue(self.mechanism, self._begin())


class Shown(NamedTuple):
    """What a client shows of itself: the options of a mechanism's login module."""

    mechanism: str
    user: str
    password: str
    by_token: bool = False

    def login(self, rng: random.Random) -> ChannelLogin:
        """For channels. What a node says of a failure is no matter: the request gets no answer."""
        options = {"username": self.user, "password": self.password, **({"tokenauth": "true"} if self.by_token else {})}
        credentials = _Once if rng.random() < _ONCE_SHARE else Credentials
        return ChannelLogin(credentials(self.mechanism, options, rng.randbytes), _TIMEOUT_MS, lambda *_: None)


def workload_login(rng: random.Random) -> ChannelLogin:
    """Of the clients that are no subjects."""
    return Shown(PLAIN, CLIENT, PASSWORDS[CLIENT]).login(rng)


@dataclass(slots=True)
class Keys:
    """What the subjects were given, the oldest first. They try old ones too."""

    passwords: list[str] = field(default_factory=lambda: ["never given"])
    """Of the user of SCRAM."""
    tokens: list[tuple[str, str]] = field(default_factory=lambda: [("no-token", "none")])
    """Id, and HMAC as text."""

    def shown_by(self, subject: str, rng: random.Random, *, newest: bool = False) -> Shown:
        """What a subject shows next: mostly the newest that it was given."""
        back = 1 if newest or rng.random() < _NEWEST_SHARE else rng.randint(1, 3)
        if subject == BY_SCRAM:
            return Shown(SCRAM_SHA_256, subject, self.passwords[-min(back, len(self.passwords))])
        if subject == BY_TOKEN:
            return Shown(SCRAM_SHA_256, *self.tokens[-min(back, len(self.tokens))], by_token=True)
        return Shown(PLAIN, subject, PASSWORDS[subject] if back == 1 else "a guess")
