"""The events of brokers: what is emitted in stories on clusters in virtual time, most of them those of `tests/broker`.

`STORIES` has each kind that a broker emits beside its replicas' own (`test_replica_events`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tanist.events import replication, storage
from tanist.events.event import Event
from tanist.events.replication import (
    FetchResponseMalformed,
    IsrAnswerIgnored,
    IsrChanged,
    LogTruncated,
    ReplicaDeleted,
    ReplicaFoundTwice,
    ReplicaMoved,
    ReplicaMoveEnded,
    ReplicaMoves,
    ReplicaOfDeletedTopic,
    ReplicasWait,
    ReplicasWaitNoMore,
    ReplicationThrottled,
    ReplicaUnknown,
)
from tanist.events.storage import (
    BatchDamaged,
    BatchRepeated,
    CheckpointDamaged,
    CleanerCheckpointDamaged,
    FilesNotDeleted,
    LogCompacted,
    LogDirectoryFailed,
    LogDirectoryGone,
    LogLost,
    LogRecovered,
    LogsLoaded,
    LogsLoading,
    LogsLost,
    LogStartMoved,
    LogUncleanable,
    NamelessLogDropped,
    QuarantineUnreadable,
    RecordsAppended,
    RecordsCut,
    RecordsSalvaged,
    RetentionHeldUp,
    SalvageFailed,
    SalvageIncomplete,
    SalvageNotRemoved,
    SalvageOvertaken,
    SalvageRemoved,
    SalvageTidied,
    SalvageUnbounded,
    SegmentRolled,
    ShutdownUnclean,
)
from tanist.sim.world.world import Host, World
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker import (
    test_cleaning,
    test_directory_moves,
    test_log_loading,
    test_lost_logs,
    test_node_faults,
    test_node_salvage,
    test_replication_quotas,
    test_retention_warnings,
)
from tests.broker.cluster_rig import Cluster
from tests.broker.test_node_salvage import ROOT, Story
from tests.broker.test_rules_isr_changes import Listener
from tests.events.test_replica_events import SCENES

Heard = list[Event]


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """All events of the nodes of all clusters that the test makes, fine ones as well."""
    events: Heard = []

    class Listening(World):
        def __init__(self, *args: Any, **how: Any) -> None:
            super().__init__(*args, **how)
            self.fine = True

        def observed(self, host: Host, event: Event) -> None:
            events.append(event)
            super().observed(host, event)

    monkeypatch.setattr("tests.broker.cluster_rig.World", Listening)
    return events


def comes_back_to_other_topics() -> None:
    """Broker 3 was down while its topics were deleted, made anew, and moved away."""
    cluster = Cluster()
    for topic in ("moved", "anew", "nameless", "later"):
        cluster.create_topic(topic, assignment=[[1, 2, 3]])
        assert cluster.produce(topic, [b"x"]).error_code == 0
    host = cluster.stop(3)
    host.disk.view(cluster.client.process).remove("/data/nameless-0/partition.metadata")
    test_replication_quotas.move(cluster, "moved", (1, 2))
    for topic in ("anew", "nameless"):
        cluster.delete_topic(topic)
    cluster.run(2_000)
    cluster.create_topic("anew", assignment=[[1, 2, 3]])
    host.start()
    cluster.until(lambda: 3 in cluster.hosted("anew"))
    cluster.delete_topic("later")
    cluster.until(lambda: not cluster.hosted("later"))


def loses_its_names() -> None:
    """A log whose topic's id was not durable when the power went."""
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    assert cluster.produce("t", [b"x"]).error_code == 0
    cluster.until(lambda: cluster.hosted("t")[3].log.log_end_offset == 1)
    host = cluster.host(3)
    host.kill()
    host.disk.view(cluster.client.process).remove("/data/t-0/partition.metadata")
    host.start()
    cluster.until(lambda: 3 in cluster.hosted("t"))


def cannot_stop() -> None:
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.host(3).disk.failing.append("/data/.kafka_cleanshutdown")
    cluster.stop(3)


