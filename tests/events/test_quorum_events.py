"""The events of the metadata quorum: each is emitted, or given as an effect, where it decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tanist.events.event import Event
from tanist.events.quorum import (
    BecameCandidate,
    BecameQuorumLeader,
    ElectionLost,
    LeaderClaimRefused,
    LeaderDeposed,
    LeaderLeaves,
    LeaderResigned,
    MetadataFetchRefused,
    MetadataLogTruncated,
    PreVoteLost,
    QuorumLeaderChanged,
    SnapshotOffered,
    SteppedDown,
    VoterAdded,
    VoterChangeEnded,
    VoterChangeRefused,
    VoterChangeTruncated,
    VoteRefused,
    VoterRemoved,
)
from tanist.lab.scenarios.quorum_node import begin, directory, end, fetch, fetched, granted, log_of, vote
from tanist.quorum import LogEnd, SnapshotId
from tanist.wire.messages.fetch_request import FetchRequest
from tests.quorum.quorum_kit import Kit
from tests.quorum.quorum_network import add_voter, remove_voter
from tests.quorum.test_quorum_voter_changes import FAST, Story, other_voter


class Scene(Kit):
    """A node alone, with the events that it has emitted itself, and those among its effects."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.heard: list[Event] = []
        self.events.subscribe(self.heard.append, fine=True)

    def listen(self) -> None:
        """From now on."""
        self.heard.clear()
        self.effects.clear()

    @property
    def all(self) -> list[Event]:
        return self.heard + [effect for effect in self.effects if isinstance(effect, Event)]


def led(**how: Any) -> Scene:
    scene = Scene(**how)
    scene.become_leader()
    scene.commit_all()
    scene.listen()
    return scene


def follows(leader_id: int, epoch: int, **how: Any) -> Scene:
    scene = Scene(**how)
    scene.receive(begin(leader_id, epoch))
    scene.listen()
    return scene


def elected() -> tuple[list[Event], list[Event]]:
    scene = Scene()
    scene.become_leader()
    scene.commit_all()
    epoch = scene.node.epoch
    return scene.all, [
        BecameCandidate(epoch, voter=True),
        QuorumLeaderChanged(None, epoch - 1),
        QuorumLeaderChanged(None, epoch),
        QuorumLeaderChanged(0, epoch),
        BecameQuorumLeader(epoch, 0),
    ]


def refuses_a_vote() -> tuple[list[Event], list[Event]]:
    scene = follows(1, 5)
    scene.ask(vote(5, 2, 0, 0))
    return scene.all, [VoteRefused(2, 5, pre_vote=False)]


def loses_a_pre_vote() -> tuple[list[Event], list[Event]]:
    scene = follows(1, 5)
    scene.role_timeout()
    scene.role_timeout()
    return scene.heard, [PreVoteLost(5, 1)]


def is_not_elected() -> tuple[list[Event], list[Event]]:
    scene = Scene()
    scene.role_timeout()
    for send in scene.sent():
        scene.respond(send, granted(scene.node.epoch))
    epoch = scene.node.epoch
    scene.listen()
    scene.role_timeout()
    return scene.heard, [ElectionLost(epoch)]


def refuses_a_leader_of_old() -> tuple[list[Event], list[Event]]:
    scene = follows(1, 5)
    scene.ask(begin(2, 4))
    return scene.all, [LeaderClaimRefused(2, 4, 5)]


def hears_that_its_leader_leaves() -> tuple[list[Event], list[Event]]:
    scene = follows(1, 5)
    scene.ask(end(1, 5))
    scene.ask(end(1, 5))
    return scene.all, [LeaderLeaves(1, 5)]


def is_deposed() -> tuple[list[Event], list[Event]]:
    scene = led()
    epoch = scene.node.epoch
    scene.node.append([b"x"], scene.now_ms, 0, atomic=True)
    scene.receive(begin(2, epoch + 1))
    return scene.all, [
        LeaderDeposed(epoch, epoch + 1),
        QuorumLeaderChanged(2, epoch + 1),
        SteppedDown(epoch, uncommitted=1),
    ]


