"""Delegation tokens: made, renewed, expired, swept; who may, and for how long (Apache Kafka's rules)."""

from __future__ import annotations

import hmac
from typing import Any

import pytest

from tanist.controller.image.image import METADATA_VERSION, MetadataImage
from tanist.controller.security.tokens import (
    TOKENS_FROM,
    TokenSettings,
    decide_token,
    has_expired,
    sweep_tokens,
)
from tanist.controller.token_request import TokenRequest
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from tanist.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from tanist.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from tanist.wire.metadata import DelegationTokenRecord, FeatureLevelRecord, RemoveDelegationTokenRecord

SECRET = "the-secret"
SETTINGS = TokenSettings(SECRET, max_lifetime_ms=1_000, expiry_time_ms=100, check_interval_ms=10)
ALICE, BOB, CAROL = ("User", "alice"), ("User", "bob"), ("User", "carol")
NOW = 50_000


class Numbers:
    def __init__(self) -> None:
        self._next = 0

    def below(self, n: int) -> int:
        raise AssertionError

    def bytes(self, n: int) -> bytes:
        self._next += 1
        return self._next.to_bytes(n, "big")


class Bench:
    def __init__(self, settings: TokenSettings = SETTINGS, level: int = TOKENS_FROM) -> None:
        self.image = MetadataImage()
        self.image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level))
        self.settings = settings
        self._random = Numbers()

    def ask(self, request: Any, who: tuple[str, str] = ALICE, at: int = NOW) -> Any:
        decision = decide_token(self.image, TokenRequest(request, who, at), self.settings, self._random)
        for record in decision.records:
            self.image.replay(record)
        return decision.response

    def create(self, who: tuple[str, str] = ALICE, **fields: Any) -> Any:
        fields.setdefault("max_lifetime_ms", -1)
        return self.ask(
            CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name=None, **fields), who
        )

    def renew(self, hmac_: bytes, period_ms: int = -1, **how: Any) -> Any:
        return self.ask(RenewDelegationTokenRequest(hmac=hmac_, renew_period_ms=period_ms), **how)

    def expire(self, hmac_: bytes, period_ms: int = -1, **how: Any) -> Any:
        return self.ask(ExpireDelegationTokenRequest(hmac=hmac_, expiry_time_period_ms=period_ms), **how)


def test_a_token_is_the_hmac_of_its_id_and_nothing_of_it_is_in_the_log() -> None:
    bench = Bench()
    made = bench.create()
    assert made.error_code == 0
    assert made.hmac == hmac.digest(SECRET.encode(), made.token_id.encode(), "sha512")
    assert (made.principal_type, made.principal_name) == ALICE
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (NOW, NOW + 100, NOW + 1_000)
    record = bench.image.tokens[made.token_id]
    assert record == DelegationTokenRecord(
        owner="User:alice",
        requester="User:alice",
        issue_timestamp=NOW,
        max_timestamp=NOW + 1_000,
        expiration_timestamp=NOW + 100,
        token_id=made.token_id,
    )
    assert SECRET not in repr((SETTINGS, made))
    assert repr(made.hmac) not in repr(made)
    assert bench.create().token_id != made.token_id


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "expiry_ms"), [(-1, 1_000, 100), (0, 1_000, 100), (50, 50, 50), (5_000, 1_000, 100)]
)
def test_a_lifetime_is_no_longer_than_the_clusters(asked_ms: int, max_ms: int, expiry_ms: int) -> None:
    made = Bench().create(max_lifetime_ms=asked_ms)
    assert (made.max_timestamp_ms - NOW, made.expiry_timestamp_ms - NOW) == (max_ms, expiry_ms)


