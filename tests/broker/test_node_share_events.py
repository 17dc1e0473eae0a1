"""The events of share groups: what a leader reads, gives, stores and lets go, and which sessions end (KIP-932)."""

from __future__ import annotations

from tanist.controller.configs.settings import GROUP_RESOURCE
from tanist.coordinator.share.runs import RecordState
from tanist.events.coordination import (
    DeadLettersLeftOut,
    DeadLettersNotWritten,
    DeadLettersWritten,
    ShareLockExpired,
    ShareRecordsAcquired,
    ShareRecordsStored,
    ShareSessionEnded,
    ShareSessionRefused,
    ShareStateRead,
    ShareStateRefused,
)
from tanist.wire.errors import ErrorCode
from tests.broker.cluster_rig import Cluster, Heard
from tests.broker.test_node_share_groups import ACCEPT, REJECT, RELEASE, Member, members, share_cluster

OF_GIFTS = (ShareRecordsAcquired, ShareRecordsStored, ShareLockExpired)


def heard(cluster: Cluster, *kinds: type) -> Heard:
    """Nodes that run tell of gifts and words, too."""
    for node in cluster.world.nodes():
        node.components.context.events.subscribe(lambda event: None, fine=True)
    return Heard(cluster, *kinds)


def test_gifts_words_and_locks() -> None:
    cluster = share_cluster(values=6)
    seen = heard(cluster, *OF_GIFTS, ShareStateRead)
    a, b = members(cluster, "a", "b")
    assert a.fetch() == [(0, 5, 1)]
    leader, about = cluster.leader("t"), ("g", "t-0", 0)
    assert seen.events == [
        (leader, ShareStateRead(*about, 1, 0, True)),
        (leader, ShareRecordsAcquired(*about, "a", 0, 5, 1)),
    ]
    seen.events.clear()
    assert a.acknowledge((0, 1, ACCEPT), (2, 2, RELEASE), (3, 3, REJECT)) == 0
    states = [(0, 1, RecordState.ACKNOWLEDGED), (2, 2, RecordState.AVAILABLE), (3, 3, RecordState.ARCHIVED)]
    assert seen.events == [
        (leader, ShareRecordsStored(*about, first, last, int(state))) for first, last, state in states
    ]
    seen.events.clear()

    def expired() -> list[bool]:
        return [each.archived for each in seen.of(ShareLockExpired) if each.first_offset <= 2 <= each.last_offset]

    for count in range(2, 6):
        while not (found := b.fetch()) or found[0][0] != 2:
            pass
        assert found[0][2] == count
        cluster.until(lambda c=count: len(expired()) == c - 1)  # type: ignore[misc]
    assert expired() == [False, False, False, True]


def test_dead_letters_that_are_written_and_that_may_not_be() -> None:
    cluster = share_cluster(values=4, config={"errors.deadletterqueue.auto.create.topics.enable": "true"})
    seen = heard(cluster, DeadLettersWritten, DeadLettersLeftOut, DeadLettersNotWritten)
    topic = "errors.deadletterqueue.topic.name"
    (a,) = members(cluster, "a")
    assert a.fetch() == [(0, 3, 1)]
    cluster.configure(GROUP_RESOURCE, "g", {topic: "dlq.g"})
    assert a.acknowledge((0, 1, REJECT)) == 0
    leader = cluster.leader("t")
    cluster.until(lambda: bool(seen.events))
    assert seen.events == [(leader, DeadLettersWritten("g", "t-0", 0, 1, "dlq.g"))]
    seen.events.clear()
    cluster.configure(GROUP_RESOURCE, "g", {topic: "other"})
    assert a.acknowledge((2, 2, REJECT)) == 0
    cluster.until(lambda: len(seen.events) == 2)
    (_, left_out), (_, reported) = seen.events
    why = "the name of other does not begin with 'dlq.', or is that of an internal topic"
    assert left_out == DeadLettersLeftOut("g", "t-0", 2, 2, why)
    assert reported == DeadLettersNotWritten("g", "t-0", why, 0)


def test_sessions_that_end_and_requests_that_are_of_none() -> None:
    cluster = share_cluster(values=2)
    seen = heard(cluster, ShareSessionEnded, ShareSessionRefused)
    a, b = members(cluster, "a", "b")
    a.fetch()
    assert a.acknowledge((0, 1, ACCEPT), final=True) == 0
    assert a.acknowledge(final=True) == ErrorCode.SHARE_SESSION_NOT_FOUND
    b.fetch(tries=1)
    b.session = 9
    assert b.fetch_once().error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert [event for _, event in seen.events] == [
        ShareSessionEnded("g", "a"),
        ShareSessionRefused("g", "a", ErrorCode.SHARE_SESSION_NOT_FOUND),
        ShareSessionRefused("g", "b", ErrorCode.INVALID_SHARE_SESSION_EPOCH),
    ]


def test_a_leader_that_is_fenced() -> None:
    cluster = share_cluster(values=5)
    (a,) = members(cluster, "a")
    assert a.fetch() == [(0, 4, 1)]
    seen = heard(cluster, ShareStateRefused)
    old = cluster.leader("t")
    assert old is not None
    share = next(iter(cluster.node(old).components.shares.deliveries().led))
    cluster.host(old).freeze()
    cluster.until(lambda: cluster.leader("t") not in (None, old))
    b = Member(cluster, "b")
    b.take_part()
    assert b.fetch() == [(0, 4, 1)]
    cluster.host(old).thaw()
    led = cluster.node(old).components.shares.deliveries().led
    assert share.delivery is not None
    led.store(share, share.delivery.release("a", led.limits("g")))
    cluster.until(lambda: bool(seen.events))
    assert seen.events == [(old, ShareStateRefused("g", "t-0", 0, ErrorCode.FENCED_LEADER_EPOCH))]
