"""The events of a node beside its replicas: what each is emitted by, and with which values.

Most are stories of clusters in virtual time. Those of the controller's decisions are in `test_controller_events`, those
of the quorum's in `test_quorum_events`, those of a process in `tests/runtime/test_runtime_process_events.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from tanist.broker.metadata.bootstrap import FILE_NAME, encode_bootstrap
from tanist.client.admin import UpgradeType, update_feature_request
from tanist.controller.features import Bootstrap
from tanist.events.coordination import (
    CoordinatorGivenUp,
    CoordinatorLoaded,
    CoordinatorRecordUnreadable,
    CoordinatorUnreadable,
)
from tanist.events.event import Event
from tanist.events.metadata import (
    BrokerFenced,
    BrokerGone,
    BrokerShuttingDown,
    BrokerUnregistered,
    ControllerActivated,
    ControllerActivationAbandoned,
    ControllerActivationWaits,
    ControllerResigned,
    FeatureLeftOut,
    FeatureLevelChanged,
    ForwardingRefused,
    InternalTopicNotCreated,
    LogEndsAsked,
    LogInfoUnsupported,
    MetadataLogMissing,
    QuorumStateMissing,
)
from tanist.events.process import (
    LeadershipsNotHandedOver,
    ListenerFailed,
    LogDirectoriesFailed,
    MetadataLogFailed,
    NodeFailed,
    ShutdownBegun,
    ShutdownDone,
    UnexpectedError,
)
from tanist.events.quorum import (
    MetadataLogNotClosed,
    QuorumLeaderGone,
    SnapshotDownloaded,
    SnapshotLoaded,
    SnapshotWritten,
)
from tanist.sim.planted import PlantedError
from tanist.sim.world.world import PRIVATE_REQUESTS
from tanist.wire.apis import ApiKey
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tests.broker.cluster_rig import Cluster, Heard, out_of_descriptors
from tests.broker.test_bootstrap import Folder
from tests.broker.test_internal_topics import ask_for_a_while
from tests.broker.test_node_unclean_recovery import degraded
from tests.broker.test_unexpected import commit, found
from tests.planting import Plant

# -- committed


def test_a_broker_that_stops_shuts_down_and_is_taken_off_when_that_is_committed() -> None:
    cluster = Cluster(nodes=5)
    controller = cluster.controller()
    leaving = 5 if controller != 5 else 4
    cluster.create_topic("t", assignment=[[leaving, controller]])
    epoch = cluster.node(leaving).lifecycle.broker_epoch
    heard = Heard(cluster, BrokerShuttingDown, BrokerFenced, BrokerUnregistered)
    cluster.stop(leaving)
    cluster.ask(UnregisterBrokerRequest(broker_id=leaving), 0, to=controller)
    assert [event for _, event in heard.events] == [
        BrokerShuttingDown(leaving, epoch),
        BrokerFenced(leaving, epoch),
        BrokerUnregistered(leaving, epoch),
    ]
    assert {node_id for node_id, _ in heard.events} == {controller}


def test_a_feature_changes_from_a_level_to_another() -> None:
    cluster = Cluster()
    heard = Heard(cluster, FeatureLevelChanged)
    update = update_feature_request("eligible.leader.replicas.version", 0, UpgradeType.SAFE_DOWNGRADE)
    assert cluster.ask(update, 1).error_code == 0
    assert [event for _, event in heard.events] == [FeatureLevelChanged("eligible.leader.replicas.version", 1, 0)]


# -- the active controller


def test_a_controller_that_is_cut_off_resigns_and_another_is_active() -> None:
    cluster = Cluster()
    old = cluster.controller()
    epoch = cluster.node(old).quorum.raft.epoch
    heard = Heard(cluster, ControllerActivated, ControllerResigned)
    cluster.cut(1, 2, 3)
    cluster.cut(2, 3)
    cluster.until(lambda: not cluster.node(old).quorum.controller_service.active)
    cluster.heal()
    cluster.until(cluster.world.ready)
    assert heard.events[0] == (old, ControllerResigned(old, epoch))
    new = cluster.controller()
    assert heard.events[-1] == (new, ControllerActivated(new, cluster.node(new).quorum.raft.epoch))


def starts_with_much_metadata(then: Callable[[Cluster], None] = lambda _: None) -> tuple[Cluster, Heard]:
    """A single node that applies its log in slices of ten records: it is elected long before it is done."""
    cluster = Cluster(nodes=1, config={"tanist.metadata.turn.records.max": "10"})
    for number in range(3):
        cluster.create_topic(f"t{number}", partitions=20, factor=1)
    cluster.host(1).kill()
    heard = Heard(
        cluster,
        ControllerActivationWaits,
        ControllerActivationAbandoned,
        ControllerActivated,
        then=lambda event: then(cluster) if isinstance(event, ControllerActivationWaits) else None,
    )
    cluster.host(1).start()
    cluster.until(lambda: any(isinstance(event, ControllerActivated) for _, event in heard.events))
    return cluster, heard


def test_a_controller_is_active_when_all_is_applied() -> None:
    _, heard = starts_with_much_metadata()
    (_, waits), (_, activated) = heard.events
    assert isinstance(waits, ControllerActivationWaits)
    assert isinstance(activated, ControllerActivated)
    assert waits.epoch == activated.epoch
    assert 0 < waits.applied_end < 60 < waits.committed_end


def test_a_controller_that_is_deposed_before_that_was_never_active() -> None:
    deposed: list[bool] = []

    def depose(cluster: Cluster) -> None:
        if not deposed:
            deposed.append(True)
            quorum = cluster.node(1).quorum
            cluster.world.scheduler.after(0, quorum.resign, cluster.host(1).process)

    _, heard = starts_with_much_metadata(depose)
    events = [event for _, event in heard.events]
    assert isinstance(events[0], ControllerActivationWaits)
    assert events[1] == ControllerActivationAbandoned(events[0].epoch)
    assert isinstance(events[-1], ControllerActivated)
    assert events[-1].epoch > events[0].epoch


def test_nobody_listens_where_a_broker_was() -> None:
    cluster = Cluster(nodes=5)
    controller = cluster.controller()
    gone = 5 if controller != 5 else 4
    heard = Heard(cluster, BrokerGone)
    cluster.host(gone).kill()
    cluster.until(lambda: bool(heard.events))
    assert heard.events == [(controller, BrokerGone(gone))]


def test_nobody_listens_where_the_leader_was() -> None:
    cluster = Cluster()
    gone = cluster.controller()
    heard = Heard(cluster, QuorumLeaderGone)
    cluster.host(gone).kill()
    cluster.until(lambda: bool(heard.events))
    assert heard.events[0][0] != gone
    assert heard.events[0][1] == QuorumLeaderGone(gone)


def test_a_broker_of_another_make_is_asked_for_the_ends_of_its_logs() -> None:
    cluster = degraded()
    heard = Heard(cluster, LogInfoUnsupported, LogEndsAsked)
    cluster.host(2).properties[PRIVATE_REQUESTS] = "false"
    for node_id in (1, 2):
        cluster.host(node_id).start()
    cluster.until(lambda: len(heard.events) >= 2)
    assert [event for _, event in heard.events[:2]] == [LogInfoUnsupported(2), LogEndsAsked(2, 1)]


# -- a broker, about itself


def test_a_controller_does_not_have_the_api_of_what_is_forwarded() -> None:
    cluster = Cluster()
    controller = cluster.controller()
    asked = next(node_id for node_id in (1, 2, 3) if node_id != controller)
    for connection in cluster.node(controller).components.connections:
        cast(dict[int, object], connection.handlers).pop(ApiKey.UPDATE_FEATURES, None)  # the listener's own table
    heard = Heard(cluster, ForwardingRefused)
    cluster.ask(update_feature_request("group.version", 0, UpgradeType.SAFE_DOWNGRADE), 1, to=asked)
    assert heard.events == [(asked, ForwardingRefused("UNSUPPORTED_VERSION"))]


def test_a_topic_that_no_controller_makes() -> None:
    cluster = Cluster()
    left = next(node_id for node_id in (1, 2, 3) if node_id != cluster.controller())
    for node_id in {1, 2, 3} - {left}:
        cluster.host(node_id).kill()
    heard = Heard(cluster, InternalTopicNotCreated)
    ask_for_a_while(cluster, left)
    assert heard.events == [(left, InternalTopicNotCreated(OFFSETS_TOPIC, "", 0))]


# -- how a node begins


def test_a_feature_of_a_folder_that_is_left_out() -> None:
    folder, heard = Folder(), list[Event]()
    folder.events.subscribe(heard.append)
    folder.write(encode_bootstrap(Bootstrap(30, {"kraft.version": 1, "share.version": 2}), wall_ms=0))
    assert folder.read() is not None
    path = f"/data/{FILE_NAME}"
    assert heard == [FeatureLeftOut(path, "kraft.version", 1)]


# -- the metadata log


def test_snapshots_are_written_and_a_node_that_has_nothing_downloads_one() -> None:
    cluster = Cluster(config={"metadata.log.max.record.bytes.between.snapshots": "3000"})
    victim = next(node_id for node_id in (1, 2, 3) if node_id != cluster.controller())
    heard = Heard(cluster, SnapshotWritten, SnapshotDownloaded, SnapshotLoaded, QuorumStateMissing, MetadataLogMissing)
    for number in range(20):
        cluster.create_topic(f"t{number}", partitions=2)
    cluster.until(lambda: {node_id for node_id, _ in heard.events} == {1, 2, 3})
    leader = cluster.node(cluster.controller()).quorum
    snapshot = leader.raft.log.latest_snapshot_id
    assert snapshot is not None
    last = [event for node_id, event in heard.events if node_id == cluster.controller()][-1]
    assert last == SnapshotWritten(snapshot.end_offset, snapshot.epoch)
    host = cluster.host(victim)
    host.kill()
    for path in [path for path in host.disk.paths() if "__cluster_metadata" in path and "quorum-state" not in path]:
        host.disk.view(cluster.client.process).remove(path)
    heard.events.clear()
    host.start()
    cluster.until(lambda: any(isinstance(event, SnapshotLoaded) for _, event in heard.events))
    assert [event for node_id, event in heard.events if node_id == victim] == [
        MetadataLogMissing("/data/__cluster_metadata-0"),
        SnapshotDownloaded(snapshot.end_offset, snapshot.epoch),
        SnapshotLoaded(snapshot.end_offset, snapshot.epoch, controller=True),
    ]


def test_a_vote_that_is_gone() -> None:
    cluster = Cluster()
    cluster.stop(3)
    path = "/data/__cluster_metadata-0/quorum-state"
    cluster.host(3).disk.view(cluster.client.process).remove(path)
    heard = Heard(cluster, QuorumStateMissing)
    cluster.host(3).start()
    cluster.until(lambda: bool(heard.events))
    assert heard.events == [(3, QuorumStateMissing(path))]


def test_a_metadata_log_that_cannot_be_closed() -> None:
    def fails() -> None:
        raise OSError(5, "input/output error")

    cluster = Cluster()
    heard = Heard(cluster, MetadataLogNotClosed, ShutdownBegun, ShutdownDone)
    cluster.node(1).quorum._log.close = fails  # type: ignore[method-assign]
    cluster.stop(1)
    assert heard.events == [
        (1, ShutdownBegun(1)),
        (1, MetadataLogNotClosed("[Errno 5] input/output error")),
        (1, ShutdownDone(1)),
    ]


# -- what ends a node


def ended(cluster: Cluster, node_id: int, do: Callable[[], object], *kinds: type[Event]) -> list[Event]:
    heard = Heard(cluster, *kinds)
    do()
    cluster.until(lambda: not cluster.host(node_id).up)
    assert {emitter for emitter, _ in heard.events} == {node_id}
    return [event for _, event in heard.events]


@pytest.mark.parametrize("short", [False, True])
def test_the_metadata_log_cannot_be_written(short: bool) -> None:
    cluster = Cluster()
    host = cluster.host(3)
    folder = "/data/__cluster_metadata-0"

    def fail() -> None:
        if short:
            out_of_descriptors(host, folder)
        else:
            host.disk.failing.append(folder)
        if cluster.controller() != 3:
            cluster.host(cluster.controller()).kill()

    (failed,) = ended(cluster, 3, fail, MetadataLogFailed)
    assert failed == MetadataLogFailed("Too many open files" if short else "input/output error", short)


def test_all_log_directories_fail() -> None:
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    host = cluster.host(1)

    def fail() -> None:
        host.disk.failing.append("/data/t-0")
        cluster.produce("t", [b"x"], to=1, timeout_ms=100)

    (failed,) = ended(cluster, 1, fail, LogDirectoriesFailed)
    assert isinstance(failed, LogDirectoriesFailed)
    ((directory, reason),) = failed.causes
    assert directory == "/data"
    assert "input/output error" in reason


def test_logs_cannot_be_opened() -> None:
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2, 3]] * 2)
    host = cluster.host(3)
    host.kill()
    out_of_descriptors(host, "/data/t-1")
    (failed,) = ended(cluster, 3, lambda: (host.start(), cluster.until(lambda: not host.up)), NodeFailed)
    assert failed == NodeFailed("only 1 log could be opened: Too many open files")


def test_another_process_has_the_address() -> None:
    cluster = Cluster()
    heard = Heard(cluster, ListenerFailed)
    host = cluster.host(3)
    host.kill()

    def taken() -> None:
        raise OSError(98, "Address already in use")

    host.start()
    cluster.until(lambda: host.node is not None)
    listeners = cluster.node(3).components.connections._listeners
    listeners["PLAINTEXT"].open = taken  # type: ignore[method-assign]
    cluster.until(lambda: bool(heard.events))
    assert heard.events == [(3, ListenerFailed("PLAINTEXT", "Address already in use"))]


def test_a_node_that_stops_alone_hands_nothing_over() -> None:
    cluster = Cluster()
    for node_id in (1, 2):
        cluster.host(node_id).kill()
    heard = Heard(cluster, ShutdownBegun, LeadershipsNotHandedOver, ShutdownDone)
    cluster.stop(3)
    assert heard.events == [(3, ShutdownBegun(3)), (3, LeadershipsNotHandedOver()), (3, ShutdownDone(3))]


# -- coordinators


ONE_PARTITION = {"offsets.topic.num.partitions": "1", "min.insync.replicas": "1"}


def test_a_coordinator_meets_an_exception_and_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = Plant("tanist.coordinator.group_shard:GroupShard.apply", lambda: PlantedError("planted"))
    plant.install(monkeypatch.setattr)
    cluster = Cluster(config=ONE_PARTITION)
    cluster.create_topic("t")
    commit(cluster)
    coordinator = found(cluster).node_id
    heard = Heard(cluster, CoordinatorGivenUp, CoordinatorLoaded, UnexpectedError)
    plant.armed = 1
    commit(cluster)
    cluster.until(lambda: len(heard.events) >= 3)
    (_, unexpected), *rest = heard.events
    assert isinstance(unexpected, UnexpectedError)
    assert (unexpected.where, unexpected.error, unexpected.count) == (
        f"a coordinator of {OFFSETS_TOPIC}", "PlantedError('planted')", 1,
    )  # fmt: skip
    assert "in planted" in unexpected.traceback
    loaded = rest[1][1]
    assert isinstance(loaded, CoordinatorLoaded)
    assert rest == [
        (coordinator, CoordinatorGivenUp(f"{OFFSETS_TOPIC}-0")),
        (coordinator, CoordinatorLoaded(f"{OFFSETS_TOPIC}-0", "groups", 1, loaded.records, loaded.took_ms)),
    ]
    assert loaded.records >= 1


def moved(cluster: Cluster) -> int:
    """Another broker takes the coordinator over; which one."""
    old = found(cluster).node_id
    cluster.host(old).kill()
    cluster.until(lambda: cluster.leader(OFFSETS_TOPIC) not in (None, old), 60_000)
    return cluster.leader(OFFSETS_TOPIC) or 0


def test_a_record_that_makes_no_sense_is_left_out() -> None:
    cluster = Cluster(nodes=5, config=ONE_PARTITION)
    cluster.create_topic("t")
    commit(cluster)
    cluster.client = cluster.new_client("__admin_client")  # who may write to internal topics
    cluster.ask(MetadataRequest(topics=None), 9, to=found(cluster).node_id)
    answer = cluster.produce(OFFSETS_TOPIC, [b"x"], key=b"\0\1\0\7x")
    assert answer.error_code == 0
    heard = Heard(cluster, CoordinatorRecordUnreadable, CoordinatorLoaded)
    new = moved(cluster)
    cluster.until(lambda: any(isinstance(event, CoordinatorLoaded) for _, event in heard.events))
    unreadable = heard.events[0][1]
    assert isinstance(unreadable, CoordinatorRecordUnreadable)
    assert (heard.events[0][0], unreadable.partition, unreadable.offset) == (
        new,
        f"{OFFSETS_TOPIC}-0",
        answer.base_offset,
    )
    assert unreadable.problem


def test_a_log_that_cannot_be_read_has_no_coordinator() -> None:
    cluster = Cluster(nodes=5, config=ONE_PARTITION)
    cluster.create_topic("t")
    commit(cluster)
    cluster.run(2_000)
    old = found(cluster).node_id
    for node_id, host in cluster.world.hosts.items():
        if node_id != old and node_id in cluster.hosted(OFFSETS_TOPIC):
            host.disk.inode(f"/data/{OFFSETS_TOPIC}-0/{0:020d}.log").data[8:12] = bytes(4)
    heard = Heard(cluster, CoordinatorUnreadable)
    new = moved(cluster)
    cluster.until(lambda: bool(heard.events))
    (emitted_by, unreadable) = heard.events[0]
    assert isinstance(unreadable, CoordinatorUnreadable)
    assert (emitted_by, unreadable.partition) == (new, f"{OFFSETS_TOPIC}-0")
    assert unreadable.problem
