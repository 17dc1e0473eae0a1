"""TLS handshakes: how a connection comes to its keys, and what keeps strangers from taking memory or time by them.

A connection that has said nothing costs its socket and a timer. What a handshake needs is made when its first byte is
that of a TLS record; another first byte gets no answer at all, since Kafka's clients take an alert for the length of a
frame. At most `HANDSHAKES_MAX` are under way: one more takes the place of that which has been silent for longest.
After `DEADLINE_MS` a connection without keys is closed. A handshake that fails says so to the other side (an alert, and
the end of the stream), and to the network's owner.

The loop makes a few steps in a pass. Those that take a millisecond or more (RSA, certificates of clients) are made by
threads. A thread has a connection's SSLObject to itself: the loop does not read the socket meanwhile.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from time import time as now_s
from typing import TYPE_CHECKING, Final, Protocol

from tanist.runtime.ports.loop import HeapTimer, Loop
from tanist.runtime.ports.workers import Workers
from tanist.runtime.security.words import alert_of, in_words
from tanist.security.ssl_principal import subject_name

if TYPE_CHECKING:
    from tanist.runtime.security.profile import TlsProfile

HANDSHAKES_MAX: Final = 512
DEADLINE_MS: Final = 10_000
"""From the opening of the connection on."""

THREADS: Final = 2

STEPS_PER_PASS: Final = 8
"""So many steps of handshakes the loop makes, half a millisecond each, before others get their turn."""

_LINGER_MS: Final = 1_000
"""After a failure: so long the other side has to read why."""

_LINGER_BYTES: Final = 262_144

_TLS_RECORD: Final = 0x16

OnFailed = Callable[[str, str, str, bool], None]
"""(profile, peer, reason, whether it was dialled)"""


class Shaking(Protocol):
    """The connection, as its handshake sees it."""

    @property
    def peer(self) -> str: ...

    def receive(self) -> memoryview: ...

    def watch(self, on: bool) -> None: ...

    def push(self, data: bytes = b"") -> None: ...

    def shut_down_sending(self) -> None: ...

    def established(
        self, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, identity: str | None
    ) -> None: ...

    def end(self, reason: str) -> None: ...


class Handshakes:
    """Those of one network."""

    def __init__(self, loop: Loop, profile_of: Callable[[str], TlsProfile], on_failed: OnFailed) -> None:
        self.loop = loop
        self.profile_of = profile_of
        self.on_failed = on_failed
        self.workers = Workers(loop, "handshake", THREADS)
        self._under_way: dict[Handshake, None] = {}
        """In the order in which they last heard of their peers."""
        self._steps_left = STEPS_PER_PASS
        self._renews = False

    def may_step(self) -> bool:
        """Whether the loop may make another step in this pass. If not, the socket asks again in the next."""
        if self._steps_left == 0:
            return False
        self._steps_left -= 1
        if not self._renews:
            self._renews = True
            self.loop.post(self._renew)
        return True

    def _renew(self) -> None:
        self._renews = False
        self._steps_left = STEPS_PER_PASS

    @property
    def count(self) -> int:
        """Those for which memory is held."""
        return len(self._under_way)

    def heard(self, handshake: Handshake) -> None:
        """Its peer has sent something, or it begins. Another one may have to give way."""
        self._under_way.pop(handshake, None)
        if len(self._under_way) >= HANDSHAKES_MAX:
            longest = next((each for each in self._under_way if not each.busy), handshake)
            longest.fail("there are too many handshakes at once, and this one has waited longest")
            if longest is handshake:
                return
        self._under_way[handshake] = None

    def ended(self, handshake: Handshake) -> None:
        self._under_way.pop(handshake, None)

    def close(self) -> None:
        self.workers.close()


class Handshake:
    """Of one connection."""

    __slots__ = (
        "_connection", "_deadline", "_drained", "_failed", "_handshakes", "_host", "_incoming", "_outgoing", "_profile",
        "_profile_name", "_tls", "busy",
    )  # fmt: skip

    def __init__(self, handshakes: Handshakes, connection: Shaking, profile: str, host: str | None) -> None:
        """`host`: the one that was dialled; None: the other side begins."""
        self._handshakes = handshakes
        self._connection = connection
        self._profile_name = profile
        self._profile: TlsProfile | None = None
        self._host = host
        self._tls: ssl.SSLObject | None = None
        self._incoming: ssl.MemoryBIO | None = None
        self._outgoing: ssl.MemoryBIO | None = None
        self.busy = False
        """A thread works on it."""
        self._failed = ""
        self._drained = 0
        loop = handshakes.loop
        self._deadline: HeapTimer = loop.call_at(loop.now_ms() + DEADLINE_MS, self._timed_out)

    def say_hello(self) -> None:
        """The connection that was dialled is there."""
        self._begin()
        self._step()

    def ended(self) -> None:
        """The connection has ended."""
        self._deadline.cancel()
        self._release()

    def on_readable(self) -> None:
        if self.busy or not self._handshakes.may_step():
            return
        connection = self._connection
        try:
            data = connection.receive()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._closed(error.strerror or str(error))
            return
        if not data:
            self._closed("closed by the other side")
            return
        if self._failed:
            self._drained += len(data)
            if self._drained > _LINGER_BYTES:
                connection.end(self._failed)
            return
        if self._tls is None:
            if data[0] != _TLS_RECORD:
                self._report("a client without TLS came to it; let it use security.protocol=SSL (or SASL_SSL)")
                connection.end("not a TLS client")
                return
            self._begin()
        self._handshakes.heard(self)
        if self._incoming is not None:
            self._incoming.write(data)
        self._step()

    def fail(self, reason: str) -> None:
        """End it: the alert that TLS has written, if there is one, goes to the other side."""
        if self._failed:
            return
        self._failed = f"TLS handshake failed: {reason}"
        self._report(reason)
        alert = self._outgoing.read() if self._outgoing is not None and not self.busy else b""
        self._release()
        if not alert:
            self._connection.end(self._failed)
            return
        self._connection.push(alert)
        self._connection.shut_down_sending()
        self._deadline.cancel()
        loop = self._handshakes.loop
        self._deadline = loop.call_at(loop.now_ms() + _LINGER_MS, lambda: self._connection.end(self._failed))
        self._connection.watch(True)

    # -- inner

    def _begin(self) -> None:
        profile = self._profile = self._handshakes.profile_of(self._profile_name)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = profile.wrap(self._incoming, self._outgoing, self._host)
        except ValueError as error:  # a host that cannot be one
            self.fail(str(error))
        else:
            self._handshakes.heard(self)

    def _release(self) -> None:
        self._handshakes.ended(self)
        self._tls = self._incoming = self._outgoing = self._profile = None

    def _step(self) -> None:
        tls, profile = self._tls, self._profile
        if tls is None or profile is None:
            return
        if self._host is None and not profile.is_slow:
            self._stepped(_advance(tls))
            return
        self.busy = True
        self._connection.watch(False)
        self._handshakes.workers.submit(lambda: _advance(tls), self._stepped_in_thread)

    def _stepped_in_thread(self, outcome: str | BaseException | None) -> None:
        self.busy = False
        if self._tls is None:
            return  # ended meanwhile
        self._stepped(repr(outcome) if isinstance(outcome, BaseException) else outcome)
        if self._tls is not None:
            self._connection.watch(True)

    def _stepped(self, outcome: str | None) -> None:
        tls, incoming, outgoing = self._tls, self._incoming, self._outgoing
        if tls is None or incoming is None or outgoing is None or self._profile is None:
            return
        if outcome is not None and outcome is not _GOES_ON:
            self.fail(outcome)
            return
        if outgoing.pending:
            self._connection.push(outgoing.read())
        if outcome is _GOES_ON or self._tls is None:
            return
        try:
            certificate = tls.getpeercert(binary_form=True)
            identity = None if certificate is None or not self._shows_identity() else subject_name(certificate)
            self._check(tls)
        except ValueError as error:
            self.fail(str(error))
            return
        self._deadline.cancel()
        self._release()
        self._connection.watch(True)
        self._connection.established(tls, incoming, outgoing, identity)

    def _shows_identity(self) -> bool:
        return self._host is not None or (self._profile is not None and self._profile.asks_clients)

    def _check(self, tls: ssl.SSLObject) -> None:
        """What OpenSSL does not check. `ValueError`: the handshake is void."""
        allowed = self._profile.suites if self._profile is not None else None
        cipher = tls.cipher()
        if allowed is not None and cipher is not None and cipher[0] not in allowed:
            raise ValueError(f"{cipher[0]} is not among ssl.cipher.suites")
        if tls.session_reused and self._host is None:
            # The certificate was verified with the first handshake of the session, which may be a while ago.
            until = (tls.getpeercert() or {}).get("notAfter")
            if isinstance(until, str) and ssl.cert_time_to_seconds(until) < now_s():
                raise ValueError("certificate not accepted: certificate has expired")

    def _closed(self, reason: str) -> None:
        if self._failed:
            self._connection.end(self._failed)
            return
        if self._tls is not None:
            self._report(f"{reason} during the handshake")
        self._connection.end(f"TLS handshake failed: {reason}" if self._tls is not None else reason)

    def _timed_out(self) -> None:
        if self._tls is None:
            self._connection.end(
                f"no TLS handshake within {DEADLINE_MS} ms"
            )  # one that says nothing is not worth a line
        else:
            self.fail(f"not done within {DEADLINE_MS} ms")

    def _report(self, reason: str) -> None:
        self._handshakes.on_failed(self._profile_name, self._connection.peer, reason, self._host is not None)


_GOES_ON: Final = "goes on"


def _advance(tls: ssl.SSLObject) -> str | None:
    """None: the handshake is done; `_GOES_ON`: the other side is to speak; else what is wrong."""
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return _GOES_ON
    except ssl.SSLCertVerificationError as error:
        return f"certificate not accepted: {error.verify_message}"
    except ssl.SSLError as error:
        said = alert_of(error)
        return in_words(error) if said is None else f"the other side says: {said}"
    except (OSError, ValueError) as error:
        return str(error)
    return None
