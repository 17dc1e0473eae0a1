"""Runs with consumer groups: what members do, what the ledger judges, and that it does judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tanist.coordinator.consumer.member import Current, current_record
from tanist.coordinator.effects import Effect
from tanist.coordinator.group import Group
from tanist.sim.checkers.groups import Ledger
from tanist.sim.checkers.replicas import ReplicaChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.oracle import PartitionOracle
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import CLASSIC, CONSUMER, GROUPS, MIXED, MOVING, ChaosConfig, GroupPlan
from tanist.sim.run.drawing import config_of
from tanist.sim.run.groups import Groups
from tanist.sim.world.world import World
from tanist.wire.consumer_group_records import MemberCurrentKey
from tanist.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataMember,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

PLACE = ("g", "t", 0)


def calm(protocol: str, *, settle_time_ms: int = 60_000, **changes: Any) -> ChaosConfig:
    """One group of four, and nothing happens but what is asked for."""
    plan = GroupPlan("g", protocol, 4, ("events", "orders"))
    config = replace(config_of(1, GROUPS).calm(), fault_time_ms=2_000, settle_time_ms=settle_time_ms)
    return config.with_settings(plans=(plan,), **changes)


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER, MIXED])
def test_a_group_shares_its_topics_out_and_commits(protocol: str) -> None:
    run = ChaosRun(4, calm(protocol))
    outcome = run.run()
    assert outcome.violation is None
    counts = outcome.counts
    assert counts["groups: commits acknowledged"] > 5
    assert counts["groups: offsets returned"] > 10
    assert isinstance(run.workload, Groups)
    assert not any(member.owned for member in run.workload.members), "all have left"


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER, MIXED])
def test_the_classic_members_go_on_when_the_last_of_the_new_protocol_leave(protocol: str) -> None:
    """Who leaves last is drawn: of four groups, one at least ends with classic members alone."""
    downgraded = [ChaosRun(seed, calm(protocol)).run().counts["groups: downgraded"] for seed in range(1, 5)]
    assert (sum(downgraded) > 0) == (protocol == MIXED)


@pytest.mark.parametrize("move", ["rolling", "empty", "abrupt"])
def test_a_group_moves_between_the_protocols_in_both_directions(move: str) -> None:
    plan = GroupPlan("g", MOVING, 2, ("events",))
    config = calm(CLASSIC).with_settings(plans=(plan,), moves=(move,), move_pause_ms=(7_000, 8_000))
    outcome = ChaosRun(4, replace(config, fault_time_ms=40_000)).run()
    assert outcome.violation is None
    counts = outcome.counts
    assert counts[f"groups: moves to the classic protocol, {move}"] > 0
    assert counts[f"groups: moves to the consumer protocol, {move}"] > 0
    assert counts["groups: upgraded"] > 0
    assert counts["groups: downgraded"] > 0
    assert counts["coordinators: compared with the replay of their log"] > 10


def test_a_coordinator_that_has_other_members_than_its_log_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that no record has changed: the members of a stable classic group."""

    def forgets(group: Group, purpose: Any, error: int, now_ms: int) -> list[Effect]:
        effects = written(group, purpose, error, now_ms)
        if len(group.members) > 1:
            group.members.popitem()
        return effects

    written = Group.written
    monkeypatch.setattr(Group, "written", forgets)
    violation = ChaosRun(4, calm(CLASSIC)).run().violation
    assert violation is not None
    assert violation.property_id == "C6"
    assert "is stable with" in violation.message


def test_a_partition_more_gets_an_owner() -> None:
    for protocol in (CLASSIC, CONSUMER):
        outcome = ChaosRun(3, calm(protocol, grows=True)).run()
        assert outcome.violation is None
        assert outcome.counts["groups: topics grown"] == 1


def test_the_same_seed_is_the_same_run() -> None:
    short = replace(config_of(2, GROUPS), fault_time_ms=2_500)
    first, second = ChaosRun(2, short).run(), ChaosRun(2, short).run()
    assert first.violation is None
    assert first.faults > 0
    assert (first.digest, first.events) == (second.digest, second.events)
    assert first.digest != ChaosRun(2, short.calm()).run().digest


def test_a_group_that_does_not_settle_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tanist.client.classic_member.assign_range", lambda subscriptions, partitions: {})
    violation = ChaosRun(3, calm(CLASSIC, settle_time_ms=5_000)).run().violation
    assert violation is not None
    assert violation.property_id == "C5"
    assert "is nobody's" in violation.message


# -- the ledger alone


