"""The events of one replica: each is emitted, or given as an effect, where the replica decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tanist.events.event import Event
from tanist.events.replication import (
    BecameFollower,
    BecameLeader,
    CutAnnounced,
    DivergenceFound,
    FetchAnswerDropped,
    FetchFailed,
    FetchRefused,
    FollowerFenced,
    FollowerFetched,
    HighWatermarkLearned,
    HighWatermarkMoved,
    HighWatermarkWaits,
    IsrAnswerIgnored,
    IsrChanged,
    IsrJoinDelayed,
    IsrProposalEnded,
    IsrProposalRepeated,
    IsrProposed,
    IsrUpdateFailed,
    LogTruncated,
    ProduceRefused,
    RecordsRefused,
    StoppedReplicating,
    SucceededItself,
    TruncationUnfinished,
)
from tanist.events.stream import Events
from tanist.replica.effects import Effect
from tanist.replica.follower import FetchedPartition, FetchPosition
from tanist.replica.memory import Entry
from tanist.replica.metadata import ReplicaConfig
from tanist.wire.errors import ErrorCode
from tests.replica.replica_alone import Alone

FENCED, UNKNOWN, NOT_LEADER = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


class Scene(Alone):
    """A replica alone, with the events that it has emitted itself, and those among its effects."""

    def __init__(self, *, salvage: bool = False, **how: Any) -> None:
        super().__init__(**how)
        self.take(self.effects)
        if salvage:
            self.partition.set_config(ReplicaConfig(salvage=True))

    def take(self, effects: Iterable[Effect]) -> None:
        self.heard += [effect for effect in effects if isinstance(effect, Event)]

    def handle_response(self, **answer: Any) -> None:
        """The leader answers the follower's present position."""
        self.take(self.follower.fetched(FetchedPartition(**answer), self.follower.fetch_position(), self.now_ms))


def leads(act: Callable[[Scene], object], **how: Any) -> list[Event]:
    scene = Scene(**{"leo": 10, **how})
    act(scene)
    return scene.heard


def follows(act: Callable[[Scene], object], **how: Any) -> list[Event]:
    return leads(act, **{"leader": 2, **how})


def nothing(_: Scene) -> None:
    pass


def learns_an_isr(scene: Scene) -> None:
    scene.propose(2)
    scene.take(scene.learn(isr=(1, 2)))


def hears_too_late(scene: Scene) -> None:
    proposal = scene.propose(2)
    scene.learn(isr=(1, 2))
    scene.answer(proposal)


def joins_while_another_does(scene: Scene) -> None:
    scene.propose(2)
    scene.fetch(3, 10)


def joins_while_it_is_fenced(scene: Scene) -> None:
    scene.brokers.mark(2, fenced=True)
    scene.fetch(2, 10)


def commits_while_another_joins(scene: Scene) -> None:
    """4 is proposed, so that 2 cannot be, which has caught up as well; then more is appended, and others have it."""
    scene.propose(4)
    scene.fetch(2, 10)
    scene.append(5)
    scene.fetch(4, 15)
    scene.fetch(3, 15)


def commits(scene: Scene) -> None:
    scene.fetch(2, 4)
    scene.fetch(3, 6)


def commits_while_one_is_proposed(scene: Scene) -> None:
    scene.propose(3)
    scene.fetch(2, 4)


