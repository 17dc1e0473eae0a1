"""TLS on real sockets: handshakes that are cut, slow, refused or too many; what strangers get, and what is left."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.ports import TLS_CLIENT
from tanist.runtime.faults import request_counts
from tanist.runtime.faults.request_filter import RequestFilters
from tanist.runtime.faults.request_rules import error_fault
from tanist.runtime.ports import handshakes
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_response, encode_request, encode_response
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.list_groups_response import ListGroupsResponse
from tests.certificates import CertificateAuthority
from tests.runtime.network_rig import Handler, frame
from tests.runtime.tls_rig import TlsClient, TlsServer, client_context

Make = Callable[..., TlsServer]


@pytest.fixture
def serve_tls(runner: Any, tmp_path: Path) -> Iterator[Make]:
    servers: list[TlsServer] = []

    def make(on: Callable[[Handler, bytes], None] | None = None, **options: Any) -> TlsServer:
        folder = tmp_path / str(len(servers))
        folder.mkdir()
        servers.append(TlsServer(runner, folder, on, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()
    assert runner.failures == []


def echo(handler: Handler, data: bytes) -> None:
    handler.connection.send([frame(data)])


@pytest.mark.parametrize("kind", ["EC", "RSA"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda each: each.name)
@pytest.mark.parametrize("auth", ["none", "required"])
def test_a_client_gets_its_answers(runner: Any, serve_tls: Make, kind: str, version: ssl.TLSVersion, auth: str) -> None:
    server = serve_tls(echo, kind=kind, client_auth=auth)
    client = server.client(server.authority.issue("alice") if auth == "required" else None, version=version)
    runner.until(client.pump)
    assert client.done
    client.send(frame(b"hello"))
    client.send(frame(b"x" * 100_000))
    wanted = frame(b"hello") + frame(b"x" * 100_000)
    runner.until(lambda: (client.read(), client.frames == wanted)[1])
    handler = server.handlers[0]
    assert handler.connection.peer_identity == ("CN=alice,O=tanist\\, tests" if auth == "required" else None)
    client.close()
    runner.until(lambda: server.is_empty)
    assert len(handler.closed) == 1
    assert server.reports.failed == []


def test_frames_that_came_with_the_end_of_the_handshake_are_delivered(runner: Any, serve_tls: Make) -> None:
    server = serve_tls(echo)
    client = server.client()
    client.sock.sendall(client.flight())
    runner.until(lambda: (client.read(), bool(client.heard))[1])
    last = client.flight()
    assert client.done
    client.tls.write(frame(b"at once") + frame(b"and this"))
    client.sock.sendall(last + client.flight())  # in one packet
    runner.until(lambda: bool(server.handlers) and server.handlers[0].frames == [b"at once", b"and this"])
    client.close()


def test_requested_certificates_need_not_be_shown(runner: Any, serve_tls: Make) -> None:
    server = serve_tls(echo, client_auth="requested")
    for own, identity in ((None, None), (server.authority.issue("bob"), "CN=bob,O=tanist\\, tests")):
        client = server.client(own)
        runner.until(client.pump)
        runner.until(lambda: bool(server.handlers))
        assert server.handlers.pop().connection.peer_identity == identity
        client.close()


def flights(server: TlsServer, runner: Any, own: Any) -> list[bytes]:
    """What a client sends in a handshake that succeeds, in its turns."""
    client = server.client(own)
    found = []
    while True:
        data = client.flight()
        if data:
            found.append(data)
            client.sock.sendall(data)
        if client.done:
            break
        heard = len(client.heard)
        runner.until(lambda at=heard: (client.read(), len(client.heard) > at)[1])
    runner.until(lambda: bool(server.handlers))
    server.handlers.clear()
    client.close()
    return found


@pytest.mark.parametrize("auth", ["none", "required"])
def test_a_handshake_that_is_cut_at_any_byte_leaves_nothing_behind(runner: Any, serve_tls: Make, auth: str) -> None:
    server = serve_tls(echo, client_auth=auth)
    own = server.authority.issue("alice") if auth == "required" else None
    first, second = flights(server, runner, own)
    for length in range(len(first)):
        client = server.client(own)
        client.sock.sendall(client.flight()[:length])
        client.close()
        if length % 64 == 0:
            runner.until(lambda: server.is_empty)
    runner.until(lambda: server.is_empty)
    for length in range(0, len(second), 1 if auth == "none" else 7):
        client = server.client(own)
        client.sock.sendall(client.flight())
        runner.until(lambda c=client: (c.read(), bool(c.heard))[1])
        flight = client.flight()  # a byte shorter or longer than the other's: a signature has no fixed length
        client.sock.sendall(flight[: min(length, len(flight) - 1)])
        client.close()
        if length % 64 == 0:
            runner.until(lambda: server.is_empty)
    runner.until(lambda: server.is_empty)
    assert server.handlers == []
    assert all("during the handshake" in reason for _, reason, _ in server.reports.failed), server.reports.failed[:3]


def test_a_handshake_whose_bytes_come_one_by_one(runner: Any, serve_tls: Make) -> None:
    server = serve_tls(echo)
    client = server.client()
    while not client.done:
        for byte in client.flight():
            client.sock.sendall(bytes((byte,)))
            runner.until(lambda: True)
        client.read()
        runner.until(lambda: True)
    for byte in client.flight():
        client.sock.sendall(bytes((byte,)))
    client.send(frame(b"patience"))
    runner.until(lambda: (client.read(), client.frames == frame(b"patience"))[1])
    client.close()


def test_bytes_that_were_changed_on_the_way_let_nobody_in(runner: Any, serve_tls: Make) -> None:
    server = serve_tls(echo)
    rng = random.Random(11)
    for _ in range(300):
        client = server.client()
        data = bytearray(client.flight())
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(1, len(data))] ^= 1 << rng.randrange(8)
        client.sock.sendall(data)
        runner.until(lambda: True)
        client.close()
    runner.until(lambda: server.is_empty)
    assert [each for each in server.handlers if each.frames] == []


def test_a_client_without_tls_gets_not_one_byte(runner: Any, serve_tls: Make) -> None:
    """An alert would be taken for the length of a frame, and the memory for it be asked for."""
    server = serve_tls(echo)
    client = server.client()
    client.sock.sendall(frame(b"\x00\x12\x00\x03\x00\x00\x00\x01\xff\xff"))
    runner.until(lambda: (client.read(), client.ended)[1])
    assert client.heard == b""
    assert server.handlers == []
    ((profile, reason, dialled),) = server.reports.failed
    assert (profile, dialled) == ("L", False)
    assert "without TLS" in reason
    assert "security.protocol" in reason


def test_a_tls_client_at_a_port_without_tls_is_recognised(runner: Any, serve: Any) -> None:
    server = serve()
    client = TlsClient(server.client(), client_context(CertificateAuthority()))
    client.sock.setblocking(False)
    client.sock.sendall(client.flight())
    runner.until(lambda: bool(server.handlers) and bool(server.handlers[0].closed))
    assert TLS_CLIENT in server.handlers[0].closed[0]
    runner.until(lambda: (client.read(), client.ended)[1])
    assert client.heard == b""


def test_a_client_that_the_server_does_not_accept_gets_an_alert(runner: Any, serve_tls: Make) -> None:
    server = serve_tls(echo, client_auth="required")
    stranger = CertificateAuthority("another CA").issue("mallory")
    expired = server.authority.issue("late", days=(-3, -1))
    for own, said in ((None, "did not return a certificate"), (stranger, "unable to get"), (expired, "expired")):
        client = server.client(own)
        runner.until(client.pump)
        runner.until(lambda c=client: (c.read(), c.ended)[1])  # (with TLS 1.3 the client learns it after its own part)
        assert isinstance(client.error, ssl.SSLError)
        assert "ALERT" in (client.error.reason or ""), client.error
        assert not client.was_reset
        assert said in server.reports.failed[-1][1]
        client.close()
    assert server.handlers == []


def test_a_client_that_does_not_accept_the_server_is_named_with_its_alert(runner: Any, serve_tls: Make) -> None:
    server = serve_tls(echo)
    client = TlsClient(server.socket(), client_context(CertificateAuthority("another CA")))
    runner.until(client.pump)
    assert client.error is not None
    runner.until(lambda: bool(server.reports.failed))
    assert server.reports.failed[0][1] == "the other side says: unknown ca"
    client.close()


def test_a_session_that_is_taken_up_again_keeps_its_identity(runner: Any, serve_tls: Make) -> None:
    server = serve_tls(echo, client_auth="required")
    context = client_context(server.authority, server.authority.issue("alice"), version=ssl.TLSVersion.TLSv1_2)
    first = TlsClient(server.socket(), context)
    runner.until(first.pump)
    again = TlsClient(server.socket(), context)
    again.tls = context.wrap_bio(
        again._incoming, again._outgoing, server_hostname="127.0.0.1", session=first.tls.session
    )
    runner.until(again.pump)
    runner.until(lambda: len(server.handlers) == 2)
    assert again.tls.session_reused
    assert [each.connection.peer_identity for each in server.handlers] == ["CN=alice,O=tanist\\, tests"] * 2
    first.close()
    again.close()


def test_a_session_outlives_no_certificate(runner: Any, serve_tls: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken up again was verified a while ago."""
    server = serve_tls(echo, client_auth="required")
    context = client_context(server.authority, server.authority.issue("alice"), version=ssl.TLSVersion.TLSv1_2)
    first = TlsClient(server.socket(), context)
    runner.until(first.pump)
    monkeypatch.setattr(handshakes, "now_s", lambda: time.time() + 31 * 86_400)
    again = TlsClient(server.socket(), context)
    again.tls = context.wrap_bio(
        again._incoming, again._outgoing, server_hostname="127.0.0.1", session=first.tls.session
    )
    runner.until(lambda: (again.pump(), again.ended)[1])
    assert server.reports.failed[-1][1] == "certificate not accepted: certificate has expired"
    assert len(server.handlers) == 1
    first.close()


