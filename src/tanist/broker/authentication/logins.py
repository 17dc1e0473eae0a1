"""By what this node says to other nodes who it is.

Owns the two logins of a node's channels: those to brokers, and those to controllers. None where the listener there
does not ask.
"""

from __future__ import annotations

from tanist.broker.authentication.config import Login
from tanist.broker.config import NodeConfig
from tanist.broker.network.channel import ChannelLogin
from tanist.broker.network.throttled import Throttled
from tanist.events.process import PeerAuthenticationFailed
from tanist.events.stream import Events
from tanist.ports import Clock, Random
from tanist.security.sasl.client import Credentials

_FAILED_INTERVAL_MS = 1_000


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