IN_SYNC_ALONE = {"isr": (1,)}
SCENES: dict[str, tuple[Callable[[], list[Event]], Event]] = {
    "leads": (lambda: leads(nothing), BecameLeader("foo-0", 5, 10)),
    "leads once more": (lambda: leads(lambda s: s.learn(leader_epoch=6)), SucceededItself("foo-0", 6, True)),
    "leads again after others": (lambda: leads(lambda s: s.learn(leader_epoch=8)), SucceededItself("foo-0", 8, False)),
    "follows": (lambda: follows(nothing), BecameFollower("foo-0", 2, 5)),
    "is no replica any more": (
        lambda: follows(lambda s: s.take(s.learn(replicas=(2, 3)))),
        StoppedReplicating("foo-0", 5),
    ),
    "proposes to expand": (
        lambda: leads(lambda s: s.propose(2), **IN_SYNC_ALONE),
        IsrProposed("foo-0", 5, 10, (1,), (1, 2)),
    ),
    "proposes to shrink": (
        lambda: leads(lambda s: s.leader.check_lag(s.now_ms + 60_000)),
        IsrProposed("foo-0", 5, 10, (1, 2, 3), (1,)),
    ),
    "hears of another ISR": (
        lambda: leads(lambda s: s.take(s.answer(s.propose(2))), **IN_SYNC_ALONE),
        IsrChanged("foo-0", (1, 2), (2,), ()),
    ),
    "is refused, and goes back": (
        lambda: leads(lambda s: s.take(s.answer(s.propose(2), error=ErrorCode.INELIGIBLE_REPLICA)), **IN_SYNC_ALONE),
        IsrUpdateFailed("foo-0", ErrorCode.INELIGIBLE_REPLICA, rolled_back=True),
    ),
    "is refused, and waits": (
        lambda: leads(lambda s: s.take(s.answer(s.propose(2), error=FENCED)), **IN_SYNC_ALONE),
        IsrUpdateFailed("foo-0", FENCED, rolled_back=False),
    ),
    "gets no answer": (
        lambda: leads(lambda s: s.partition.alter_partition_failed(s.propose(2), s.now_ms), **IN_SYNC_ALONE),
        IsrProposalRepeated("foo-0", 5, 10),
    ),
    "is overtaken": (lambda: leads(learns_an_isr, **IN_SYNC_ALONE), IsrProposalEnded("foo-0", 5, 11)),
    "hears too late": (lambda: leads(hears_too_late, **IN_SYNC_ALONE), IsrAnswerIgnored("foo-0", "overtaken")),
    "one is behind the high watermark": (
        lambda: leads(lambda s: s.fetch(2, 3), high_watermark=5, min_isr=2, **IN_SYNC_ALONE),
        IsrJoinDelayed("foo-0", 2, "high watermark"),
    ),
    "one is behind the epoch's start": (
        lambda: leads(lambda s: s.fetch(2, 7), high_watermark=5, min_isr=2, **IN_SYNC_ALONE),
        IsrJoinDelayed("foo-0", 2, "leader epoch"),
    ),
    "one is fenced": (
        lambda: leads(joins_while_it_is_fenced, **IN_SYNC_ALONE),
        IsrJoinDelayed("foo-0", 2, "eligible"),
    ),
    "two want to join": (
        lambda: leads(joins_while_another_does, **IN_SYNC_ALONE),
        IsrJoinDelayed("foo-0", 3, "pending"),
    ),
    "has its log asked for": (
        lambda: leads(lambda s: s.fetch(2, 4)),
        FollowerFetched("foo-0", 2, 1002, 5, 4, -1),
    ),
    "commits": (lambda: leads(commits), HighWatermarkMoved("foo-0", 0, 4, (1, 2, 3), ())),
    "commits with a proposal": (
        lambda: leads(commits_while_one_is_proposed, isr=(1, 2)),
        HighWatermarkMoved("foo-0", 0, 4, (1, 2), (1, 2, 3)),
    ),
    "waits for one about to join": (
        lambda: leads(commits_while_another_joins, replicas=(1, 2, 3, 4), isr=(1, 3)),
        HighWatermarkWaits("foo-0", 2, 10),
    ),
    "an older epoch fetches": (
        lambda: leads(lambda s: s.fetch(2, 10, leader_epoch=4)),
        FetchRefused("foo-0", 2, 4, 5, FENCED, "leader epoch"),
    ),
    "a newer epoch fetches": (
        lambda: leads(lambda s: s.fetch(2, 10, leader_epoch=6)),
        FetchRefused("foo-0", 2, 6, 5, UNKNOWN, "leader epoch"),
    ),
    "a stranger fetches": (
        lambda: leads(lambda s: s.fetch(9, 10)),
        FetchRefused("foo-0", 9, 5, 5, UNKNOWN, "no replica"),
    ),
    "a former life fetches": (
        lambda: leads(lambda s: s.fetch(2, 10, broker_epoch=1)),
        FetchRefused("foo-0", 2, 5, 5, NOT_LEADER, "former life"),
    ),
    "one fetches beyond the end": (
        lambda: leads(lambda s: s.fetch(2, 11)),
        FetchRefused("foo-0", 2, 5, 5, ErrorCode.OFFSET_OUT_OF_RANGE, "offset"),
    ),
    "one diverges": (
        lambda: leads(lambda s: s.fetch(2, 12, last_epoch=4)),
        DivergenceFound("foo-0", 2, 12, 4, 4, 10),
    ),
    "refuses a produce": (
        lambda: leads(lambda s: s.leader.check_before_append(-1), min_isr=2, **IN_SYNC_ALONE),
        ProduceRefused("foo-0", (1,), 2),
    ),
    "learns a high watermark": (
        lambda: follows(lambda s: s.handle_response(high_watermark=6, log_start_offset=0), high_watermark=8),
        HighWatermarkLearned("foo-0", 8, 6),
    ),
    "hears an old answer": (
        lambda: follows(lambda s: s.follower.fetched(FetchedPartition(), FetchPosition(9, 4, 5, 0), s.now_ms)),
        FetchAnswerDropped("foo-0", 5, 9),
    ),
    "would not be heard": (
        lambda: follows(lambda s: s.follower.awaits(FetchPosition(9, 4, 5, 0))),
        FetchAnswerDropped("foo-0", 5, 9),
    ),
    "is not answered by a leader yet": (
        lambda: follows(lambda s: s.handle_response(error=NOT_LEADER)),
        FetchFailed("foo-0", 2, 5, NOT_LEADER, 10),
    ),
    "is fenced": (lambda: follows(lambda s: s.handle_response(error=FENCED)), FollowerFenced("foo-0", 2, 5)),
    "refuses records": (
        lambda: follows(lambda s: s.handle_response(records=(Entry(99, 5, "a"),), log_start_offset=0)),
        RecordsRefused("foo-0", 2, 5, ErrorCode.CORRUPT_MESSAGE, "the entries do not follow one another"),
    ),
    "announces a cut": (
        lambda: follows(lambda s: s.handle_response(diverging_epoch=(4, 5)), salvage=True, high_watermark=3),
        CutAnnounced("foo-0", 5, 5, 10, 3, False, "follower-truncation"),
    ),
    "cuts": (
        lambda: follows(lambda s: s.handle_response(diverging_epoch=(4, 5)), high_watermark=8),
        LogTruncated("foo-0", 5, 10, 8),
    ),
    "drops all": (
        lambda: follows(lambda s: s.handle_response(log_start_offset=20), high_watermark=3),
        LogTruncated("foo-0", 20, 10, 3, fully=True),
    ),
    "has to cut once more": (
        lambda: follows(lambda s: s.handle_response(diverging_epoch=(3, 9)), epochs=((1, 0), (4, 6))),
        TruncationUnfinished("foo-0", 3, 6),
    ),
}


@pytest.mark.parametrize("scene", SCENES)
def test_it_is_emitted(scene: str) -> None:
    play, expected = SCENES[scene]
    assert play().count(expected) == 1, play()


def test_without_a_listener_for_them_there_are_no_fine_events() -> None:
    """They come with each fetch and record."""
    scene, rare = Alone(leo=10), list[Event]()
    events = Events()
    events.subscribe(rare.append)
    for part in (scene.partition, scene.leader):
        part.events = events
    commits(scene)  # type: ignore[arg-type]
    scene.fetch(9, 10)
    assert rare == []
    assert scene.high_watermark == 4
