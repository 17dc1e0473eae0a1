"""One node of the controller quorum: kinds `raft_vote`, `raft_epoch`, `raft_hw`, `raft_fetch`, and the other `raft_*`.

Owns the players of `tanist.quorum`. The local node is 0. A fatal error in Kafka (an expected exception) must be a
`QuorumError` here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tanist.lab.scenarios.fields import Fields, NotUnderstood
from tanist.lab.scenarios.outcome import Difference, Mismatch, error_name, is_failure, same, same_error
from tanist.lab.scenarios.quorum_node import (
    ME,
    NodeUnderTest,
    begin,
    end,
    error_of,
    fetch,
    fetched,
    key,
    log_of,
    part_of,
    vote,
    voters_of,
)
from tanist.quorum import ElectionState, LogEnd, QuorumError, QuorumRules, RaftConfig, SnapshotId, VoterSet
from tanist.quorum.state.progress import Progress
from tanist.quorum.storage import batches
from tanist.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from tanist.wire.messages.fetch_request import FetchRequest

Player = Callable[[Fields], None]
NOBODY = -1
UNDEFINED = (-1, -1)
_EVERYBODY = (0, 1, 2)


def fatal_or(player: Player) -> Callable[[Fields], Sequence[Difference]]:
    """A player whose scenarios may expect an exception instead of an answer."""

    def play(item: Fields) -> Sequence[Difference]:
        expected = None
        if isinstance(item.get("expect"), dict):
            expect = item.inner("expect")
            expected = expect.given("exception", "error")
        if not is_failure(expected):
            player(item)
            return ()
        try:
            player(item)
        except QuorumError:
            return ()
        raise Mismatch("the node", expected, "no exception")

    return play


def _voters(item: Fields) -> tuple[int, ...]:
    return item.ids("voters") if "voters" in item else _EVERYBODY


def _batches(log: Fields) -> list[tuple[int, int]]:
    if "batches" in log:
        pairs = [(int(epoch), int(count)) for epoch, count in log["batches"]]
        end_offset = log.number("end_offset", sum(count for _, count in pairs))
        if end_offset != sum(count for _, count in pairs):
            raise NotUnderstood(f"the batches do not end at {end_offset}")
        log.get("last_epoch")
        return pairs
    end_offset = log.number("end_offset", 0)
    last_epoch = log.number("last_epoch", 0)
    return [(last_epoch, end_offset)] if end_offset else []


def _node_under_test(item: Fields) -> NodeUnderTest:
    """A node in a given state, by the shortest way to it."""
    initial = item.inner("initial")
    state, epoch = str(initial.get("state", "UNATTACHED")), initial.number("epoch", 0)
    leader, voted = initial.get("leader"), initial.get("voted")
    has_fetched = bool(initial.get("has_fetched_from_leader", False))
    held = _batches(item.inner("log"))
    stored = ElectionState(epoch, None, None if voted in (None, NOBODY) else key(voted))
    if state == "LEADER":
        # The given log already has the leader change, which the node will write itself.
        held = _without_last_record(held)
        stored = ElectionState(epoch, None, key(ME))
    elif state == "CANDIDATE":
        stored = ElectionState(epoch, None, key(ME))
    elif state == "RESIGNED":
        stored = ElectionState(epoch, ME, stored.voted)
    elif state in ("FOLLOWER", "PROSPECTIVE"):
        stored = ElectionState(epoch, leader, stored.voted)
    tested = NodeUnderTest(_voters(item), stored=stored, log=log_of(held), config=_config(item))
    if state == "LEADER":
        tested.become_leader()
    elif state == "PROSPECTIVE":
        tested.role_timeout()
    elif state == "UNATTACHED_LEADER_KNOWN":
        tested.node.know_leader(leader)
    elif state == "FOLLOWER" and has_fetched:
        tested.respond(tested.last_sent(FetchRequest), fetched(leader, epoch))
    if tested.state != _role(state):
        raise NotUnderstood(f"the node begins {tested.state}, not {state}")
    return tested


def _role(state: str) -> str:
    return state.removesuffix("_VOTED").removesuffix("_LEADER_KNOWN")


def _without_last_record(held: list[tuple[int, int]]) -> list[tuple[int, int]]:
    if not held:
        return []
    *rest, (epoch, count) = held
    return [*rest, (max(0, epoch - 1), count - 1)] if count > 1 else rest


def _config(item: Fields) -> RaftConfig:
    usual = RaftConfig()
    return RaftConfig(
        election_timeout_ms=item.number("election_timeout_ms", usual.election_timeout_ms),
        fetch_timeout_ms=item.number("fetch_timeout_ms", usual.fetch_timeout_ms),
        election_backoff_max_ms=item.number("election_backoff_max_ms", usual.election_backoff_max_ms),
    )


def _check_after(tested: NodeUnderTest, after: Fields) -> None:
    for name in after:
        wanted = after[name]
        if name == "state":
            same("the state", tested.state, _role(str(wanted)))
        elif name == "epoch":
            same("the epoch", tested.node.epoch, wanted)
        elif name == "leader":
            same("the leader", _id(tested.node.known_leader_id), _id(wanted))
        elif name == "voted":
            voted = tested.node.voted
            same("the vote", NOBODY if voted is None else voted.node_id, _id(wanted))
        elif name != "note":
            raise NotUnderstood(f"not understood: {after.where}.{name}")


def _id(value: int | None) -> int:
    return NOBODY if value is None else value


def _check_response(response: Any, expect: Fields) -> None:
    same_error("the error", error_of(response), expect.get("error"))
    returned = {
        "error": error_name(expect.get("error")),
        "exception": None,
    }
    if response.error_code == 0:
        part: Any = part_of(response)
        returned |= {
            "epoch": part.leader_epoch,
            "leader": part.leader_id,
            "granted": getattr(part, "vote_granted", None),
        }
    for name in expect:
        if name in ("error", "note"):
            continue
        if name == "granted" and response.error_code != 0:
            same(name, False, expect[name])  # an error of the whole request grants nothing
        elif name in ("epoch", "leader") and response.error_code != 0:
            expect[name]  # is not in such an answer
        elif name not in returned:
            raise NotUnderstood(f"not understood: {expect.where}.{name}")
        else:
            same(f"{name} returned", returned[name], _id(expect[name]) if name == "leader" else expect[name])


# -- kinds ------------------------------------------------------------------------------------------------------------


def raft_vote(item: Fields) -> None:
    tested = _node_under_test(item)
    asked = item.inner("request")
    names = {
        "cluster_id": "cluster_id",
        "voter": "to_id",
        "voter_id": "to_id",
        "topic": "topic",
        "partition": "partition",
    }
    optional: dict[str, Any] = {ours: asked[theirs] for theirs, ours in names.items() if theirs in asked}
    request = vote(
        asked.number("epoch"),
        asked.number("from"),
        asked.number("last_epoch"),
        asked.number("last_offset"),
        pre_vote=bool(asked.get("pre_vote", False)),
        **optional,
    )
    _check_response(tested.ask(request), item.inner("expect"))
    _check_after(tested, item.inner("after"))


def raft_epoch(item: Fields) -> None:
    """BeginQuorumEpoch, EndQuorumEpoch, and the ends of roles."""
    tested = _node_under_test(item)
    asked = item.inner("request")
    kind = str(asked["type"])
    response: Any = None
    if kind == "BEGIN_QUORUM_EPOCH":
        response = tested.ask(begin(asked.number("leader"), asked.number("epoch")))
    elif kind == "END_QUORUM_EPOCH":
        preferred = asked.given("preferred", "successors", "candidates") or ()
        response = tested.ask(end(asked.number("leader"), asked.number("epoch"), preferred))
    elif kind.endswith("TIMEOUT"):
        tested.role_timeout()
    else:
        raise NotUnderstood(f"there is no request {kind}")
    if response is not None and "expect" in item:
        _check_response(response, item.inner("expect"))
    _check_after(tested, item.inner("after"))


def raft_hw(item: Fields) -> None:
    """The commit rule of a leader."""
    progress = Progress(ME, VoterSet(voters_of(_voters(item))), 0)
    rules = QuorumRules()
    start, watermark = item.number("start"), None
    updates, expected = item["updates"], item["hw"]
    if len(updates) != len(expected):
        raise NotUnderstood(f"{len(updates)} updates and {len(expected)} high watermarks")
    for (node_id, end_offset), wanted in zip(updates, expected, strict=True):
        if node_id == ME:
            progress.own_end(end_offset)
        else:
            progress.fetched(key(node_id), end_offset, end_offset, 0)
        offset = rules.commit_offset(progress.end_offsets(), start)
        if offset is not None and (watermark is None or offset > watermark):
            watermark = offset
        same(f"the high watermark once {node_id} is at {end_offset}", watermark, wanted)


def raft_fetch(item: Fields) -> None:
    """A leader's answer to a fetch."""
    snapshot = SnapshotId(*item["snapshot"]) if item.get("snapshot") else None
    epoch = item.number("leader_epoch")
    # Record by record, so that a snapshot may end anywhere.
    held = log_of([(batch_epoch, 1) for batch_epoch, count in item["batches"] for _ in range(count)], snapshot)
    tested = NodeUnderTest(_voters(item), stored=ElectionState(epoch, None, key(ME)), log=held)
    tested.become_leader()
    asked = item.inner("fetch")
    request = fetch(
        asked.number("epoch"),
        asked.number("from", 1),
        asked.number("offset"),
        asked.number("last_epoch"),
        max_wait_ms=asked.number("max_wait_ms", 0),
    )
    response = tested.ask(request)
    expect, part = item.inner("expect"), part_of(response)
    same_error("the error", error_of(response), expect.get("error"))
    diverging, reported = _pair(part.diverging_epoch), _pair(part.snapshot_id)
    for name in expect:
        wanted = expect[name]
        if name == "diverging":
            same("the diverging epoch", diverging, _pair_of(wanted))
        elif name == "snapshot":
            same("the snapshot", reported, _pair_of(wanted))
        elif name == "hw":
            same("the high watermark", part.high_watermark, _id(wanted))
        elif name == "log_start":
            same("the log's start", part.log_start_offset, wanted)
        elif name == "records":
            same("whether there are records", bool(part.records), bool(wanted))
        elif name == "valid":
            same("whether the position is valid", diverging == UNDEFINED and reported == UNDEFINED, wanted)
        elif name not in ("error", "note"):
            raise NotUnderstood(f"not understood: {expect.where}.{name}")