def hears_nothing_of_a_majority() -> tuple[list[Event], list[Event]]:
    scene = led()
    epoch = scene.node.epoch
    scene.role_timeout()
    return scene.heard, [LeaderResigned(epoch, "MAJORITY_SILENT")]


def shuts_down() -> tuple[list[Event], list[Event]]:
    scene = led()
    epoch = scene.node.epoch
    scene.take(scene.node.shutdown(scene.now_ms))
    return scene.heard, [LeaderResigned(epoch, "SHUTDOWN")]


def gives_up_for_its_controller() -> tuple[list[Event], list[Event]]:
    """Whatever else would make it resign a moment later."""
    scene = led()
    epoch = scene.node.epoch
    scene.take(scene.node.resign(scene.now_ms + 60_000))
    return scene.heard, [LeaderResigned(epoch, "CONTROLLER")]


def gives_up_for_its_controller_when_it_stops() -> tuple[list[Event], list[Event]]:
    scene = led(voters=(0,))
    epoch = scene.node.epoch
    scene.take(scene.node.shutdown(scene.now_ms))  # nobody is there to take over: it leads on
    scene.take(scene.node.resign(scene.now_ms))
    return scene.heard, [LeaderResigned(epoch, "CONTROLLER")]


def is_asked_for_records_that_it_does_not_lead() -> tuple[list[Event], list[Event]]:
    scene = follows(1, 5)
    scene.ask(fetch(5, 2, 0, 0, max_wait_ms=0))
    return scene.all, [MetadataFetchRefused(2, "NOT_LEADER_OR_FOLLOWER")]


def is_asked_for_what_only_a_snapshot_has() -> tuple[list[Event], list[Event]]:
    scene = led(log=log_of([(1, 4)], SnapshotId(4, 1)))
    scene.ask(fetch(scene.node.epoch, 2, 0, 0, max_wait_ms=0))
    return scene.all, [SnapshotOffered(2, 4, 1)]


def cuts_its_log() -> tuple[list[Event], list[Event]]:
    scene = Scene(log=log_of([(1, 4), (2, 3)]))
    scene.receive(begin(1, 5))
    send = scene.last_sent(FetchRequest)
    scene.listen()
    scene.respond(send, fetched(1, 5, diverging=LogEnd(1, 4)))
    return scene.all, [MetadataLogTruncated(4)]


@pytest.mark.parametrize(
    "act",
    [
        elected,
        refuses_a_vote,
        loses_a_pre_vote,
        is_not_elected,
        refuses_a_leader_of_old,
        hears_that_its_leader_leaves,
        is_deposed,
        hears_nothing_of_a_majority,
        shuts_down,
        gives_up_for_its_controller,
        gives_up_for_its_controller_when_it_stops,
        is_asked_for_records_that_it_does_not_lead,
        is_asked_for_what_only_a_snapshot_has,
        cuts_its_log,
    ],
)
def test_it_is_emitted_at_its_decision(act: Callable[[], tuple[list[Event], list[Event]]]) -> None:
    found, expected = act()
    assert found == expected


def test_fetches_cost_nothing_where_nobody_listens() -> None:
    kit, heard = Kit(), list[Event]()
    kit.receive(begin(1, 5))
    kit.events.subscribe(heard.append)
    kit.ask(fetch(5, 2, 0, 0, max_wait_ms=0))
    assert heard == []


# -- voters


def listening(story: Story) -> list[tuple[int, Event]]:
    heard: list[tuple[int, Event]] = []

    def listen(node_id: int) -> None:
        story.network.machines[node_id].events.subscribe(lambda event: heard.append((node_id, event)))

    for node_id in story.network.machines:
        listen(node_id)
    return heard


