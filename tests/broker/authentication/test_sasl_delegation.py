"""Delegation tokens (KIP-48) in a cluster: made by one node, good at all, for whom they are."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tanist.broker.logins import ChannelLogin
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import encode_request
from tanist.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from tanist.wire.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from tanist.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from tanist.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from tests.broker.authentication.sasl_rig import SASL_EVERYWHERE, RawClient, login
from tests.broker.cluster_rig import Cluster

TOKENS = {**SASL_EVERYWHERE, "delegation.token.secret.key": "secret-of-all"}
MINE = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=-1)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster(config=TOKENS, login=login("PLAIN", "alice", "alice-secret"))


def by_token(made: Any, mechanism: str = "SCRAM-SHA-256") -> ChannelLogin:
    return login(mechanism, made.token_id, b64encode(made.hmac).decode(), tokenauth="true")


def test_who_has_a_token_is_its_owner_at_each_node(cluster: Cluster) -> None:
    made = cluster.ask(MINE, 3, to=2)
    assert (made.error_code, made.principal_name) == (0, "alice")
    cluster.until(lambda: all(made.token_id in node.metadata.image.tokens for node in cluster.world.nodes()))
    for node_id in cluster.world.hosts:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-256"):
            assert cluster.asked_by(by_token(made, mechanism), to=node_id) == "User:alice"
    made.hmac = made.hmac[:-1] + bytes([made.hmac[-1] ^ 1])
    assert cluster.asked_by(by_token(made)) is None
    plain = login("SCRAM-SHA-256", made.token_id, b64encode(made.hmac).decode())
    assert cluster.asked_by(plain) is None, "without tokenauth it is a user"


def test_a_token_is_seen_renewed_and_ended(cluster: Cluster) -> None:
    made = cluster.ask(MINE, 3)
    described = cluster.ask(DescribeDelegationTokenRequest(owners=None), 3)
    assert [each.hmac for each in described.tokens if each.token_id == made.token_id] == [made.hmac]
    nobody = (DescribeDelegationTokenOwner(principal_type="User", principal_name="bob"),)
    assert cluster.ask(DescribeDelegationTokenRequest(owners=nobody), 3).tokens == ()
    assert cluster.ask(DescribeDelegationTokenRequest(owners=()), 3).tokens == ()
    renewed = cluster.ask(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=5_000), 2)
    assert renewed.error_code == 0
    assert renewed.expiry_timestamp_ms < made.expiry_timestamp_ms
    ended = cluster.ask(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1), 2)
    assert ended.error_code == 0
    cluster.until(lambda: made.token_id not in cluster.node(1).metadata.image.tokens)
    assert cluster.asked_by(by_token(made)) is None


def test_a_session_ends_with_its_token_which_is_swept() -> None:
    cluster = Cluster(
        nodes=1,
        config={**TOKENS, "delegation.token.expiry.check.interval.ms": "20000"},
        login=login("PLAIN", "alice", "alice-secret"),
    )
    request = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=10_000)
    made = cluster.ask(request, 3)
    assert cluster.asked_by(by_token(made)) == "User:alice"
    cluster.run(10_001)
    assert made.token_id in cluster.node(1).metadata.image.tokens
    assert cluster.asked_by(by_token(made)) is None, "it has expired, though the log has it"
    cluster.run(20_000)
    assert cluster.node(1).metadata.image.tokens == {}


def test_who_has_come_by_a_token_gets_no_other(cluster: Cluster) -> None:
    made = cluster.ask(MINE, 3)
    holder = Cluster.__new__(Cluster)
    holder.__dict__.update(cluster.__dict__)
    holder.client = cluster.new_client("holder", by_token(made))
    for request, version in (
        (MINE, 3),
        (RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=-1), 2),
        (ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1), 2),
        (DescribeDelegationTokenRequest(owners=None), 3),
    ):
        assert holder.ask(request, version).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_cluster_without_a_secret_has_none() -> None:
    cluster = Cluster(nodes=1, config=SASL_EVERYWHERE, login=login("PLAIN", "alice", "alice-secret"))
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert cluster.ask(MINE, 3).error_code == disabled
    assert cluster.ask(DescribeDelegationTokenRequest(owners=None), 3).error_code == disabled
    assert cluster.ask(RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=-1), 2).error_code == disabled


def test_the_derivation_is_made_off_the_loop_and_once() -> None:
    cluster = Cluster(nodes=1, config=TOKENS, login=login("PLAIN", "alice", "alice-secret"))
    made = cluster.ask(MINE, 3)
    disk, jobs = cluster.node(1).context.disk, []
    run = disk.run
    disk.run = lambda job, done: jobs.append(job) or run(job, done)  # type: ignore[method-assign]
    for _ in range(3):
        assert cluster.asked_by(by_token(made)) == "User:alice"
    assert len(jobs) == 1


def test_a_client_that_goes_while_its_token_is_derived_harms_nobody() -> None:
    cluster = Cluster(nodes=1, config=TOKENS, login=login("PLAIN", "alice", "alice-secret"))
    made = cluster.ask(MINE, 3)
    client = RawClient(cluster)
    dialogue = by_token(made).credentials.begin()
    first = client.ask(dialogue.first(), 1)
    request: Any = dialogue.handle_response(first)
    client.send(encode_request(request, 2, 9, "raw")[4:])
    client.connection.close()
    cluster.run(1_000)
    assert cluster.asked_by(by_token(made)) == "User:alice"
