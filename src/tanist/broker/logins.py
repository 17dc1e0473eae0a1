"""By what this node says to other nodes who it is.

Owns the two logins of a node's channels: those to brokers, and those to controllers. None where the listener there
does not ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tanist.broker.config import NodeConfig
from tanist.broker.sasl_properties import Login
from tanist.broker.throttled import Throttled
from tanist.events.process import PeerAuthenticationFailed
from tanist.events.stream import Events
from tanist.ports import Clock, Random
from tanist.security.sasl.client import Credentials

_FAILED_INTERVAL_MS = 1_000


@dataclass(frozen=True, slots=True)
class ChannelLogin:
    """By what a channel authenticates, and who hears that it could not."""

    credentials: Credentials
    timeout_ms: int
    on_failed: Callable[[str, int, str], None]
    """(host, port, why)"""


class Logins:
    """Of one node."""

    __slots__ = ("_failed", "to_brokers", "to_controllers")

    def __init__(self, config: NodeConfig, clock: Clock, random: Random, events: Events) -> None:
        self._failed = Throttled(clock, events, _FAILED_INTERVAL_MS)
        self.to_brokers = self._login(config, config.sasl.between_brokers, random)
        self.to_controllers = self._login(config, config.sasl.to_controllers, random)

    def _login(self, config: NodeConfig, login: Login | None, random: Random) -> ChannelLogin | None:
        if login is None:
            return None
        credentials = Credentials(login.mechanism, login.options, random.bytes)
        return ChannelLogin(credentials, config.request_timeout_ms, self._authentication_failed)

    def _authentication_failed(self, host: str, port: int, problem: str) -> None:
        self._failed.emit(lambda left_out: PeerAuthenticationFailed(host, port, problem, left_out))