def test_a_change_of_the_voters_is_emitted_once_by_the_leader_when_it_is_committed() -> None:
    story = Story()
    leader, heard = story.leader_id, listening(story)
    story.ask(add_voter(4))
    assert story.response_error() == "NONE"
    story.run_until_stable()
    gone = other_voter(story)
    story.ask(remove_voter(gone))
    assert story.response_error() == "NONE"
    story.run_until_stable()
    changes = [each for each in heard if isinstance(each[1], VoterAdded | VoterRemoved)]
    assert changes == [
        (leader, VoterAdded(4, str(directory(4)))),
        (leader, VoterRemoved(gone, str(directory(gone)))),
    ]
    assert [event for _, event in heard if isinstance(event, VoterChangeEnded)] == [VoterChangeEnded("")] * 2


def test_a_removed_leader_says_why_it_goes() -> None:
    story = Story()
    removed, heard = story.leader_id, listening(story)
    story.ask(remove_voter(removed))
    assert story.response_error() == "NONE"
    story.run_until_stable()
    resigned = [each for each in heard if isinstance(each[1], LeaderResigned)]
    assert [(node_id, event.cause) for node_id, event in resigned if isinstance(event, LeaderResigned)] == [
        (removed, "REMOVED")
    ]
    assert (removed, VoterRemoved(removed, str(directory(removed)))) in heard


def test_a_leader_that_is_being_removed_does_not_say_that_it_goes_for_that() -> None:
    """Its removal is not committed, and its controller cannot go on."""
    story = Story()
    leader, heard = story.leader_id, listening(story)
    story.network.partition([leader], [node_id for node_id in (1, 2, 3, 4) if node_id != leader])
    story.ask(remove_voter(leader), leader)
    node = story.network.node(leader)
    story.network.run_until(lambda: not node.is_voter, 1_000)
    node.resign(story.network.now_ms)
    assert [event for _, event in heard if isinstance(event, LeaderResigned)] == [
        LeaderResigned(node.epoch, "CONTROLLER")
    ]


def test_a_change_that_is_refused_or_not_caught_up_says_why() -> None:
    story = Story((1, 2, 3), (4, 5))
    leader, heard = story.leader_id, listening(story)
    others = [node for node in (1, 2, 3) if node != leader]
    story.ask(remove_voter(4))
    assert story.response_error() == "VOTER_NOT_FOUND"
    story.ask(add_voter(others[0]))
    assert story.response_error() == "DUPLICATE_VOTER"
    story.network.partition([leader, 4, 5], others)
    story.ask(add_voter(4), leader)
    story.network.run_for(30)
    story.ask(add_voter(5), leader)
    assert story.response_error() == "REQUEST_TIMED_OUT"
    story.network.heal()
    story.run_until_stable()
    refused = [event for _, event in heard if isinstance(event, VoterChangeRefused)]
    assert refused == [
        VoterChangeRefused(4, "NO_VOTER"),
        VoterChangeRefused(others[0], "ALREADY_VOTER"),
        VoterChangeRefused(5, "UNDER_WAY"),
    ]


def test_a_voter_that_does_not_catch_up_is_emitted() -> None:
    story = Story()
    story.network.crash(4)
    story.network.run_for(FAST.fetch_timeout_ms * 2)
    heard = listening(story)
    story.ask(add_voter(4))
    assert story.response_error() == "REQUEST_TIMED_OUT"
    assert VoterChangeEnded("NOT_CAUGHT_UP") in [event for _, event in heard]


def test_a_change_that_was_never_committed_is_cut_off() -> None:
    story = Story()
    removed, heard = story.leader_id, listening(story)
    others = [node for node in (1, 2, 3) if node != removed]
    story.network.partition([removed], [*others, 4])
    story.ask(remove_voter(others[0]), removed)
    story.network.run_until(lambda: any(story.network.node(node).is_leader for node in others), 5_000)
    story.network.run_for(50)
    story.network.heal()
    story.run_until_stable()
    assert [node_id for node_id, event in heard if isinstance(event, VoterChangeTruncated)] == [removed]
    assert not [event for _, event in heard if isinstance(event, VoterRemoved)]
