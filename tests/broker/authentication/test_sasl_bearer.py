"""OAUTHBEARER on a listener: signed tokens by a key set that is fetched, unsigned ones where that is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, KeySet

from tanist.broker.config import ConfigError, NodeConfig
from tanist.broker.sasl_properties import SECURED, UNSECURED
from tanist.events.process import TokenKeysFailed, TokenKeysFetched
from tanist.security.jaas import OAUTH_MODULE
from tanist.security.sasl.oauthbearer import OAuthBearerClient
from tanist.sim.world.scheduler import Process
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tests.broker.authentication.sasl_rig import PLAIN_JAAS, RawClient
from tests.broker.cluster_rig import Cluster
from tests.security.tokens import unsecured_token

HANDLER = "listener.name.plaintext.oauthbearer.sasl.server.callback.handler.class"
PATH = "/keys/jwks.json"
FIRST = ECKey.generate_key("P-256", parameters={"kid": "first"})
SECOND = ECKey.generate_key("P-256", parameters={"kid": "second"})

BEARER = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": PLAIN_JAAS,
    "listener.name.plaintext.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
}
SIGNED = {
    **BEARER,
    HANDLER: SECURED,
    "sasl.oauthbearer.jwks.endpoint.url": f"file://{PATH}",
    "sasl.oauthbearer.expected.audience": "kafka,tanist",
    "sasl.oauthbearer.expected.issuer": "issuer",
}


def write_keys(cluster: Cluster, content: bytes) -> None:
    disk = cluster.host(1).disk.view(Process("keys"))
    disk.make_directory("/keys")
    disk.write_file(PATH, content)


def key_set(*keys: ECKey) -> bytes:
    return json.dumps(KeySet(list(keys)).as_dict(private=False)).encode()


def signed_cluster(*keys: ECKey) -> Cluster:
    cluster = Cluster(nodes=1, config=SIGNED)
    if keys:
        write_keys(cluster, key_set(*keys))
        cluster.until(lambda: bool(cluster.seen(TokenKeysFetched)))
    return cluster


def token(cluster: Cluster, key: ECKey = FIRST, lifetime_s: int = 60, **changes: Any) -> bytes:
    now = cluster.client.clock.wall_ms() // 1000
    claims = {"sub": "alice", "iat": now, "exp": now + lifetime_s, "aud": "tanist", "iss": "issuer", **changes}
    text = jws.serialize_compact({"alg": "ES256", "kid": key.kid}, json.dumps(claims).encode(), key)
    return OAuthBearerClient(text).first()


def outcome(cluster: Cluster, message: bytes) -> tuple[int, bytes]:
    """The error and the words of the first answer; after a challenge those of the second."""
    client = RawClient(cluster)
    answer = client.log_in("OAUTHBEARER", message)
    if answer.auth_bytes:
        challenge = bytes(answer.auth_bytes)
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
        assert client.ends()
        return answer.error_code, challenge
    return answer.error_code, b""


def test_who_has_a_signed_token_comes_in_until_it_expires() -> None:
    cluster = signed_cluster(FIRST)
    client = RawClient(cluster)
    answer = client.log_in("OAUTHBEARER", token(cluster))
    assert answer.error_code == 0
    assert 58_000 <= answer.session_lifetime_ms <= 60_000, "a token's end counts where connections.max.reauth.ms is 0"
    assert client.ask(MetadataRequest(topics=()), 12).cluster_id is not None
    found = [each for each in cluster.node(1).components.connections if each.client_id == "raw"]
    assert str(found[0].session.principal) == "User:alice"
    cluster.run(50_000)
    assert client.log_in("OAUTHBEARER", token(cluster)).error_code == 0
    cluster.run(50_000)
    assert client.ask(MetadataRequest(topics=()), 12).cluster_id is not None
    cluster.run(50_000)
    assert client.ask(MetadataRequest(topics=()), 12) is None


@pytest.mark.parametrize(
    "changes",
    [{"aud": "other"}, {"iss": "other"}, {"sub": ""}, {"lifetime_s": -100}, {"iat": None}, {"key": SECOND}],
)
def test_others_hear_why_in_json_and_are_refused(changes: dict[str, Any]) -> None:
    cluster = signed_cluster(FIRST)
    refused = (ErrorCode.SASL_AUTHENTICATION_FAILED, b'{"status":"invalid_token"}')
    assert outcome(cluster, token(cluster, **changes)) == refused
    unsigned = OAuthBearerClient(unsecured_token({"sub": "alice", "iat": 0, "exp": 1 << 40})).first()
    assert outcome(cluster, unsigned) == refused


def test_nobody_comes_in_before_the_keys_have_come() -> None:
    cluster = signed_cluster()
    assert outcome(cluster, token(cluster))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert cluster.seen(TokenKeysFailed)
    write_keys(cluster, b"no keys")
    cluster.run(15_000)
    assert "no JSON object" in cluster.seen(TokenKeysFailed)[-1].problem
    assert len(cluster.seen(TokenKeysFailed)) < 15, "pauses grow"
    write_keys(cluster, key_set(FIRST))
    cluster.until(lambda: bool(cluster.seen(TokenKeysFetched)))
    assert outcome(cluster, token(cluster)) == (0, b"")


def test_a_key_that_is_missing_is_looked_for_once_a_minute() -> None:
    cluster = signed_cluster(FIRST)
    write_keys(cluster, key_set(FIRST, SECOND))
    assert outcome(cluster, token(cluster, SECOND))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
    cluster.run(1_000)
    assert outcome(cluster, token(cluster, SECOND)) == (0, b"")
    write_keys(cluster, key_set(FIRST))
    third = ECKey.generate_key("P-256", parameters={"kid": "third"})
    assert outcome(cluster, token(cluster, third))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
    write_keys(cluster, key_set(FIRST, third))
    cluster.run(1_000)
    assert outcome(cluster, token(cluster, third))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED, "it was looked for"
    cluster.run(60_000)
    assert outcome(cluster, token(cluster, third))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
    cluster.run(1_000)
    assert outcome(cluster, token(cluster, third)) == (0, b"")


def test_keys_that_clients_make_up_are_not_all_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = signed_cluster(FIRST)
    disk, reads = cluster.node(1).context.disk, []
    read_file = disk.read_file
    monkeypatch.setattr(disk, "read_file", lambda path: reads.append(path) or read_file(path))
    for number in range(40):
        made_up = ECKey.generate_key("P-256", parameters={"kid": f"made-up-{number}"})
        assert outcome(cluster, token(cluster, made_up))[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert 1 <= reads.count(PATH) <= 16
    assert outcome(cluster, token(cluster)) == (0, b""), "those that are good go on"


def test_unsigned_tokens_are_taken_where_that_is_written() -> None:
    cluster = Cluster(nodes=1, config={**BEARER, HANDLER: UNSECURED})
    now = cluster.client.clock.wall_ms() // 1000
    good = OAuthBearerClient(unsecured_token({"sub": "alice", "exp": now + 60})).first()
    assert outcome(cluster, good) == (0, b"")
    late = OAuthBearerClient(unsecured_token({"sub": "alice", "exp": now - 1})).first()
    assert outcome(cluster, late)[0] == ErrorCode.SASL_AUTHENTICATION_FAILED


OPTIONS = "listener.name.plaintext.oauthbearer.sasl.jaas.config"


def test_options_of_unsigned_tokens_are_obeyed() -> None:
    module = (
        f'{OAUTH_MODULE} required unsecuredValidatorRequiredScope="read write" unsecuredValidatorScopeClaimName="scp" '
        'unsecuredValidatorPrincipalClaimName="user" unsecuredValidatorAllowableClockSkewMs="5000";'
    )
    cluster = Cluster(nodes=1, config={**BEARER, HANDLER: UNSECURED, OPTIONS: module})
    now = cluster.client.clock.wall_ms() // 1000
    good: dict[str, Any] = {"user": "alice", "scp": ["write", "read"], "exp": now - 4}

    def answer(**changes: Any) -> tuple[int, bytes]:
        return outcome(cluster, OAuthBearerClient(unsecured_token({**good, **changes})).first())

    refused = ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer() == (0, b"")
    assert answer(exp=now - 6)[0] == refused
    assert answer(scp=["read"]) == (refused, b'{"status":"insufficient_scope", "scope":"[read, write]"}')
    assert answer(iat=now + 6, exp=now + 60)[0] == refused
    assert answer(user="")[0] == refused


def unsecured(option: str) -> dict[str, str]:
    return {HANDLER: UNSECURED, OPTIONS: f"{OAUTH_MODULE} required unsecuredValidator{option};"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({HANDLER: None}, f"without it Apache Kafka takes tokens that nobody has signed; add {HANDLER}={SECURED}"),
        ({HANDLER: "a.B"}, "is a.B: without it Apache Kafka takes tokens that nobody has signed"),
        ({"sasl.oauthbearer.jwks.endpoint.url": None}, "add sasl.oauthbearer.jwks.endpoint.url=https://HOST/PATH"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "ftp://h/x"}, "sasl.oauthbearer.jwks.endpoint.url is ftp://h/x"),
        ({"sasl.oauthbearer.jwt.validator.class": "a.B"}, "tanist runs no Java classes"),
        (
            {"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"},
            "is OAUTHBEARER, by which tanist's nodes do not log in",
        ),
        (unsecured('AllowableClockSkewMs="soon"'), "AllowableClockSkewMs is no number of milliseconds"),
        (unsecured('AllowableClockSkewMs="-1"'), "AllowableClockSkewMs is no number of milliseconds"),
        (unsecured("RequiredScope='read \"write\"'"), "RequiredScope is no list of scopes"),
    ],
)
def test_what_is_refused_at_start(changes: dict[str, str | None], why: str) -> None:
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@h:9093",
        "log.dirs": "/data",
        **SIGNED,
        **changes,
    }
    with pytest.raises(ConfigError) as raised:
        NodeConfig.from_properties({name: value for name, value in properties.items() if value is not None})
    assert why in str(raised.value)