def test_many_handshakes_at_once_leave_the_loop_to_others(
    runner: Any, serve_tls: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve_tls(echo)
    clients = [server.client() for _ in range(60)]
    runner.until(lambda: server.accepted == 60)
    passes = [0]
    steps: list[int] = []
    advance = handshakes._advance

    def counted(tls: ssl.SSLObject) -> str | None:
        steps.append(passes[0])
        return advance(tls)

    def next_pass() -> None:
        passes[0] += 1
        if len(steps) < 60:
            runner.loop.post(next_pass)

    monkeypatch.setattr(handshakes, "_advance", counted)
    for client in clients:
        client.sock.sendall(client.flight())
    next_pass()
    runner.until(lambda: len(steps) >= 60)
    # A pass of the loop may fall between the counting of two.
    assert max(steps.count(each) for each in set(steps)) <= 2 * handshakes.STEPS_PER_PASS
    for client in clients:
        runner.until(client.pump)
        assert client.done
        client.close()


def test_the_silent_are_closed_after_a_while(runner: Any, serve_tls: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "DEADLINE_MS", 50)
    server = serve_tls(echo)
    silent, begun = server.client(), server.client()
    begun.sock.sendall(begun.flight()[:100])
    runner.until(lambda: (silent.read(), begun.read(), silent.ended and begun.ended)[2])
    runner.until(lambda: server.is_empty)
    assert [reason for _, reason, _ in server.reports.failed] == ["not done within 50 ms"]  # and not of the silent


def test_clients_that_stop_half_way_keep_nobody_out(
    runner: Any, serve_tls: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "HANDSHAKES_MAX", 32)
    server = serve_tls(echo)
    half = []
    for number in range(200):
        stranger = server.client()
        if number % 2:
            stranger.sock.sendall(stranger.flight()[:50])
        half.append(stranger)
    runner.until(lambda: server.network.accepted >= 132 and server.handshakes == 32)
    client = server.client()
    runner.until(client.pump)
    client.send(frame(b"let me in"))
    runner.until(lambda: (client.read(), client.frames == frame(b"let me in"))[1])
    assert server.handshakes <= 32
    assert all(each._received.view is None for each in server.network.connections if each.handler is None)
    for each in (*half, client):
        each.close()
    runner.until(lambda: server.is_empty)


def test_a_server_that_goes_away_at_any_byte_of_its_part_ends_the_connection_once(runner: Any, serve_tls: Make) -> None:
    """A listener in between lets the beginning of what the server says through."""
    server = serve_tls(echo)
    server.network.set_tls_profile("OUT", server.properties, between_nodes=True)
    between = socket.create_server(("127.0.0.1", 0))
    between.setblocking(False)

    def taken(sock: socket.socket) -> bytes:
        found = b""

        def look() -> bool:
            nonlocal found
            with contextlib.suppress(BlockingIOError):
                found = sock.recv(65536)
            return bool(found)

        runner.until(look)
        return found

    def accepted() -> socket.socket:
        found: list[socket.socket] = []

        def look() -> bool:
            with contextlib.suppress(BlockingIOError):
                found.append(between.accept()[0])
            return bool(found)

        runner.until(look)
        found[0].setblocking(False)
        return found[0]

    lengths = [0, 1, 2, 5, 6, 40, 126, 127, 128, 133, 400, 600, 700, 800]
    for cut in lengths:
        dialler = Handler()
        server.network.connect("127.0.0.1", between.getsockname()[1], dialler, max_frame_bytes=100, tls="OUT")
        one, other = accepted(), server.socket()
        other.sendall(taken(one))
        said = taken(other)
        assert len(said) > lengths[-1]
        one.sendall(said[:cut])
        one.close()
        other.close()
        runner.until(lambda each=dialler: bool(each.closed))
        assert len(dialler.closed) == 1
        assert dialler.closed[0].startswith("TLS handshake failed")
        assert "refused" not in dialler.closed[0]
    between.close()
    runner.until(lambda: server.is_empty)
    assert server.handlers == []


@pytest.mark.parametrize("kind", ["EC", "RSA"])
def test_nodes_dial_each_other_and_check_names(runner: Any, serve_tls: Make, kind: str) -> None:
    server = serve_tls(echo, kind=kind, client_auth="required")
    server.network.set_tls_profile("OUT", server.properties, between_nodes=True)
    dialler = Handler()
    connection = server.network.connect("127.0.0.1", server.listener.port, dialler, max_frame_bytes=1 << 24, tls="OUT")
    connection.send([frame(b"before it is open")])
    runner.until(lambda: dialler.frames == [b"before it is open"])
    assert connection.peer_identity == "CN=node,O=tanist\\, tests"
    assert server.handlers[0].connection.peer_identity == "CN=node,O=tanist\\, tests"


def test_a_host_that_the_certificate_does_not_name_is_not_talked_to(
    runner: Any, serve_tls: Make, tmp_path: Path
) -> None:
    authority = CertificateAuthority()
    server = serve_tls(echo, node=authority.issue("node", hosts=("elsewhere.example",)))
    for algorithm, opens in (("https", False), ("", True)):
        server.network.set_tls_profile(
            f"OUT{algorithm}",
            {**server.properties, "ssl.endpoint.identification.algorithm": algorithm},
            between_nodes=True,
        )
        dialler = Handler()
        connection = server.network.connect(
            "127.0.0.1", server.listener.port, dialler, max_frame_bytes=100, tls=f"OUT{algorithm}"
        )
        connection.send([frame(b"hi")])
        runner.until(lambda each=dialler: bool(each.closed or each.frames))
        assert bool(dialler.frames) is opens
    assert "IP address mismatch" in server.reports.failed[0][1]


def test_a_large_answer_waits_as_plain_text_and_little_of_it_encrypted(runner: Any, serve_tls: Make) -> None:
    server = serve_tls(lambda handler, _: handler.connection.send([frame(bytes(8 << 20))]))
    client = server.client()
    runner.until(client.pump)
    client.send(frame(b"give"))
    runner.until(lambda: bool(server.handlers) and server.handlers[0].connection.pending_bytes > 0)
    connection = server.handlers[0].connection
    assert len(connection._cipher_queue.cipher) <= 256 << 10
    assert connection.pending_bytes > 1 << 20
    runner.until(lambda: (client.read(), len(client.frames) == (8 << 20) + 4)[1])
    assert connection.pending_bytes == 0
    client.close()


def test_what_the_other_side_can_make_wait_has_a_bound(runner: Any, serve_tls: Make) -> None:
    """As one that asks for new keys, and does not read the answers."""
    server = serve_tls(lambda handler, _: handler.connection.send([frame(bytes(8 << 20))]))
    client = server.client()
    runner.until(client.pump)
    client.send(frame(b"give"))
    runner.until(lambda: bool(server.handlers) and server.handlers[0].connection.pending_bytes > 0)
    connection = server.handlers[0].connection
    for _ in range(300):
        connection.push(bytes(1000))
    runner.until(lambda: bool(server.handlers[0].closed))
    assert "does not read" in server.handlers[0].closed[0]
    client.close()


def test_the_command_of_openssl_gets_in(runner: Any, serve_tls: Make) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl speaks")
    server = serve_tls(lambda handler, data: handler.connection.send([data + b"\n"]))
    process = subprocess.Popen(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{server.listener.port}", "-tls1_3", "-quiet", "-nocommands"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(frame(b"one"))
        process.stdin.flush()
        runner.until(lambda: bool(server.handlers) and server.handlers[0].frames == [b"one"])
    finally:
        process.kill()
        process.communicate()


def test_faults_of_requests_happen_to_connections_with_tls(runner: Any, serve_tls: Make, tmp_path: Path) -> None:
    answer = encode_response(ListGroupsResponse(), 3, 7)
    server = serve_tls(lambda handler, _: handler.connection.send([answer]))
    request_counts.create(tmp_path, 0)
    filters = RequestFilters(runner.loop, server.network, tmp_path)
    clients = [server.client(), server.client()]
    asked = encode_request(ListGroupsRequest(), 3, 7, "client")
    runner.until(clients[0].pump)
    runner.until(lambda: len(server.handlers) == 1)
    before = type(server.handlers[0].connection)
    filters.apply(
        [error_fault(ApiKey.LIST_GROUPS, ErrorCode.COORDINATOR_NOT_AVAILABLE).every_time()]
    )  # to one that is open
    runner.until(clients[1].pump)  # and to one that comes
    for client in clients:
        client.send(asked)
        runner.until(lambda each=client: (each.read(), len(each.frames) == len(answer))[1])
        response: Any = decode_response(ApiKey.LIST_GROUPS, 3, memoryview(client.frames)[4:])
        assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        client.frames = b""
    filters.apply([])
    assert {type(each.connection) for each in server.handlers} == {before}
    for client in clients:
        client.send(asked)
        runner.until(lambda each=client: (each.read(), each.frames == answer)[1])
        client.close()
