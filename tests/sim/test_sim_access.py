"""Access in the simulator: drawn for a share of the seeds, survived, and judged (S29, L16)."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from dataclasses import replace
from uuid import UUID

import pytest

from tanist.client.metadata import metadata_request
from tanist.client.offsets import offset_commit
from tanist.client.positions import fetch_request
from tanist.client.requests import CoordinatorKind, find_coordinator
from tanist.client.sequences import produce_request
from tanist.controller.security.scram import credential_record
from tanist.lab.mutations.examination import healthy, hunt
from tanist.lab.mutations.rules_of_access import ACCESS_MUTANTS
from tanist.lab.simulation.running import Terms
from tanist.security.sasl.scram import SHA_256, SaltedPasswords, ScramClient, ScramCredential, ScramServer
from tanist.sim.access_oracle import AccessOracle
from tanist.sim.checkers.access import outcomes
from tanist.sim.checkers.logins import Believed, Login, Moment
from tanist.sim.run.additions import SECURED_SHARE
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import GROUPS, TRANSACTIONS, ChaosConfig
from tanist.sim.run.drawing import config_of, operations_of
from tanist.sim.secured import PROPERTIES, TOKEN_SECRET
from tanist.sim.workload.operations import ACCESS_OPERATIONS, QUOTA_OPERATIONS, Topic
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.error_responses import error_response
from tanist.wire.errors import ErrorCode
from tanist.wire.metadata import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    UserScramCredentialRecord,
)
from tanist.wire.schema import Request

CONFIG = ChaosConfig(
    topics=(Topic("events", 1, 3),),
    kinds=(),
    pause_ms=100,
    fault_time_ms=4_000,
    secured=True,
    access_operations=(*ACCESS_OPERATIONS, "allow", "revoke"),
    access_pause_ms=(10, 200),
)
AT_ONCE = {
    "access-gate": {"S29"},
    "access-inner": {"S29"},
    "access-decisions": {"S29"},
    "access-snapshot": {"S16"},
}
PATIENCE = 3


# -- the addition


def test_a_share_of_the_seeds_draws_it_and_the_option_gives_it_to_all() -> None:
    drawn = [config_of(seed) for seed in range(600)]
    forced = [config_of(seed, secured=True) for seed in range(600)]
    own = [config for config in drawn if config.secured]
    assert abs(len(own) - SECURED_SHARE * 600) < 30
    assert all(config.secured and config.access_operations for config in forced)
    assert all(one == other for one, other in zip(drawn, forced, strict=True) if one.secured)
    assert not any(config.access_operations for config in drawn if not config.secured)


def test_what_else_a_seed_draws_is_the_same_with_it() -> None:
    for seed in range(20):
        without, config = config_of(seed), config_of(seed, secured=True)
        if without.secured:
            continue
        changed = {"secured", "access_operations", "access_pause_ms", "properties"}
        changed |= {"quotas", "quota_operations", "quota_pause_ms"}
        assert {name for name in vars(config) if getattr(config, name) != getattr(without, name)} <= changed
        own = ACCESS_OPERATIONS.keys() | QUOTA_OPERATIONS.keys()
        others = [each for each in operations_of(seed, config) if each.kind not in own]
        assert others == operations_of(seed, without)


def test_the_terms_of_seeds_can_ask_for_it() -> None:
    assert Terms.of(secured=True).config(7) == config_of(7, secured=True)
    assert Terms.of(groups=True, secured=True).config(7).secured
    with pytest.raises(ValueError, match="a broken rule has runs of its own"):
        Terms(mutation="A2", secured=True)


# -- runs


def test_access_changes_and_each_answer_is_that_of_a_moment() -> None:
    outcome = ChaosRun(3, CONFIG).run()
    assert outcome.violation is None
    for name in ("allowed", "denied", "strangers turned away", "authentications refused", "authenticated by PLAIN"):
        assert outcome.counts[f"access: {name}"] > 0, name
    assert outcome.counts["access: authenticated by SCRAM-SHA-256"] > 0
    assert outcome.counts["access: records of subjects committed"] > 0


@pytest.mark.parametrize(("workload", "seed"), [(GROUPS, 4), (TRANSACTIONS, 4)])
def test_other_workloads_are_secured_too(workload: str, seed: int) -> None:
    config = replace(config_of(seed, workload, secured=True), fault_time_ms=3_000)
    outcome = ChaosRun(seed, config).run()
    assert outcome.violation is None
    assert outcome.counts["access: allowed"] > 0
    assert outcome.counts["access: denied"] > 0


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_broken_rule_shows(name: str) -> None:
    seen, _ = hunt(ACCESS_MUTANTS[name], range(1, 1 + PATIENCE))
    assert seen is not None
    assert seen.property_id in AT_ONCE[name], seen.message


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ACCESS_MUTANTS if name not in AT_ONCE])
def test_a_broken_rule_shows_at_last(name: str) -> None:
    seen, _ = hunt(ACCESS_MUTANTS[name], range(1, 30))
    assert seen is not None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_the_runs_of_the_mutations_hold_with_the_rules_as_they_are(seed: int) -> None:
    assert healthy(ACCESS_MUTANTS["access-gate"], seed) is None


# -- the history of entries


def test_a_batch_takes_effect_as_a_whole_and_prefixes_are_asked_about() -> None:
    oracle = AccessOracle(())
    one, other = (
        AccessControlEntryRecord(
            id=UUID(int=number),
            resource_type=ResourceType.TOPIC,
            resource_name="t",
            pattern_type=PatternType.LITERAL,
            principal="User:a",
            host="*",
            operation=AclOperation.READ,
            permission_type=permission,
        )
        for number, permission in ((1, AclPermission.ALLOW), (2, AclPermission.DENY))
    )
    oracle.replay(5, one)
    oracle.replay(9, other)
    oracle.replay(9, RemoveAccessControlEntryRecord(id=one.id))
    oracle.replay(12, RemoveAccessControlEntryRecord(id=other.id))

    def entries(first: int, last: int) -> list[list[int]]:
        return [sorted(each.int for each in access.entries) for access in oracle.between(first, last)]

    assert entries(0, 4) == [[]]
    assert entries(5, 8) == [[1]]
    assert entries(4, 9) == [[], [1], [2]]
    assert entries(11, 20) == [[2], []]
    assert entries(8, 3) == [[1]], "an answer that comes from before"


# -- authentications

_NOW = Moment(10, 1_000, 50_000)


def _dialogue(user: str, password: str, credential: ScramCredential, *, by_token: bool = False) -> tuple[bytes, ...]:
    """The tokens of a client that the product's server would believe, or not; the last is made up."""
    salted = SaltedPasswords(SHA_256, password)
    client = ScramClient(SHA_256, user, salted.of, lambda count: b"x" * count, token=by_token)
    server = ScramServer(SHA_256, lambda count: b"y" * count, lambda name: credential)
    first = client.first()
    challenge = server.step(first.replace(b",tokenauth=true", b""))
    token: bytes = challenge.token
    final = client.step(token)
    assert final is not None
    return first, token, final, b"v="