def retries_and_rolls_and_forgets() -> None:
    cluster = Cluster(nodes=1, config={"log.retention.check.interval.ms": "1000"})
    cluster.create_topic("t", factor=1, config={"segment.ms": "1000", "retention.ms": "2000"})
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    for _ in range(2):
        assert cluster.produce("t", [b"x"], **producer).error_code == 0
    cluster.until(lambda: cluster.hosted("t")[1].log.log_start_offset == 1)


def searches_what_is_rotten() -> None:
    cluster = Cluster(nodes=1)
    cluster.create_topic("t", factor=1)
    assert cluster.produce("t", [b"x" * 100]).error_code == 0
    cluster.run(100)
    cluster.host(1).disk.inode(f"/data/t-0/{0:020d}.log").data[61:70] = bytes(9)
    wanted = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=1)
    topics = (ListOffsetsTopic(name="t", partitions=(wanted,)),)
    cluster.ask(ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics), 7)


def hears_nonsense() -> None:
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2]])
    fetcher = cluster.node(2).components.fetchers._by_leader[1]
    fetcher._handle_response(fetcher._newest_request, fetcher._session, memoryview(b"\0"))


def is_answered_when_its_topic_is_gone() -> None:
    with pytest.MonkeyPatch.context() as patch:
        listener = Listener(patch)
        cluster = Cluster(config={"replica.lag.time.max.ms": "1000"})
        cluster.create_topic("t", assignment=[[1, 2, 3]])
        listener.listening, listener.hold_ms = True, 3_000
        cluster.host(3).freeze()
        assert cluster.produce("t", [b"x"], acks=1).error_code == 0
        cluster.until(lambda: bool(listener.under_way))
        cluster.delete_topic("t")
        cluster.until(lambda: not listener.under_way)


def throttles(side: str, throttled: int, replica: str) -> Callable[[], None]:
    return lambda: test_replication_quotas.test_a_throttled_move_is_slow_and_ends(side, throttled, replica)


def loads_slowly() -> None:
    cluster = Cluster(config={"replica.lag.time.max.ms": "1000"})
    cluster.create_topic("t", partitions=40)
    for partition in range(40):
        assert cluster.produce("t", [b"%d" % partition], partition=partition).error_code == 0
    with pytest.MonkeyPatch.context() as patch:
        test_log_loading.test_a_broker_serves_nothing_until_all_its_logs_are_open(cluster, patch)


def keeps_salvage_badly() -> None:
    """An entry was interrupted by a crash; later the folder cannot be written, nor can other files."""
    story = Story()
    story.elect_uncleanly()
    story.come_back()
    (manifest,) = story.entries()
    host = story.cluster.host(4)
    host.kill()
    view = host.disk.view(story.cluster.client.process)
    view.rename(f"{ROOT}/{manifest.entry_id}", f"{ROOT}/{manifest.entry_id}.tmp")
    host.start()
    story.cluster.until(lambda: len(story.leader_state().isr) == 2)
    salvage = story.cluster.node(4).components.salvage
    story.disk.failing += [ROOT, "/data/given-up"]
    salvage.check_bounds()
    salvage._discard(next(iter(salvage._quarantines)), manifest)
    salvage._deletions.schedule(["/data/given-up"])
    story.cluster.run(70_000)