def _pair(struct: Any) -> tuple[int, int]:
    return (struct.epoch, struct.end_offset)


def _pair_of(value: Any) -> tuple[int, int]:
    """An epoch and an end: a mapping, or a snapshot's id as Kafka writes it, [end offset, epoch]."""
    if value is None:
        return UNDEFINED
    if isinstance(value, dict):
        ends = [value[name] for name in ("end", "end_offset", "offset") if name in value]
        if len(ends) != 1 or "epoch" not in value or len(value) != 2:
            raise NotUnderstood(f"{value!r} is not an epoch and an end")
        return (value["epoch"], ends[0])
    end_offset, epoch = value
    return (epoch, end_offset)


def raft_follower(item: Fields) -> None:
    """A follower's reaction to an answer to its fetch."""
    answered = item.inner("response")
    epoch, leader = answered.number("epoch"), answered.number("leader", 1)
    tested = NodeUnderTest(
        _voters(item), stored=ElectionState(epoch, leader, None), log=log_of(_batches(item.inner("log")))
    )
    if item.get("hw") is not None:
        tested.respond(tested.last_sent(FetchRequest), fetched(leader, epoch, high_watermark=item.number("hw")))
    diverging = answered.get("diverging")
    records = answered.get("records") or 0
    count = records if isinstance(records, int) else len(records)
    data = b""
    if count:
        values = [b"v"] * count
        data = bytes(batches.encode_values(values, base_offset=tested.log.end_offset, epoch=epoch, timestamp=0))
    response = fetched(
        leader,
        epoch,
        high_watermark=answered.number("hw", -1),
        diverging=None if diverging is None else LogEnd(*_pair_of(diverging)),
        records=data,
    )
    tested.respond(tested.last_sent(FetchRequest), response)
    expect = item.inner("expect")
    for name in expect:
        if name == "end_offset":
            same("the log's end", tested.log.end_offset, expect[name])
        elif name == "hw":
            same("the high watermark", tested.node.high_watermark, expect[name])
        elif name == "next_fetch":
            wanted = expect.inner(name)
            request: Any = tested.last_sent(FetchRequest).request
            part = request.topics[0].partitions[0]
            same("the next fetch's offset", part.fetch_offset, wanted["offset"])
            same("the next fetch's last epoch", part.last_fetched_epoch, wanted["last_epoch"])
        elif name not in ("note", "error", "exception"):
            raise NotUnderstood(f"not understood: {expect.where}.{name}")


