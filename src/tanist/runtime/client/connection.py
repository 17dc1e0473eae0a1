"""One connection of the client that blocks: the negotiation of versions, who the client is, and one request at a time.

Owns the socket. What may be tried again, and where, is `client.Client`'s matter.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from typing import Final

from tanist import __version__
from tanist.client.errors import meaning_of
from tanist.client.security import ClientSecurity
from tanist.security.sasl.client import Authenticated
from tanist.security.sasl.outcome import SaslError
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.frames import correlation_id_of, decode_response, encode_request
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.schema import Request, Response

Address = tuple[str, int]

ANYBODY: Final = ClientSecurity()
API_VERSIONS: Final = ApiVersionsRequest(client_software_name="tanist", client_software_version=__version__)
"""ApiVersions of our own tools: a node refuses one that does not say which software asks (KIP-511)."""
LONG_WAIT_S = 1.5
_RESPONSE_BYTES_MAX = 1 << 30


class KafkaError(Exception):
    """A broker's answer is an error."""

    def __init__(self, code: int, message: str | None = None, *, final: bool = False) -> None:
        self.code = code
        self._final = final
        self.name = ErrorCode.name_of(code)
        super().__init__(f"{self.name}: {message}" if message else self.name)

    @property
    def retriable(self) -> bool:
        """Whether trying again may help; never when the caller knows better (`final`)."""
        return not self._final and meaning_of(self.code).is_retriable


class NobodyToAsk(KafkaError):
    """Who would have to be asked is not known: nothing was sent."""


class Unsupported(Exception):
    """The broker does not have this request, or no version of it that we have."""


class AuthenticationFailed(Exception):
    """A broker does not believe the client, or the client not the broker. Trying again does not help."""


