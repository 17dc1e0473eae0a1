"""What strangers may send before anybody knows them, by the million: `python -m tests.fuzz.strangers`.

    python -m tests.fuzz.strangers --frames 1000000 --handshakes 10000 --seed 7

Frames: dialogues of SASL by somebody without a password, whose frames are damaged, cut, repeated, exchanged and mixed
with requests of all keys. Nobody gets in, no handler behind the gate is reached, nothing raises, and little is kept.
Texts: of JAAS, of distinguished names and mapping rules, of stores, of credentials and principals: read, or refused
with the one error that their reader has. Questions: the authorizer decides as the simulator's oracle. Handshakes: TLS
dialogues with and without a client's certificate, of both versions, that end at each byte in turn, or have bytes
changed: none opens a connection, and nothing of them is left.

By default the seed is a new one; it is printed, and makes a run repeatable (but for the keys of TLS).
"""

from __future__ import annotations

import argparse
import random
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import UUID

from cryptography.hazmat.primitives.serialization import Encoding

from tanist.ports import TlsProblem
from tanist.runtime.security.profile import TlsProfile
from tanist.security.acls import AclImage
from tanist.security.jaas import JaasError, parse_jaas
from tanist.security.principal import decode_principal, encode_principal, parse_principal
from tanist.security.sasl.scram import SHA_256, ScramClient, ScramServer
from tanist.security.sasl.scram_argument import ScramArgumentError, parse_credential
from tanist.security.ssl_principal import PrincipalMapping, distinguished_name, subject_name
from tanist.sim.access_oracle import Need, decision
from tanist.wire.apis import BROKER_APIS, request_class
from tanist.wire.errors import WireError
from tanist.wire.frames import encode_request
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.api_versions import API_VERSIONS
from tests.broker.authentication.gate_bench import CREDENTIAL, MAX_FRAME_BYTES, Bench
from tests.certificates import CertificateAuthority, Issued
from tests.fuzz.frames import damaged
from tests.runtime.conftest import Runner
from tests.runtime.network_rig import Handler, frame
from tests.runtime.tls_rig import TlsClient, TlsServer, client_context
from tests.security.acl_samples import HOSTS, NAMES, OPERATIONS, PRINCIPALS, TYPES, random_acl

KEPT_BYTES_MAX = 20_000
"""Of answers, for a client that may be anybody."""
_VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
_TOGETHER = 64
"""So many connections are begun before the server has to be rid of them."""


# -- frames before authentication


def _scram_tokens(user: str, password: str) -> list[bytes]:
    """What a client says; the server's nonce is known."""
    client = ScramClient(SHA_256, user, partial(SHA_256.salted_password, password), lambda count: b"x" * count)
    server = ScramServer(SHA_256, bytes, {"alice": CREDENTIAL}.get)
    first = client.first()
    challenge = getattr(server.step(first), "token", b"r=xyz,s=c2FsdA==,i=4096")
    return [first, client.step(challenge) or b""]


def _dialogues() -> list[tuple[str, list[bytes]]]:
    """By mechanism, of clients who do not have what it takes."""
    return [
        ("PLAIN", [b"\0alice\0wrong"]),
        ("PLAIN", [b"alice\0\0"]),
        ("SCRAM-SHA-256", _scram_tokens("alice", "wrong")),
        ("SCRAM-SHA-256", [_scram_tokens("alice", "wrong")[0], b"c=biws,r=x,p=AAAA"]),
        ("OAUTHBEARER", [b"n,,\x01auth=Bearer another.bad.token\x01\x01", b"\x01"]),
        ("GSSAPI", [b"\x60\x28"]),
    ]


