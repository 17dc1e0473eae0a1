"""A little of `python -m tests.fuzz.strangers`, which does a million frames; with another seed each time."""

from __future__ import annotations

import random

from tanist.wire.frames import encode_request
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.broker.authentication.gate_bench import RIGHT, Bench
from tests.fuzz import strangers


def test_no_frames_open_the_gate() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    counts = strangers.fuzz_gate(10_000, random.Random(seed))
    assert counts["closed"] > 100
    assert counts["refused"] > 100


def test_the_right_password_would_open_it() -> None:
    """Else the other tests would hold of a gate that never opens."""
    for mechanism, tokens in (
        ("PLAIN", [RIGHT]),
        ("SCRAM-SHA-256", strangers._scram_tokens("alice", "alice-secret")),
        ("OAUTHBEARER", [b"n,,\x01auth=Bearer a.good.token\x01\x01"]),
    ):
        bench = Bench()
        bench.take(encode_request(SaslHandshakeRequest(mechanism=mechanism), 1, 1, "fuzz")[4:])
        for token in tokens:
            bench.take(encode_request(SaslAuthenticateRequest(auth_bytes=token), 1, 2, "fuzz")[4:])
        assert not bench.guarded
        assert str(bench.connection.session.principal) == "User:alice"


def test_texts_are_read_or_refused() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    counts = strangers.fuzz_texts(300, random.Random(seed))
    assert counts["JAAS refused"] > 50


def test_the_authorizer_decides_as_its_model() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    counts = strangers.fuzz_acls(2_000, random.Random(seed))
    assert 0 < counts["allowed"] < counts["questions"]


def test_handshakes_without_an_end_open_nothing() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    counts = strangers.fuzz_handshakes(150, random.Random(seed))
    assert counts["handshakes"] == 150
