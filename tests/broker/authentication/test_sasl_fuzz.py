"""Any frames before authentication: nothing behind the gate is reached, nothing raises, and little is kept.

Drawn frames are requests of any key and version, with bodies that make sense or do not, tokens, and noise. A client of
them gets in only with the right password, in the right order. Many more: `python -m tests.fuzz.strangers`.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.wire.apis import BROKER_APIS, ApiKey, request_class
from tanist.wire.frames import encode_request
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.broker.authentication.gate_bench import MAX_FRAME_BYTES, RIGHT, Bench


def _request(key: ApiKey, version: int) -> bytes:
    request = request_class(key)
    version = min(max(version, request.VERSIONS[0]), request.VERSIONS[1])
    return encode_request(request(), version, 1, "fuzz")[4:]


HANDSHAKES = st.builds(
    lambda mechanism, version: encode_request(SaslHandshakeRequest(mechanism=mechanism), version, 1, "fuzz")[4:],
    st.sampled_from(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", "", "x" * 1000]),
    st.integers(0, 1),
)
TOKENS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"", b"\0alice\0wrong", b"n,,n=alice,r=x", b"c=biws,r=x,p=AAAA", b"\0\0", b"\x01"]),
)
AUTHENTICATES = st.builds(
    lambda token, version: encode_request(SaslAuthenticateRequest(auth_bytes=token), version, 1, "fuzz")[4:],
    TOKENS,
    st.integers(0, 2),
)
REQUESTS = st.builds(_request, st.sampled_from(list(BROKER_APIS)), st.integers(0, 13))
WHOLE = REQUESTS | HANDSHAKES | AUTHENTICATES
CUT = st.builds(lambda frame, end: frame[: end % (len(frame) + 1)], WHOLE, st.integers(0))
FRAMES = st.lists(WHOLE | TOKENS | CUT, max_size=12)


@settings(max_examples=1_500, deadline=None)
@given(FRAMES)
def test_nobody_gets_in_without_the_password(frames: list[bytes]) -> None:
    bench = Bench()
    for frame in frames:
        bench.take(frame)
        assert bench.guarded
        assert bench.connection.handlers == {}
        assert (bench.connection.produce, bench.connection.fetch) == (None, None)
    assert bench.owner.authentications == 0
    assert bench.owner.failures == []
    assert str(bench.connection.session.principal) == "User:ANONYMOUS"
    assert bench.wire.max_frame_bytes == MAX_FRAME_BYTES
    assert sum(len(chunk) for chunk in bench.connection.out if isinstance(chunk, bytes)) < 20_000, (
        "little is kept for a client that may be anybody"
    )


@settings(max_examples=300, deadline=None)
@given(FRAMES, st.integers(0, 2))
def test_another_client_gets_in_beside_it(frames: list[bytes], version: int) -> None:
    bench = Bench()
    for frame in frames:
        bench.take(frame)
    fresh = Bench()
    fresh.take(encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "fuzz")[4:])
    fresh.take(encode_request(SaslAuthenticateRequest(auth_bytes=RIGHT), version, 2, "fuzz")[4:])
    assert not fresh.guarded
    assert str(fresh.connection.session.principal) == "User:alice"
    assert fresh.wire.max_frame_bytes == 100 << 20
    assert bench.guarded