class Strangers:
    """Draws their dialogues."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._dialogues = _dialogues()
        self._requests = [
            encode_request(request(), version, 1, "fuzz")
            for key in BROKER_APIS
            for request in [request_class(key)]
            for version in {request.VERSIONS[0], request.VERSIONS[1]}
        ]

    def dialogue(self) -> list[bytes]:
        """Frames without their lengths."""
        rng = self._rng
        mechanism, tokens = rng.choice(self._dialogues)
        whole = [encode_request(API_VERSIONS, rng.randint(0, 4), 1, "fuzz")] if rng.random() < 0.5 else []
        whole.append(encode_request(SaslHandshakeRequest(mechanism=mechanism), version := rng.randint(0, 1), 2, "fuzz"))
        for token in tokens:
            if version == 0 or rng.random() < 0.05:
                whole.append(len(token).to_bytes(4, "big") + token)
            else:
                whole.append(encode_request(SaslAuthenticateRequest(auth_bytes=token), rng.randint(0, 2), 3, "fuzz"))
        for _ in range(rng.choice((0, 0, 1, 1, 2, 4))):
            at = rng.randrange(len(whole))
            match rng.randrange(5):
                case 0:
                    whole.insert(at, rng.choice(self._requests))
                case 1:
                    whole.insert(at, whole[at])
                case 2:
                    other = rng.randrange(len(whole))
                    whole[at], whole[other] = whole[other], whole[at]
                case _:
                    whole[at] = damaged(whole[at], rng)
        return [bytes(each[4:]) for each in whole]


def fuzz_gate(count: int, rng: random.Random) -> Counter[str]:
    """Send frames until so many were looked at. `AssertionError` if anything is as it must not be."""
    strangers, counts = Strangers(rng), Counter[str]()
    while counts["frames"] < count:
        bench, dialogue = Bench(), strangers.dialogue()
        counts["dialogues"] += 1
        for each in dialogue:
            if bench.connection.closed:
                counts["closed"] += 1
                break
            if not bench.wire.reading:
                counts["refused"] += 1
                break
            bench.take(each)
            counts["frames"] += 1
            assert bench.guarded, dialogue
            assert bench.connection.handlers == {}, dialogue
            assert (bench.connection.produce, bench.connection.fetch) == (None, None), dialogue
        assert bench.owner.authentications == 0, dialogue
        assert bench.owner.failures == [], (dialogue, bench.owner.failures)
        assert str(bench.connection.session.principal) == "User:ANONYMOUS", dialogue
        assert bench.wire.max_frame_bytes == MAX_FRAME_BYTES, dialogue
        kept = sum(len(chunk) for chunk in bench.connection.out if isinstance(chunk, bytes))
        assert kept < KEPT_BYTES_MAX, (kept, dialogue)
    return counts


# -- texts


def _readers(
    rng: random.Random,
) -> list[tuple[str, list[bytes], Callable[[bytes], object], tuple[type[Exception], ...]]]:
    """(what, samples, reader, the errors that it may raise)"""
    node = CertificateAuthority().issue("node")
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b\\"" user_a=\'c\';'
    store = (node.key_pem() + node.chain_pem).encode()
    rules = PrincipalMapping("RULE:^CN=([^,]+),.*$/$1/L,DEFAULT")
    der = node.chain[0].public_bytes(Encoding.DER)
    name = node.chain[0].subject.public_bytes()

    def text(data: bytes) -> str:
        return data.decode("utf-8", "replace")

    def stores(data: bytes) -> None:
        given = text(data)
        try:
            TlsProfile(
                {
                    "ssl.keystore.type": "PEM",
                    "ssl.keystore.key": given,
                    "ssl.keystore.certificate.chain": given,
                    "ssl.truststore.type": "PEM",
                    "ssl.truststore.certificates": given,
                }
            )
        except TlsProblem as problem:
            if "PRIVATE KEY-----\n" in str(problem):
                raise AssertionError("a key is shown") from problem
            raise

    return [
        ("JAAS", [jaas.encode()], lambda data: parse_jaas(text(data)), (JaasError,)),
        ("names", [name, der], lambda data: rules.name_of(distinguished_name(data)), (ValueError,)),
        ("certificates", [der], subject_name, (ValueError,)),
        ("mapping rules", [b"RULE:^CN=(.*?),OU=.*$/$1@x/U,DEFAULT"],
         lambda data: PrincipalMapping(text(data)), (ValueError,)),
        ("stores", [store], stores, (TlsProblem,)),
        ("credentials", [b"SCRAM-SHA-256=[name=a,salt=\"c2FsdA==\",saltedpassword=\"c2FsdA==\",iterations=4096]"],
         lambda data: parse_credential(text(data), rng.randbytes), (ScramArgumentError,)),
        ("principals", [b"User:a:b"], lambda data: parse_principal(text(data)), (ValueError,)),
        ("principals of envelopes", [encode_principal(parse_principal("User:alice"))], decode_principal, (WireError,)),
    ]  # fmt: skip


def fuzz_texts(count: int, rng: random.Random) -> Counter[str]:
    """Read so many damaged texts, evenly over the readers; those that a reader takes are counted."""
    counts = Counter[str]()
    for what, samples, read, errors in _readers(rng):
        share = count if what != "stores" else count // 10
        for _ in range(share):
            data = damaged(b"\0\0\0\0" + rng.choice(samples), rng)[4:]
            try:
                read(bytes(data))
                counts[f"{what} taken"] += 1
            except errors:
                counts[f"{what} refused"] += 1
            except Exception as error:
                raise AssertionError(f"{what}: {error!r} of {bytes(data)!r}") from error
    return counts


# -- questions to the authorizer

_ODD = ("", "*", "**", "a*", "User:*", "\0", "a" * 300, "\ud800", "\U0001f600", "../a", "A", "á", "a\n")


def fuzz_acls(count: int, rng: random.Random) -> Counter[str]:
    """Ask so many questions with names, principals and hosts of any kind; the oracle reads the entries one by one."""
    counts = Counter[str]()
    while counts["questions"] < count:
        entries = [random_acl(rng) for _ in range(rng.randrange(15))]
        everyone = rng.random() < 0.5
        image = AclImage((), allow_everyone=everyone)
        gone = [random_acl(rng) for _ in range(rng.randrange(5))]
        image.change([], gone)
        image.change([each for each in gone if each not in entries], entries)
        records = [each.record(UUID(int=number)) for number, each in enumerate(entries)]
        for _ in range(20):
            principal = rng.choice((*PRINCIPALS, *_ODD))
            host, name = rng.choice((*HOSTS, *_ODD)), rng.choice((*NAMES, *_ODD))
            operation, kind = rng.choice(OPERATIONS), rng.choice(TYPES)
            expected = decision(records, principal, host, Need(operation, kind, name))
            found = image.decide(principal, host, operation, kind, name)
            assert found == (everyone if expected is None else expected), (
                entries,
                principal,
                host,
                operation,
                kind,
                name,
            )
            counts["questions"] += 1
            counts["allowed"] += found
    return counts


# -- handshakes


def _flights(runner: Runner, server: TlsServer, own: Issued | None, version: ssl.TLSVersion) -> list[int]:
    """How much a client says, before it hears anything and after."""
    client = TlsClient(server.socket(), client_context(server.authority, own, version=version))
    said = []
    while not client.done:
        if data := client.flight():
            said.append(len(data))
            client.sock.sendall(data)
        heard = len(client.heard)
        if not client.done:
            runner.until(lambda heard=heard: (client.read(), len(client.heard) > heard)[1])  # type: ignore[misc]
    client.close()
    runner.until(lambda: server.is_empty)
    server.handlers.clear()
    return said


def _places(said: list[int]) -> Iterator[tuple[int, int]]:
    for number, length in enumerate(said):
        yield from ((number, at) for at in range(length))


def fuzz_handshakes(count: int, rng: random.Random) -> Counter[str]:
    """Begin so many handshakes, and end each at another byte of what the client says, or change bytes there."""
    counts = Counter[str]()
    runner = Runner()
    with tempfile.TemporaryDirectory(prefix="strangers-") as folder:
        server = TlsServer(runner, Path(folder), lambda handler, data: _echo(handler, data), client_auth="requested")
        own = server.authority.issue("alice")
        try:
            while True:
                for version in _VERSIONS:
                    for shown in (None, own):
                        context = client_context(server.authority, shown, version=version)
                        for flight, at in _places(_flights(runner, server, shown, version)):
                            _one(runner, server, context, flight, at, rng, counts)
                            if counts["handshakes"] % _TOGETHER == 0:
                                runner.until(lambda: server.is_empty)
                            if counts["handshakes"] == count:
                                runner.until(lambda: server.is_empty)
                                assert server.handlers == [], "a handshake without an end has opened a connection"
                                assert runner.failures == [], runner.failures
                                return counts
        finally:
            server.close()
            runner.loop.close()


def _one(
    runner: Runner, server: TlsServer, context: ssl.SSLContext, flight: int, at: int, rng: random.Random,
    counts: Counter[str],
) -> None:  # fmt: skip
    client = TlsClient(server.socket(), context)
    counts["handshakes"] += 1
    for _ in range(flight):
        client.sock.sendall(client.flight())
        heard = len(client.heard)
        runner.until(lambda heard=heard: (client.read(), len(client.heard) > heard or client.ended)[1])  # type: ignore[misc]
    data = bytearray(client.flight())
    if rng.random() < 0.2 and at:
        data[at] ^= 1 << rng.randrange(8)
        del data[rng.randrange(at, len(data)) :]  # changed, and still not whole
        counts["changed"] += 1
    else:
        del data[at:]
        counts["cut"] += 1
    if not client.ended:
        try:
            client.sock.sendall(data)
        except OSError:
            counts["closed by the server first"] += 1
    client.close()


def _echo(handler: Handler, data: bytes) -> None:
    handler.connection.send([frame(data)])


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.strangers", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument(
        "--frames", type=int, default=1_000_000, help="before authentication, and a tenth as many texts of each kind"
    )
    parser.add_argument("--handshakes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    rng = random.Random(options.seed)
    print(f"seed {options.seed}", flush=True)
    for what, fuzz, count in (
        ("frames", fuzz_gate, options.frames),
        ("texts", fuzz_texts, options.frames // 10),
        ("questions to the authorizer", fuzz_acls, options.frames // 10),
        ("handshakes", fuzz_handshakes, options.handshakes),
    ):
        began_s = time.monotonic()
        counts = fuzz(count, rng)
        found = ", ".join(f"{number} {name}" for name, number in counts.items())
        print(f"{what}: {found}; nobody got in ({time.monotonic() - began_s:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
