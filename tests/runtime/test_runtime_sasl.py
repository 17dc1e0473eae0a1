"""A node with a SASL listener as a process: our commands, and sockets over which a test sends what it wants."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.wire.apis import BROKER_APIS, ApiKey, request_class
from tanist.wire.frames import decode_response, encode_request
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.clients.secured import MECHANISMS, PASSWORDS, SaslNode, running


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    more = {"listener__name__clients__connections__max__reauth__ms": "3000"}
    with running("tanist", tmp_path_factory.mktemp("node"), **more) as made:
        yield made


def client_config(folder: Path, node: SaslNode, mechanism: str, password: str) -> str:
    file = folder / "client.properties"
    file.write_text(
        f"bootstrap.servers={node.bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.username=alice\nsasl.password={password}\n"
    )
    return str(file)


def tanist(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    return done.exit_code, done.output


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_command_says_who_it_is(node: SaslNode, tmp_path: Path, mechanism: str) -> None:
    config = client_config(tmp_path, node, mechanism, PASSWORDS[mechanism])
    name = f"topic-{mechanism.lower()}"
    code, output = tanist("topics", "create", name, "--client-config", config)
    assert code == 0, output
    code, output = tanist("topics", "list", "--client-config", config)
    assert code == 0
    assert name in output


def test_a_command_with_a_wrong_password_says_so(node: SaslNode, tmp_path: Path) -> None:
    config = client_config(tmp_path, node, "PLAIN", "wrong")
    code, output = tanist("topics", "list", "--client-config", config)
    assert code == 1
    assert output == (
        f"Error: {node.bootstrap} refuses PLAIN: Authentication failed: Invalid username or password; "
        "--client-config says who you are\n"
    )


def test_a_file_that_says_nothing_useful_is_named(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_PLAINTEXT\n")
    code, output = tanist("topics", "list", "--client-config", str(file))
    assert code == 2
    assert f"{file}: sasl.mechanism is GSSAPI (the default)" in output


# -- sockets


class Wire:
    def __init__(self, node: SaslNode) -> None:
        host, _, port = node.bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)

    def send(self, frame: bytes) -> None:
        self.socket.sendall(frame)

    def answer(self) -> bytes | None:
        """The next frame; None if the connection has ended."""
        length = self._exactly(4)
        return None if length is None else self._exactly(int.from_bytes(length, "big"))

    def _exactly(self, size: int) -> bytes | None:
        found = b""
        while len(found) < size:
            try:
                more = self.socket.recv(size - len(found))
            except ConnectionResetError:
                return None
            if not more:
                return None
            found += more
        return found

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def test_no_api_but_two_is_answered_before_authentication(node: SaslNode) -> None:
    for key, (low, high) in BROKER_APIS.items():
        if key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
            continue
        request = request_class(key)
        for version in {max(low, request.VERSIONS[0]), high}:
            with Wire(node) as wire:
                wire.send(encode_request(request(), version, 1, "test"))
                assert wire.answer() is None, (key, version)


def test_bare_tokens_and_no_others(node: SaslNode) -> None:
    handshake = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1, "test")
    token = f"\0alice\0{PASSWORDS['PLAIN']}".encode()
    with Wire(node) as wire:
        wire.send(handshake)
        assert wire.answer() is not None
        wire.send(len(token).to_bytes(4, "big") + token)
        assert wire.answer() == b""
    with Wire(node) as wire:
        wire.send(handshake)
        assert wire.answer() is not None
        wire.send(len(token).to_bytes(4, "big") + token[:-1] + b"!")
        assert wire.answer() is None


def test_a_frame_that_is_too_large_before_authentication_ends_the_connection(node: SaslNode) -> None:
    with Wire(node) as wire:
        wire.send((600 << 10).to_bytes(4, "big") + b"\0\x12\0\3")
        assert wire.answer() is None


def test_a_handshake_cut_anywhere_opens_nothing_and_another_client_comes_in(node: SaslNode) -> None:
    handshake = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "test")
    token = f"\0alice\0{PASSWORDS['PLAIN']}".encode()
    authenticate = encode_request(SaslAuthenticateRequest(auth_bytes=token), 2, 2, "test")
    whole = handshake + authenticate
    half_open = []
    for end in range(len(whole)):
        wire = Wire(node)
        wire.send(whole[:end])
        half_open.append(wire)
    with Wire(node) as wire:
        wire.send(whole)
        first, second = wire.answer(), wire.answer()
        assert first is not None
        assert second is not None
        answer = decode_response(ApiKey.SASL_AUTHENTICATE, 2, memoryview(second))
        assert (answer.error_code, answer.session_lifetime_ms) == (0, 3000)  # type: ignore[attr-defined]
    for wire in half_open:
        wire.socket.close()