def _judged(tokens: tuple[bytes, ...], oracle: AccessOracle, begun: Moment = _NOW) -> Believed | str | None:
    login = Login("SCRAM-SHA-256")
    login.shown(tokens[0], begun)
    assert login.accepted(tokens[1], begun, oracle) is None
    login.shown(tokens[2], begun)
    return login.accepted(tokens[3], _NOW._replace(applied=20), oracle)


def test_a_proof_is_believed_if_the_password_stood_at_a_moment() -> None:
    salt = b"salt"
    salted = SHA_256.salted_password("secret", salt, 4096)
    record: UserScramCredentialRecord = credential_record("alice", 1, salted, salt, 4096)
    other = credential_record("alice", 1, SHA_256.salted_password("another", salt, 4096), salt, 4096)
    credential = ScramCredential.of_password(SHA_256, "secret", salt, 4096)
    tokens = _dialogue("alice", "secret", credential)
    oracle = AccessOracle(())
    assert isinstance(_judged(tokens, oracle), str), "there is no user"
    oracle.replay(5, record)
    assert _judged(tokens, oracle) == Believed("User:alice", None)
    oracle.replay(15, other)
    assert _judged(tokens, oracle) == Believed("User:alice", None), "it stood when the client began"
    assert isinstance(_judged(tokens, oracle, Moment(16, 1_000, 50_000)), str), "another one stood then"


def test_a_token_is_believed_while_it_stands_and_lasts() -> None:
    password = b64encode(hmac.digest(TOKEN_SECRET.encode(), b"id", "sha512")).decode()
    credential = ScramCredential.of_password(SHA_256, password, b"salt", 4096)
    first, challenge, _, last = _dialogue("id", password, credential, by_token=True)
    given = dict(each.split("=", 1) for each in challenge.decode().split(","))
    bare, without = first.decode().split(",", 2)[2], f"c=biws,r={given['r']}"
    key = hmac.digest(hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", 4096), b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{challenge.decode()},{without}".encode(), "sha256")
    proof = b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    tokens = (first, challenge, f"{without},p={proof}".encode(), last)
    oracle = AccessOracle(())
    assert isinstance(_judged(tokens, oracle), str), "there is no token"
    oracle.replay(
        5, DelegationTokenRecord(owner="User:carol", token_id="id", expiration_timestamp=50_400, max_timestamp=99_000)
    )
    assert _judged(tokens, oracle) == Believed("User:carol", 1_400)
    assert isinstance(_judged(tokens, oracle, Moment(10, 1_000, 50_401)), str), "it has expired"
    oracle.replay(8, RemoveDelegationTokenRecord(token_id="id"))
    assert isinstance(_judged(tokens, oracle), str), "it was revoked before"


def test_plain_passwords_are_those_of_the_nodes_properties() -> None:
    assert 'user_bob="bob-secret"' in PROPERTIES["listener.name.plaintext.plain.sasl.jaas.config"]
    for password, expected in (("bob-secret", Believed("User:bob", None)), ("a guess", "not the password of bob")):
        login = Login("PLAIN")
        login.shown(f"\0bob\0{password}".encode(), _NOW)
        assert login.accepted(b"", _NOW, AccessOracle(())) == expected


# -- answers


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (metadata_request(("ledger",)), 12),
        (fetch_request(("ledger", 0), 0, max_bytes=1), 12),
        (produce_request(("ledger", 0), b"", timeout_ms=1), 9),
        (offset_commit("accounts", {("ledger", 0): 1}), 8),
        (find_coordinator(CoordinatorKind.GROUP, "accounts"), 4),
    ],
)
def test_a_request_that_an_exception_has_ended_says_nothing_of_access(request_: Request, version: int) -> None:
    refused = error_response(request_, version, ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert list(outcomes(request_, refused)) == []
    assert len(list(outcomes(request_, error_response(request_, version, ErrorCode.NOT_COORDINATOR, "")))) == 1