def raft_resign(item: Fields) -> None:
    """A leader that gets no fetches of a majority."""
    config = RaftConfig(fetch_timeout_ms=item.number("check_quorum_ms") * 2 // 3)
    tested = NodeUnderTest(_voters(item), stored=ElectionState(1, None, key(ME)), config=config)
    tested.become_leader()
    start_ms = tested.now_ms
    for event in item.each("events"):
        at_ms = event.number("at_ms")
        tested.pass_time(start_ms + at_ms - tested.now_ms)
        if "fetch_from" in event:
            tested.receive(fetch(1, event.number("fetch_from"), 0, 0, max_wait_ms=0))
        if "expect" in event:
            same(f"the state at {at_ms} ms", tested.state, event["expect"])


def raft_backoff(item: Fields) -> None:
    """A follower's wait after its leader's EndQuorumEpoch."""
    for case in item.each("cases"):
        position, total = case.number("position"), case.number("total")
        wait_ms = QuorumRules().end_quorum_backoff_ms(position, total, item.number("backoff_max_ms"))
        same(f"the wait of place {position} of {total}", wait_ms, case["ms"])


def raft_end_quorum(item: Fields) -> None:
    """The preferred successors of a leader that leaves."""
    tested = NodeUnderTest(_voters(item), stored=ElectionState(1, None, key(ME)), log=log_of([(1, 8)]))
    tested.become_leader()
    for node_id, offset in item.inner("fetch_offsets").plain().items():
        tested.ask(fetch(1, node_id, offset, 1 if offset else 0, max_wait_ms=0))
    tested.take(tested.node.resign(tested.now_ms))
    request: Any = tested.last_sent(EndQuorumEpochRequest).request
    part = request.topics[0].partitions[0]
    expect = item.inner("expect")
    preferred = expect["preferred"]
    same("the preferred", [replica.candidate_id for replica in part.preferred_candidates], preferred)
    same("the preferred in version 0", list(part.preferred_successors), preferred)


def raft(item: Fields) -> None:
    """Any of the above, recognized by the scenario's fields."""
    for name, player in (
        ("updates", raft_hw),
        ("cases", raft_backoff),
        ("fetch_offsets", raft_end_quorum),
        ("fetch", raft_fetch),
        ("response", raft_follower),
        ("events", raft_resign),
    ):
        if name in item:
            player(item)
            return
    asked = item.inner("request")
    (raft_epoch if "type" in asked else raft_vote)(item)
