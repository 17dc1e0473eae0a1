"""A network that listens with TLS, and clients of it that are driven byte by byte."""

from __future__ import annotations

import socket
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tanist.ports import Connection, TlsIdentity
from tanist.runtime.ports.connection import SocketConnection
from tanist.runtime.ports.network import SocketNetwork
from tanist.runtime.ports.socket_address import SocketAddress
from tests.certificates import CertificateAuthority, Issued, pem
from tests.runtime.network_rig import Handler


class Reports:
    """What the network says of its TLS."""

    def __init__(self) -> None:
        self.failed: list[tuple[str, str, bool]] = []
        """(profile, reason, dialled)"""
        self.reloaded_: list[tuple[str, TlsIdentity | None, str | None]] = []

    def handshake_failed(self, profile: str, peer: str, reason: str, dialled: bool) -> None:
        self.failed.append((profile, reason, dialled))

    def reloaded(self, profile: str, identity: TlsIdentity | None, problem: str | None) -> None:
        self.reloaded_.append((profile, identity, problem))


class TlsServer:
    """One profile, one listener, and its handlers."""

    def __init__(
        self,
        runner: Any,
        folder: Path,
        on: Callable[[Handler, bytes], None] | None = None,
        *,
        kind: str = "EC",
        node: Issued | None = None,
        **properties: str,
    ) -> None:
        """`properties`: with underscores for dots, without `ssl.`."""
        self.runner = runner
        self.authority = CertificateAuthority(kind=kind) if node is None else node.authority
        self.reports = Reports()
        self.network = SocketNetwork(runner.loop, tls_reports=self.reports)
        self.network.faults = self
        self.clients = self.accepted = 0
        """Made by `socket`, and seen by the network."""
        self.handlers: list[Handler] = []
        self._on = on
        self.node = node or self.authority.issue("node")
        self.properties = {
            **self.node.pem_files(folder),
            **{f"ssl.{name.replace('_', '.')}": value for name, value in properties.items()},
        }
        self.network.set_tls_profile("L", self.properties, between_nodes=False)
        self.listener = self.network.bind("127.0.0.1", 0, self._accept, max_frame_bytes=1 << 24, tls="L")
        self.listener.open()

    def _accept(self, connection: Connection) -> Handler:
        handler = Handler(connection, self._on)
        self.handlers.append(handler)
        return handler

    @property
    def handshakes(self) -> int:
        """Those for which memory is held."""
        tls = self.network._tls
        assert tls is not None
        return tls.handshakes.count

    def delays(self, connection: SocketConnection, addresses: list[SocketAddress]) -> bool:
        return False

    def opened(self, connection: SocketConnection) -> None:
        self.accepted += connection.accepted

    @property
    def is_empty(self) -> bool:
        """Every client was seen, and nothing is left of them."""
        network = self.network
        return self.accepted == self.clients and not (network.connections or self.handshakes or network.accepted)

    def socket(self) -> socket.socket:
        self.clients += 1
        sock = socket.create_connection(("127.0.0.1", self.listener.port), timeout=120)
        sock.setblocking(False)
        return sock

    def client(self, own: Issued | None = None, **options: Any) -> TlsClient:
        return TlsClient(self.socket(), client_context(self.authority, own, **options))

    def close(self) -> None:
        self.network.close()
        turns: list[int] = []
        self.runner.loop.post(lambda: self.runner.loop.post(lambda: turns.append(1)))
        self.runner.until(lambda: bool(turns))


def client_context(
    authority: CertificateAuthority, own: Issued | None = None, version: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem(authority.certificate))
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if own is not None:
        load_own(context, own)
    return context


def load_own(context: ssl.SSLContext, own: Issued) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(own.key_pem() + own.chain_pem)
        file.flush()
        context.load_cert_chain(file.name)


class TlsClient:
    """A non-blocking socket and the client's side of TLS, apart: what goes over the wire can be looked at, and cut."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self.sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")
        self.done = False
        self.error: ssl.SSLError | None = None
        self.ended = False
        """The server has closed, or reset, the connection."""
        self.was_reset = False
        self.heard = b""
        """What it has sent, as it stands on the wire."""
        self.frames = b""
        """The same, decrypted."""

    def flight(self) -> bytes:
        """What this side has to say now."""
        if not self.done and self.error is None:
            try:
                self.tls.do_handshake()
                self.done = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                self.error = error
        return self._outgoing.read()

    def read(self) -> None:
        """Take what has come."""
        while not self.ended:
            try:
                data = self.sock.recv(65536)
            except BlockingIOError:
                break
            except OSError:
                self.ended = self.was_reset = True
                break
            if not data:
                self.ended = True
                self._incoming.write_eof()
                break
            self.heard += data
            self._incoming.write(data)
        if self.done and self.error is None:
            try:
                while True:
                    data = self.tls.read(65536)
                    if not data:
                        break
                    self.frames += data
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                self.error = error

    def pump(self) -> bool:
        """Let the handshake go on; whether it is done, or has come to nothing."""
        self.read()
        data = self.flight()
        if data and not self.ended:
            try:
                self.sock.sendall(data)
            except OSError:
                self.ended = True
        return self.done or self.error is not None or self.ended

    def send(self, data: bytes) -> None:
        self.tls.write(data)
        self.sock.sendall(self._outgoing.read())

    def close(self) -> None:
        self.sock.close()