class BrokerConnection:
    """One connection. Any trouble on it is an `OSError` or a `WireError`, and ends it.

    Where the client is to say who it is, it does so first, and again before that expires (KIP-368):
    `AuthenticationFailed`.
    """

    def __init__(self, address: Address, client_id: str, timeout_s: float, security: ClientSecurity = ANYBODY) -> None:
        self.address = address
        self._client_id = client_id
        self._correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        self._credentials = security.credentials
        self._renew_at: float | None = None
        self._sock = socket.create_connection(address, timeout=timeout_s)
        try:
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if security.tls is not None:
                from tanist.runtime.client import tls  # a command without TLS does not load it

                try:
                    self._sock = tls.secured(self._sock, address[0], security.tls)
                    tls.with_refusals_named(self._negotiate)
                except tls.TlsRefused as error:
                    raise AuthenticationFailed(f"{self}: {error}") from None
            else:
                self._negotiate()
            self._authenticate(timeout_s)
        except BaseException:
            self._sock.close()
            raise

    def version_for(self, request: type[Request], max_version: int | None = None) -> int:
        """The highest version of a request that both sides have. `Unsupported` if there is none."""
        name = request.__name__
        if request.API_KEY not in self._versions:
            raise Unsupported(f"the broker at {self} has no {name}")
        first, last = self._versions[request.API_KEY]
        version = min(last, request.VERSIONS[1], last if max_version is None else max_version)
        if version < max(first, request.VERSIONS[0]):
            raise Unsupported(f"the broker at {self} has {name} {first} to {last}, we have {request.VERSIONS}")
        return version

    def ask(
        self,
        request: Request,
        timeout_s: float,
        max_version: int | None = None,
        on_long_wait: Callable[[], None] | None = None,
    ) -> Response:
        """`on_long_wait` is called each `LONG_WAIT_S` until the answer begins to come."""
        self._authenticate_again(timeout_s)
        version = self.version_for(type(request), max_version)
        self._send(request, version, timeout_s)
        if on_long_wait is not None:
            self._await_answer(timeout_s, on_long_wait)
        return self._answer_to(request, version)

    def tell(self, request: Request, timeout_s: float, max_version: int | None = None) -> None:
        """Send what has no answer: Produce with acks=0."""
        self._authenticate_again(timeout_s)
        self._send(request, self.version_for(type(request), max_version), timeout_s)

    def close(self) -> None:
        self._sock.close()

    def __str__(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    def _negotiate(self) -> None:
        version = ApiVersionsRequest.VERSIONS[1]
        timeout_s = self._sock.gettimeout() or 10.0
        while True:
            request = API_VERSIONS
            self._send(request, version, timeout_s)
            frame = self._receive()
            # A broker that does not have our version answers in version 0, with those that it has.
            unsupported = len(frame) >= 6 and frame[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
            answer = decode_response(request.API_KEY, 0 if unsupported else version, frame)
            if not isinstance(answer, ApiVersionsResponse):
                raise WireError(f"a {type(answer).__name__} in answer to ApiVersions")
            if unsupported and version > 0:
                version = min([api.max_version for api in answer.api_keys if api.api_key == request.API_KEY] or [0])
                continue
            if answer.error_code:
                raise KafkaError(answer.error_code, f"ApiVersions at {self}")
            self._versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
            return

    def _authenticate(self, timeout_s: float) -> None:
        if self._credentials is None:
            return
        dialogue = self._credentials.begin()
        request: Request = dialogue.first()
        while True:
            version = self.version_for(type(request))
            self._send(request, version, timeout_s)
            try:
                step = dialogue.handle_response(self._answer_to(request, version))
            except SaslError as error:
                self.close()
                raise AuthenticationFailed(f"{self} refuses {self._credentials.mechanism}: {error}") from None
            if isinstance(step, Authenticated):
                break
            request = step
        self._renew_at = None if step.renew_after_ms is None else time.monotonic() + step.renew_after_ms / 1000

    @property
    def must_authenticate(self) -> bool:
        """Again, before the next request (KIP-368). Only with no request under way."""
        return self._renew_at is not None and time.monotonic() >= self._renew_at

    def _authenticate_again(self, timeout_s: float) -> None:
        if self.must_authenticate:
            self._authenticate(timeout_s)

    def _await_answer(self, timeout_s: float, on_long_wait: Callable[[], None]) -> None:
        deadline = time.monotonic() + timeout_s
        arrival = select.poll()
        arrival.register(self._sock, select.POLLIN)
        while (left_s := deadline - time.monotonic()) > LONG_WAIT_S:
            if arrival.poll(LONG_WAIT_S * 1000):
                break
            on_long_wait()
        self._sock.settimeout(max(left_s, 0.001))

    def _answer_to(self, request: Request, version: int) -> Response:
        frame = self._receive()
        if correlation_id_of(frame) != self._correlation_id:
            raise WireError(f"answer {correlation_id_of(frame)} to request {self._correlation_id}")
        return decode_response(request.API_KEY, version, frame)

    def _send(self, request: Request, version: int, timeout_s: float) -> None:
        self._correlation_id += 1
        self._sock.settimeout(timeout_s)
        self._sock.sendall(encode_request(request, version, self._correlation_id, self._client_id))

    def _receive(self) -> memoryview:
        length = int.from_bytes(self._receive_exactly(4), "big", signed=True)
        if not 4 <= length <= _RESPONSE_BYTES_MAX:
            raise WireError(f"a response of {length} bytes: is {self} a Kafka broker?")
        return self._receive_exactly(length)

    def _receive_exactly(self, length: int) -> memoryview:
        buffer = bytearray(min(length, 1 << 20))
        filled = 0
        while filled < length:
            if filled == len(buffer):
                buffer.extend(bytes(min(length - filled, filled)))
            with memoryview(buffer) as view:
                count = self._sock.recv_into(view[filled:])
            if count == 0:
                raise ConnectionResetError(f"{self} closed the connection")
            filled += count
        return memoryview(buffer)