STORIES: dict[str, tuple[Callable[[], None], set[type[Event]]]] = {
    "comes back to other topics": (
        comes_back_to_other_topics,
        {IsrChanged, LogsLoaded, ReplicaDeleted, ReplicaOfDeletedTopic, ReplicaUnknown},
    ),
    "loses its names": (loses_its_names, {NamelessLogDropped}),
    "cannot stop": (cannot_stop, {ShutdownUnclean}),
    "retries, rolls and forgets": (
        retries_and_rolls_and_forgets,
        {RecordsAppended, BatchRepeated, SegmentRolled, LogStartMoved},
    ),
    "searches what is rotten": (searches_what_is_rotten, {BatchDamaged}),
    "hears nonsense": (hears_nonsense, {FetchResponseMalformed}),
    "is answered when its topic is gone": (is_answered_when_its_topic_is_gone, {IsrAnswerIgnored}),
    "throttles": (throttles("leader", 1, "0:1"), {ReplicationThrottled}),
    "loads slowly": (loads_slowly, {LogsLoading, LogsLoaded}),
    "keeps salvage badly": (
        keeps_salvage_badly,
        {SalvageTidied, SalvageUnbounded, SalvageNotRemoved, FilesNotDeleted},
    ),
    "has lost a log": (
        lambda: test_lost_logs.test_a_log_that_a_clean_stop_has_left_and_that_is_gone_makes_nobody_eligible(
            "the folder is gone"
        ),
        {LogsLost, LogLost},
    ),
    "has a damaged checkpoint": (
        test_lost_logs.test_a_damaged_list_of_logs_vouches_for_none,
        {CheckpointDamaged, LogsLost},
    ),
    "has another disk": (test_lost_logs.test_a_log_directory_that_is_a_new_one_is_reported, {LogDirectoryGone}),
    "has a failed disk": (
        test_node_faults.test_a_replica_in_a_failed_directory_is_answered_for_by_a_storage_error,
        {LogDirectoryFailed},
    ),
    "has a log twice": (
        test_node_faults.test_of_two_logs_of_one_partition_the_newer_is_kept,
        {ReplicaFoundTwice},
    ),
    "moves a log": (
        test_directory_moves.test_a_leader_moves_and_goes_on_leading_in_its_epoch,
        {ReplicaMoves, ReplicaMoved},
    ),
    "gives a move up": (
        test_directory_moves.test_asked_for_its_own_directory_a_replica_stays,
        {ReplicaMoveEnded},
    ),
    "has too many files open": (
        test_node_faults.test_a_new_replica_for_which_there_was_no_descriptor_waits,
        {ReplicasWait, ReplicasWaitNoMore},
    ),
    "recovers": (
        test_node_salvage.test_sound_batches_behind_damage_are_saved_by_the_start,
        {LogRecovered, RecordsSalvaged},
    ),
    "salvages": (
        test_node_salvage.test_the_bound_in_time_is_kept_and_each_removal_is_reported,
        {LogTruncated, RecordsCut, RecordsSalvaged, SalvageRemoved},
    ),
    "salvages a part": (test_node_salvage.test_the_bound_in_bytes_keeps_the_newest_records, {SalvageIncomplete}),
    "cannot salvage": (
        test_node_salvage.test_if_it_cannot_be_saved_the_replica_follows_all_the_same_and_says_what_is_lost,
        {QuarantineUnreadable, SalvageFailed},
    ),
    "leads while it salvages": (
        test_node_salvage.test_a_replica_that_comes_to_lead_meanwhile_keeps_its_log_and_leaves_no_salvage,
        {SalvageOvertaken},
    ),
    "cleans": (
        test_cleaning.test_a_damaged_log_is_said_and_left_alone_and_others_are_cleaned,
        {LogCompacted, LogUncleanable},
    ),
    "has a damaged cleaner's checkpoint": (
        test_cleaning.test_a_checkpoint_that_cannot_be_read_makes_all_dirty,
        {CleanerCheckpointDamaged},
    ),
    "waits for the future": (
        test_retention_warnings.test_a_record_of_the_future_is_reported_once_and_not_at_each_run,
        {RetentionHeldUp},
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_it_is_emitted(story: str, heard: Heard) -> None:
    play, kinds = STORIES[story]
    play()
    assert kinds <= {type(event) for event in heard}


def test_what_says_which_partition_it_was(heard: Heard) -> None:
    comes_back_to_other_topics()
    assert {
        ReplicaDeleted("moved-0", at_start=True),
        ReplicaDeleted("later-0", at_start=False),
        ReplicaOfDeletedTopic("anew-0"),
        ReplicaUnknown("nameless-0"),
    } <= set(heard)


def test_an_answer_to_a_role_that_is_over_is_another_event_than_one_that_is_overtaken(heard: Heard) -> None:
    is_answered_when_its_topic_is_gone()
    assert IsrAnswerIgnored("t-0", "replaced") in heard


def test_each_kind_is_emitted_in_some_story() -> None:
    kinds = {
        kind
        for module in (replication, storage)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__
    }
    rendered = {type(event) for _, event in SCENES.values()}.union(*(kinds for _, kinds in STORIES.values()))
    assert kinds == rendered
