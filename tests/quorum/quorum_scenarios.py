"""Runs the `raft_*` scenarios of a scenario file (their schema: the README beside the file) against one `RaftNode`.

Each kind has a function from the item to nothing, which raises `AssertionError` for what is not as expected. The
local node is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quorum_kit import (
    ME,
    Kit,
    begin,
    end,
    error_of,
    fetch,
    fetched,
    log_of,
    part_of,
    vote,
)
from quorum_network import directory, voters_of

from tanist.quorum import ElectionState, LogEnd, QuorumError, QuorumRules, RaftConfig, ReplicaKey, SnapshotId, VoterSet
from tanist.quorum import batches as quorum_batches
from tanist.quorum.progress import Progress
from tanist.quorum.roles import Unattached
from tanist.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from tanist.wire.messages.fetch_request import FetchRequest

Item = dict[str, Any]


def run(item: Item) -> None:
    expect = item.get("expect")
    error = (expect.get("exception") or expect.get("error")) if isinstance(expect, dict) else None
    if not str(error).endswith("Exception"):
        KINDS[item["kind"]](item)
        return
    # What is fatal in Kafka is fatal here.
    try:
        KINDS[item["kind"]](item)
    except QuorumError:
        return
    raise AssertionError(f"no exception, expected {error}")


def _key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id))


def _expect(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise AssertionError(f"{what} is {actual!r}, expected {expected!r}")


# -- a node in a given state


def _log_batches(log: Item | None) -> list[Sequence[int]]:
    log = log or {}
    if "batches" in log:
        return list(log["batches"])
    end_offset = log.get("end_offset", 0)
    return [(log.get("last_epoch", 0), end_offset)] if end_offset else []


def in_state(item: Item) -> Kit:
    initial = item.get("initial", {})
    state, epoch = initial.get("state", "UNATTACHED"), initial.get("epoch", 0)
    leader, voted = initial.get("leader"), initial.get("voted")
    batches = _log_batches(item.get("log"))
    stored = ElectionState(epoch, None, None if voted is None else _key(voted))
    if state == "LEADER":
        # The log that is given has the leader change already, which the node is about to write itself.
        batches = _without_last_record(batches)
        stored = ElectionState(epoch, None, _key(ME))
    elif state == "CANDIDATE":
        stored = ElectionState(epoch, None, _key(ME))
    elif state == "RESIGNED":
        stored = ElectionState(epoch, ME, stored.voted)
    elif state in ("FOLLOWER", "PROSPECTIVE"):
        stored = ElectionState(epoch, leader, stored.voted)
    kit = Kit(item.get("voters", (0, 1, 2)), stored=stored, log=log_of(batches), config=_config(item))
    if state == "LEADER":
        kit.become_leader()
    elif state == "PROSPECTIVE":
        kit.role_timeout()
    elif state == "UNATTACHED_LEADER_KNOWN":
        role = kit.node._quorum.role
        kit.node._quorum.role = Unattached(
            epoch=epoch, leader_id=leader, voted=role.voted, deadline_ms=role.deadline_ms
        )
    elif state == "FOLLOWER" and initial.get("has_fetched_from_leader"):
        kit.respond(kit.last_sent(FetchRequest), fetched(leader, epoch))
    _expect("the initial state", kit.node.role.upper(), state.replace("_VOTED", "").replace("_LEADER_KNOWN", ""))
    return kit


def _without_last_record(batches: list[Sequence[int]]) -> list[Sequence[int]]:
    if not batches:
        return []
    *rest, (epoch, count) = batches
    return [*rest, (max(0, epoch - 1), count - 1)] if count > 1 else rest


def _config(item: Item) -> RaftConfig:
    names = ("election_timeout_ms", "fetch_timeout_ms", "election_backoff_max_ms")
    return RaftConfig(**{name: item[name] for name in names if name in item})


def _check_after(kit: Kit, after: Item | None) -> None:
    if after is None:
        return
    role = kit.node._quorum.role
    state = after.get("state")
    if state is not None:
        _expect("the state", kit.node.role.upper(), state.replace("_VOTED", "").replace("_LEADER_KNOWN", ""))
    if "epoch" in after:
        _expect("the epoch", kit.node.epoch, after["epoch"])
    if "leader" in after:
        _expect("the leader", -1 if role.leader_id is None else role.leader_id, _id(after["leader"]))
    if "voted" in after:
        _expect("the vote", -1 if role.voted is None else role.voted.node_id, _id(after["voted"]))


def _id(value: int | None) -> int:
    return -1 if value is None else value


def _check_response(response: Any, expect: Item) -> None:
    if "error" in expect:
        _expect("the error", error_of(response), expect["error"])
    if response.error_code != 0:
        return
    part: Any = part_of(response)
    if "epoch" in expect:
        _expect("the epoch told", part.leader_epoch, expect["epoch"])
    if "leader" in expect:
        _expect("the leader told", part.leader_id, _id(expect["leader"]))
    if "granted" in expect:
        _expect("granted", part.vote_granted, expect["granted"])


# -- kinds


def raft_vote(item: Item) -> None:
    kit = in_state(item)
    asked = item["request"]
    optional: Item = {}
    if "cluster_id" in asked:
        optional["cluster_id"] = asked["cluster_id"]
    if "voter" in asked:
        optional["to_id"] = asked["voter"]
    if "topic" in asked:
        optional["topic"] = asked["topic"]
    if "partition" in asked:
        optional["partition"] = asked["partition"]
    request = vote(
        asked["epoch"],
        asked["from"],
        asked["last_epoch"],
        asked["last_offset"],
        pre_vote=asked.get("pre_vote", False),
        **optional,
    )
    _check_response(kit.ask(request), item["expect"])
    _check_after(kit, item.get("after"))


def raft_epoch(item: Item) -> None:
    kit = in_state(item)
    asked = item["request"]
    kind = asked["type"]
    if kind == "BEGIN_QUORUM_EPOCH":
        response: Any = kit.ask(begin(asked["leader"], asked["epoch"]))
    elif kind == "END_QUORUM_EPOCH":
        preferred = asked.get("preferred", asked.get("successors", ()))
        response = kit.ask(end(asked["leader"], asked["epoch"], preferred))
    elif kind.endswith("TIMEOUT"):
        kit.role_timeout()
        response = None
    else:
        raise AssertionError(f"unknown request {kind}")
    if response is not None and "expect" in item:
        _check_response(response, item["expect"])
    _check_after(kit, item.get("after"))


def raft_hw(item: Item) -> None:
    voters = VoterSet(voters_of(item["voters"]))
    progress = Progress(ME, voters, 0)
    rules = QuorumRules()
    watermark: int | None = None
    for (node_id, end_offset), expected in zip(item["updates"], item["hw"], strict=True):
        if node_id == ME:
            progress.own_end(end_offset)
        else:
            progress.fetched(_key(node_id), end_offset, end_offset, 0)
        offset = rules.commit_offset(progress.end_offsets(), item["start"])
        if offset is not None and (watermark is None or offset > watermark):
            watermark = offset
        _expect(f"the high watermark after {node_id}: {end_offset}", watermark, expected)


def raft_fetch(item: Item) -> None:
    snapshot = SnapshotId(*item["snapshot"]) if item.get("snapshot") else None
    epoch = item["leader_epoch"]
    # Record by record, so that a snapshot may end anywhere.
    log = log_of([(batch_epoch, 1) for batch_epoch, count in item["batches"] for _ in range(count)], snapshot)
    kit = Kit(item.get("voters", (0, 1, 2)), stored=ElectionState(epoch, None, _key(ME)), log=log)
    kit.become_leader()
    asked = item["fetch"]
    request = fetch(
        asked["epoch"],
        asked.get("from", 1),
        asked["offset"],
        asked["last_epoch"],
        max_wait_ms=asked.get("max_wait_ms", 0),
    )
    response = kit.ask(request)
    expect = item["expect"]
    part: Any = part_of(response)
    _expect("the error", error_of(response), expect.get("error", "NONE"))
    if "diverging" in expect:
        _expect("the diverging epoch", _pair(part.diverging_epoch), _pair_of(expect["diverging"]))
    if "snapshot" in expect:
        _expect("the snapshot", _pair(part.snapshot_id), _pair_of(expect["snapshot"]))
    if "hw" in expect:
        _expect("the high watermark", part.high_watermark, _id(expect["hw"]))
    if "log_start" in expect:
        _expect("the log start", part.log_start_offset, expect["log_start"])
    if "records" in expect:
        _expect("whether there are records", bool(part.records), bool(expect["records"]))
    if expect.get("valid"):
        _expect("the verdict", (_pair(part.diverging_epoch), _pair(part.snapshot_id)), ((-1, -1), (-1, -1)))


def _pair(struct: Any) -> tuple[int, int]:
    return (struct.epoch, struct.end_offset)


def _pair_of(value: Any) -> tuple[int, int]:
    if value is None:
        return (-1, -1)
    if isinstance(value, dict):
        return (value["epoch"], value.get("end", value.get("end_offset", value.get("offset"))))
    end_offset, epoch = value
    return (epoch, end_offset)


def raft_follower(item: Item) -> None:
    answered = item["response"]
    epoch = answered["epoch"]
    leader = answered.get("leader", 1)
    kit = Kit(
        item.get("voters", (0, 1, 2)),
        stored=ElectionState(epoch, leader, None),
        log=log_of(_log_batches(item["log"])),
    )
    if item.get("hw") is not None:
        kit.respond(kit.last_sent(FetchRequest), fetched(leader, epoch, high_watermark=item["hw"]))
    diverging = answered.get("diverging")
    records = b""
    if answered.get("records"):
        count = answered["records"] if isinstance(answered["records"], int) else len(answered["records"])
        values = [b"v"] * count
        records = bytes(quorum_batches.encode_values(values, base_offset=kit.log.end_offset, epoch=epoch, timestamp=0))
    response = fetched(
        leader,
        epoch,
        high_watermark=answered.get("hw", -1),
        diverging=None if diverging is None else LogEnd(*_pair_of(diverging)),
        records=records,
    )
    expect = item["expect"]
    kit.respond(kit.last_sent(FetchRequest), response)
    if "end_offset" in expect:
        _expect("the log's end", kit.log.end_offset, expect["end_offset"])
    if "hw" in expect:
        _expect("the high watermark", kit.node.high_watermark, expect["hw"])
    if "next_fetch" in expect:
        request: Any = kit.last_sent(FetchRequest).request
        part = request.topics[0].partitions[0]
        _expect("the next fetch", part.fetch_offset, expect["next_fetch"]["offset"])
        _expect("the next fetch's epoch", part.last_fetched_epoch, expect["next_fetch"]["last_epoch"])


def raft_resign(item: Item) -> None:
    config = RaftConfig(fetch_timeout_ms=item["check_quorum_ms"] * 2 // 3)
    kit = Kit(item["voters"], stored=ElectionState(1, None, _key(ME)), config=config)
    kit.become_leader()
    start_ms = kit.now_ms
    for event in item["events"]:
        kit.pass_time(start_ms + event["at_ms"] - kit.now_ms)
        if "fetch_from" in event:
            kit.receive(fetch(1, event["fetch_from"], 0, 0, max_wait_ms=0))
        if "expect" in event:
            _expect(f"the state at {event['at_ms']}", kit.node.role.upper(), event["expect"])


def raft_backoff(item: Item) -> None:
    for case in item["cases"]:
        wait = QuorumRules().end_quorum_backoff_ms(case["position"], case["total"], item["backoff_max_ms"])
        _expect(f"the backoff of {case}", wait, case["ms"])


def raft_end_quorum(item: Item) -> None:
    kit = Kit(item["voters"], stored=ElectionState(1, None, _key(ME)), log=log_of([(1, 8)]))
    kit.become_leader()
    for node_id, offset in item["fetch_offsets"].items():
        kit.ask(fetch(1, node_id, offset, 1 if offset else 0, max_wait_ms=0))
    kit.take(kit.node.resign(kit.now_ms))
    request: Any = kit.last_sent(EndQuorumEpochRequest).request
    part = request.topics[0].partitions[0]
    _expect("the preferred", [r.candidate_id for r in part.preferred_candidates], item["expect"]["preferred"])
    _expect("the preferred (v0)", list(part.preferred_successors), item["expect"]["preferred"])


KINDS: dict[str, Callable[[Item], None]] = {
    "raft_vote": raft_vote,
    "raft_epoch": raft_epoch,
    "raft_hw": raft_hw,
    "raft_fetch": raft_fetch,
    "raft_follower": raft_follower,
    "raft_resign": raft_resign,
    "raft_backoff": raft_backoff,
    "raft_end_quorum": raft_end_quorum,
}