class Book(Ledger):
    """A ledger with a log that is written by hand."""

    def __init__(self) -> None:
        world = World(1)
        super().__init__(world, ReplicaChecks(world))
        self.oracle = PartitionOracle((UUID(int=7), 0), "__consumer_offsets-0")
        self.at = 0

    def _oracle_of(self, group: str) -> PartitionOracle:
        return self.oracle

    def log(self, key: Any, value: Any) -> None:
        self._replay(self.at, key, value)
        self.at += 1

    def log_commit(self, offset: int, tag: str) -> None:
        group, topic, partition = PLACE
        self.log(
            OffsetCommitKey(group=group, topic=topic, partition=partition),
            OffsetCommitValue(offset=offset, metadata=tag),
        )

    def log_generation(self, generation: int, *members: str) -> None:
        each = tuple(GroupMetadataMember(member_id=member, client_id="", client_host="") for member in members)
        self.log(
            GroupMetadataKey(group="g"),
            GroupMetadataValue(protocol_type="consumer", generation=generation, members=each),
        )

    def log_epoch(self, member: str, epoch: int | None) -> None:
        value = None if epoch is None else current_record(Current(epoch=epoch))
        self.log(MemberCurrentKey(group="g", member_id=member), value)

    def tell(self, client: str, epoch: int, *, classic: bool = False) -> None:
        self.assigned(client, "g", f"{client}-id", epoch, [PLACE[1:]], classic=classic)


@pytest.fixture
def book() -> Book:
    return Book()


def violates(property_id: str) -> Any:
    return pytest.raises(Violation, match=f"^{property_id} at ")


def test_what_is_reported_is_in_the_log(book: Book) -> None:
    book.commits("one", PLACE, 5, "one#1")
    with violates("C1"):
        book.committed("one", PLACE, 5, "one#1")
    with violates("C1"):
        book.fetched("two", "g", book.asks("g"), {("t", 0): (5, "one#1")})
    book.log_commit(5, "one#1")
    book.committed("one", PLACE, 5, "one#1")
    with violates("C1"):
        book.fetched("two", "g", book.asks("g"), {("t", 0): (6, "one#1")})


def test_reported_offsets_do_not_go_back(book: Book) -> None:
    book.log_commit(5, "one#1")
    book.log_commit(7, "one#2")
    early = book.asks("g")
    book.fetched("two", "g", book.asks("g"), {("t", 0): (7, "one#2")})
    book.fetched("three", "g", early, {("t", 0): (5, "one#1")})  # asked before any client got it
    with violates("C2"):
        book.fetched("three", "g", book.asks("g"), {("t", 0): (5, "one#1")})
    with violates("C2"):
        book.fetched("three", "g", book.asks("g"), {("t", 0): (-1, "")})


def test_an_owner_goes_on_where_the_one_before_was(book: Book) -> None:
    for client, offset, tag in (("one", 5, "one#1"), ("one", 4, "one#2"), ("two", 4, "two#1"), ("one", 3, "one#3")):
        book.commits(client, PLACE, offset, tag)
    book.log_commit(5, "one#1")
    book.log_commit(4, "one#2")  # its own retry, overtaken
    book.log_commit(4, "two#1")
    with violates("C4"):
        book.log_commit(3, "one#3")


def test_an_assignment_is_stored_before_it_is_reported(book: Book) -> None:
    with violates("C3"):
        book.tell("one", 1)
    book.log_epoch("one-id", 1)
    book.tell("one", 1)
    with violates("C3"):
        book.tell("one", 2)
    book.log_generation(3, "two-id")
    with violates("C3"):
        book.tell("three", 3, classic=True)


def test_a_partition_has_one_owner_until_the_log_or_the_owner_says_otherwise(book: Book) -> None:
    for name in ("one-id", "two-id"):
        book.log_epoch(name, 1)
    book.tell("one", 1)
    with violates("C3"):
        book.tell("two", 1)
    book.revoked("one", "g", [("t", 0)])
    book.tell("two", 1)
    book.log_epoch("two-id", None)  # its session is over, whatever it believes
    book.tell("one", 1)
    book.tell("two", 1)  # an answer of old, read too late
    with violates("C3"):
        book.log_epoch("three-id", 4)
        book.tell("three", 4)


def test_a_generation_ends_the_one_before(book: Book) -> None:
    book.log_generation(1, "one-id", "two-id")
    book.tell("one", 1, classic=True)
    with violates("C3"):
        book.tell("two", 1, classic=True)
    book.log_generation(2, "one-id", "two-id")
    book.tell("two", 2, classic=True)
    book.tell("one", 1, classic=True)  # has yet to hear of it
    with violates("C3"):
        book.tell("one", 2, classic=True)


def test_what_was_given_up_is_not_judged(book: Book) -> None:
    book.oracle.unclean = 1
    book.tell("one", 1)
    book.fetched("two", "g", book.asks("g"), {("t", 0): (5, "one#1")})
    book.committed("one", PLACE, 5, "one#1")
    assert book.asks("g") == {}