def test_a_token_for_somebody_else() -> None:
    bench = Bench()
    request = CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="bob", renewers=(_renewer("carol"),), max_lifetime_ms=-1
    )
    made = bench.ask(request, ALICE)
    assert (made.principal_name, made.token_requester_principal_name) == ("bob", "alice")
    record = bench.image.tokens[made.token_id]
    assert (record.owner, record.requester, record.renewers) == ("User:bob", "User:alice", ("User:carol",))
    for who in (ALICE, BOB, CAROL):
        assert bench.renew(made.hmac, who=who).error_code == 0
    assert bench.renew(made.hmac, who=("User", "dave")).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert bench.expire(made.hmac, who=("User", "dave")).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def _renewer(name: str, kind: str = "User") -> CreatableRenewers:
    return CreatableRenewers(principal_type=kind, principal_name=name)


def test_owners_and_renewers_are_users() -> None:
    bench = Bench()
    assert bench.create(renewers=(_renewer("x", "Group"),)).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    request = CreateDelegationTokenRequest(owner_principal_type="Group", owner_principal_name="x", max_lifetime_ms=-1)
    assert bench.ask(request).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert not bench.image.tokens


def test_a_renewal_begins_now_and_ends_with_the_lifetime() -> None:
    bench = Bench()
    token = bench.create().hmac
    assert bench.renew(token, at=NOW + 50).expiry_timestamp_ms == NOW + 150
    assert bench.renew(token, 30, at=NOW + 60).expiry_timestamp_ms == NOW + 90
    assert bench.renew(token, 10_000, at=NOW + 90).expiry_timestamp_ms == NOW + 190
    for at in range(NOW + 190, NOW + 950, 100):
        bench.renew(token, at=at)
    assert bench.renew(token, at=NOW + 960).expiry_timestamp_ms == NOW + 1_000
    assert bench.renew(token, at=NOW + 1_001).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    (record,) = bench.image.tokens.values()
    assert not has_expired(record, NOW + 1_000)
    assert has_expired(record, NOW + 1_001)


def test_a_token_is_shortened_and_ended() -> None:
    bench = Bench()
    token = bench.create().hmac
    assert bench.expire(token, 20, at=NOW + 10).expiry_timestamp_ms == NOW + 30
    assert bench.expire(token, 5_000, at=NOW + 10).expiry_timestamp_ms == NOW + 1_000
    assert bench.expire(token, 0, at=NOW + 10).expiry_timestamp_ms == NOW + 10
    assert bench.expire(token, 5, at=NOW + 11).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert bench.expire(token, -1, at=NOW + 12).error_code == 0, "to end one that has expired does no harm"
    assert not bench.image.tokens
    assert bench.expire(token, -1).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert bench.renew(token).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize("given", [b"", b"x", bytes(64)])
def test_a_token_that_nobody_has_made(given: bytes) -> None:
    bench = Bench()
    bench.create()
    for answer in (bench.renew(given), bench.expire(given)):
        assert (answer.error_code, answer.expiry_timestamp_ms) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1)


@pytest.mark.parametrize(
    ("bench", "code"),
    [
        (Bench(TokenSettings(None, 1, 1, 1)), ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
        (Bench(level=TOKENS_FROM - 1), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_cluster_without_tokens(bench: Bench, code: ErrorCode) -> None:
    assert [each.error_code for each in (bench.create(), bench.renew(b"x"), bench.expire(b"x"))] == [code] * 3
    assert not bench.image.tokens


def test_settings_are_kafkas() -> None:
    assert TokenSettings.of({}) == TokenSettings(None, 604_800_000, 86_400_000, 3_600_000)
    assert TokenSettings.of({"delegation.token.secret.key": "x"}).secret == "x"


def test_expired_tokens_go_so_many_at_a_time() -> None:
    bench = Bench()
    tokens = [bench.create() for _ in range(3)]
    bench.renew(tokens[2].hmac, at=NOW + 99)
    decision = sweep_tokens(bench.image, NOW + 101)
    assert decision.records == tuple(RemoveDelegationTokenRecord(token_id=each.token_id) for each in tokens[:2])
    for number in range(1_500):
        bench.image.replay(DelegationTokenRecord(token_id=f"old-{number}"))
    assert len(sweep_tokens(bench.image, NOW).records) == 1_000
