"""Registration, heartbeats, fencing, controlled shutdown (rules 78, 80-97)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tanist.controller.controller import Controller
from tanist.controller.features import SUPPORTED_FEATURES, Bootstrap
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_registration_request import Feature
from tanist.wire.messages.controller_registration_request import ControllerRegistrationRequest, Listener
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tanist.wire.messages.unregister_controller_request import UnregisterControllerRequest
from tanist.wire.metadata import BrokerRegistrationChangeRecord, RegisterBrokerRecord, UnregisterBrokerRecord
from tests.controller.controller_double import CAUGHT_UP, Cluster, directory

ELR = "eligible.leader.replicas.version"


def _cluster(min_isr: str = "2") -> Cluster:
    cluster = Cluster()
    cluster.start(1, 2, 3)
    cluster.create_topic("foo", (1, 2, 3), min_insync_replicas=min_isr)
    return cluster


def _error(cluster: Cluster, api_version: int = 4, **fields: Any) -> str:
    broker_id = fields.pop("broker_id", 1)
    answer = cluster.ask(cluster.registration(broker_id, fields.pop("incarnation", 2), **fields), api_version)
    return ErrorCode(answer.error_code).name


def _end_session(cluster: Cluster, broker_id: int) -> None:
    cluster.commit(cluster.controller.fencing.fence(cluster.image, broker_id, cluster.image.brokers[broker_id].epoch))


# -- 80-85: registration


def test_rule_80_the_epoch_is_the_next_offset_of_the_log() -> None:
    cluster = Cluster()
    expected = len(cluster.log)
    assert cluster.register(1) == expected
    assert cluster.image.brokers[1].epoch == expected


def test_rule_80_no_epoch_is_given_twice() -> None:
    cluster = _cluster()
    epochs = [broker.epoch for broker in cluster.image.brokers.values()]
    for incarnation in range(2, 6):
        _end_session(cluster, 2)
        epochs.append(cluster.register(2, incarnation))
        cluster.heartbeat(2)
    assert len(set(epochs)) == len(epochs)
    assert epochs == sorted(epochs)


def test_rule_80_the_epoch_precedes_the_cleanup_and_the_record_follows_it() -> None:
    cluster = _cluster()
    _end_session(cluster, 2)
    cluster.heartbeat(1)  # (an unrelated step)
    epoch = len(cluster.log)
    cluster.create_topic("bar", (1, 3))
    epoch = len(cluster.log)
    assert cluster.register(2, 2) == epoch
    assert isinstance(cluster.log[-1], RegisterBrokerRecord)


def test_rule_81_wrong_cluster() -> None:
    assert _error(_cluster(), cluster_id="another") == "INCONSISTENT_CLUSTER_ID"


def test_rule_81_another_incarnation_while_the_old_one_lives() -> None:
    cluster = _cluster()
    assert _error(cluster) == "DUPLICATE_BROKER_REGISTRATION"
    cluster.advance(9001, beating=(2, 3))
    assert cluster.image.brokers[1].fenced
    assert _error(cluster) == "NONE"


def test_rule_81_fenced_brokers_have_no_session_unless_they_beat() -> None:
    cluster = Cluster()
    cluster.register(1)
    assert _error(cluster, incarnation=2) == "NONE"
    cluster.heartbeat(1, want_fence=True)
    assert _error(cluster, incarnation=3) == "DUPLICATE_BROKER_REGISTRATION"


@pytest.mark.parametrize(
    "log_dirs",
    [(), (UUID(int=0),), (UUID(int=99),), (directory(1), directory(1)), (directory(2),), (directory(1), directory(3))],
)
def test_rule_81_directories(log_dirs: tuple[UUID, ...]) -> None:
    cluster = _cluster()
    _end_session(cluster, 1)
    assert _error(cluster, log_dirs=log_dirs) == "INVALID_REGISTRATION"
    assert _error(cluster, log_dirs=(UUID(int=100), directory(1, 5))) == "NONE"


BOTH = {ELR: (0, 1), "group.version": (0, 1)}


@pytest.mark.parametrize(
    ("ranges", "error"),
    [
        ({}, "UNSUPPORTED_VERSION"),
        ({"metadata.version": (7, 30)}, "UNSUPPORTED_VERSION"),  # ELR is finalized and it does not know it
        ({"metadata.version": (7, 29), ELR: (0, 1)}, "UNSUPPORTED_VERSION"),
        ({"metadata.version": (7, 30), ELR: (0, 1)}, "UNSUPPORTED_VERSION"),  # so is group.version
        ({"metadata.version": (7, 30), **BOTH}, "UNSUPPORTED_VERSION"),  # and transaction.version
        ({**BOTH, "transaction.version": (0, 2)}, "INVALID_REGISTRATION"),
        ({"metadata.version": (7, 30), **BOTH, "transaction.version": (0, 2), "future.version": (1, 9)}, "NONE"),
    ],
)
def test_rule_81_features(ranges: dict[str, tuple[int, int]], error: str) -> None:
    features = tuple(
        Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in ranges.items()
    )
    assert _error(Cluster(), features=features) == error


def test_rule_81_no_brokers_of_another_kind() -> None:
    assert _error(Cluster(), is_migrating_zk_broker=True) == "INVALID_REGISTRATION"
    assert _error(Cluster(), broker_id=-1, incarnation=2000) == "INVALID_REGISTRATION"


def test_rule_81_a_refusal_writes_nothing_and_gives_no_epoch() -> None:
    cluster = _cluster()
    since = len(cluster.log)
    answer = cluster.ask(cluster.registration(1, 2))
    assert (answer.broker_epoch, cluster.written(since)) == (-1, [])


def test_rule_82_the_same_incarnation_keeps_everything() -> None:
    cluster = _cluster()
    before, state = cluster.image.brokers[1], cluster.partition("foo")
    since = len(cluster.log)
    assert cluster.register(1, rack="r2") == before.epoch
    assert cluster.written(since) == ["RegisterBrokerRecord"]
    after = cluster.image.brokers[1]
    assert (after.epoch, after.fenced, after.rack) == (before.epoch, False, "r2")
    assert cluster.partition("foo") == state
    # It must read that record, too, before an unfence would be granted.
    cluster.heartbeat(1, want_fence=True)
    assert cluster.heartbeat(1, current_metadata_offset=since - 1).is_fenced
    assert not cluster.heartbeat(1, current_metadata_offset=since).is_fenced


@pytest.mark.parametrize(
    ("previous_broker_epoch", "api_version", "clean"),
    [("stored", 3, True), ("stored", 4, True), ("stored", 2, False), (-1, 4, False), ("other", 4, False)],
)
def test_rule_83_clean_needs_the_stored_epoch_and_a_version_that_says_so(
    previous_broker_epoch: Any, api_version: int, clean: bool
) -> None:
    cluster = _cluster("3")
    cluster.heartbeat(2, want_fence=True)
    assert cluster.partition("foo").elr == (2,)
    _end_session(cluster, 2)
    stored = cluster.image.brokers[2].epoch
    epoch = {"stored": stored, "other": stored - 1}.get(previous_broker_epoch, previous_broker_epoch)
    cluster.register(2, 2, api_version, previous_broker_epoch=epoch)
    assert cluster.partition("foo").elr == ((2,) if clean else ())


@pytest.mark.parametrize("previous_broker_epoch", [-2, -1, 0])
def test_rule_83_an_unknown_broker_is_never_clean(previous_broker_epoch: int) -> None:
    cluster = _cluster("3")
    cluster.heartbeat(2, want_fence=True)
    cluster.ask(UnregisterBrokerRequest(broker_id=2))
    cluster.register(2, 2, previous_broker_epoch=previous_broker_epoch)
    assert 2 not in (*cluster.partition("foo").isr, *cluster.partition("foo").elr)


@pytest.mark.parametrize("previous_broker_epoch", [-1, 0])
def test_rule_83_not_even_where_an_unregistered_broker_stayed_in_an_elr(previous_broker_epoch: int) -> None:
    """As Apache leaves it (rule 47): in a log that it wrote, we may find such a broker."""
    cluster = _cluster("3")
    cluster.heartbeat(2, want_fence=True)
    gone = UnregisterBrokerRecord(broker_id=2, broker_epoch=cluster.image.brokers[2].epoch)
    cluster.image.replay(gone)
    cluster.standby.replay(gone)
    assert cluster.partition("foo").elr == (2,)
    cluster.register(2, 2, previous_broker_epoch=previous_broker_epoch)
    assert cluster.partition("foo").elr == ()


def test_rule_84_a_new_incarnation_is_fenced() -> None:
    cluster = _cluster()
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.image.brokers[1].in_controlled_shutdown
    _end_session(cluster, 1)
    cluster.register(1, 2)
    after = cluster.image.brokers[1]
    assert (after.fenced, after.in_controlled_shutdown) == (True, False)


def test_rule_85_s8_an_unclean_broker_is_nowhere_until_its_new_epoch_is_added() -> None:
    cluster = _cluster()
    for broker_id in (3, 2):
        cluster.heartbeat(broker_id, want_fence=True)
    assert cluster.partition("foo").elr == (2,)
    _end_session(cluster, 1)
    assert (cluster.partition("foo").leader, cluster.partition("foo").elr) == (-1, (1, 2))
    cluster.register(1, 2, previous_broker_epoch=-1)
    cluster.heartbeat(1)
    state = cluster.partition("foo")
    assert (state.leader, state.isr, state.elr) == (-1, (), (2,))  # it is up, and still nobody leads
    cluster.heartbeat(2)
    assert cluster.partition("foo").leader == 2
    assert cluster.alter_isr("foo", (2, 1)) == ErrorCode.NONE
    assert cluster.partition("foo").isr == (2, 1)


@pytest.mark.parametrize(("clean", "elr"), [(True, (2,)), (False, ())])
def test_rule_85_back_before_anybody_missed_it(clean: bool, elr: tuple[int, ...]) -> None:
    """Out of the ISR in the step that registers it, and into the ELR only if it has lost nothing."""
    cluster = _cluster("3")
    cluster.controller._heartbeats.end_session(2)  # as after a failover: unfenced, with no session yet
    epoch = cluster.image.brokers[2].epoch
    cluster.register(2, 2, previous_broker_epoch=epoch if clean else -1)
    state = cluster.partition("foo")
    assert (state.leader, state.isr, state.elr) == (1, (1, 3), elr)


def test_rule_78_registration_cleans_up_first_and_may_be_cut() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.create_topic("foo", (2, 1), (2, 1), (1, 2))
    cluster.controller._heartbeats.end_session(2)
    since = len(cluster.log)
    cluster.register(2, 2)
    assert cluster.written(since) == ["PartitionChangeRecord"] * 3 + ["RegisterBrokerRecord"]
    assert cluster.decisions[-1].atomic is False
    assert all(2 not in cluster.partition("foo", number).isr for number in range(3))
    # What it has to read before it may be unfenced is the record, not what went before it (A48).
    assert cluster.heartbeat(2, current_metadata_offset=len(cluster.log) - 2).is_fenced
    assert not cluster.heartbeat(2, current_metadata_offset=len(cluster.log) - 1).is_fenced


def test_registration_before_directories_were_known() -> None:
    cluster = Cluster(bootstrap=Bootstrap(metadata_version=16))
    cluster.register(1, log_dirs=())
    assert cluster.image.brokers[1].directories == ()
    cluster.register(2)  # what the record cannot hold is not in the image either: the double compares them
    assert cluster.image.brokers[2].directories == ()


# -- 90-93: heartbeats


def test_rule_90_unfenced_once_caught_up_with_its_registration() -> None:
    cluster = _cluster()
    _end_session(cluster, 2)
    cluster.register(2, 2)
    offset = len(cluster.log) - 1
    answer = cluster.heartbeat(2, current_metadata_offset=offset - 1)
    assert (answer.is_caught_up, answer.is_fenced) == (False, True)
    assert cluster.image.brokers[2].fenced
    answer = cluster.heartbeat(2, current_metadata_offset=offset, want_fence=True)
    assert (answer.is_caught_up, answer.is_fenced) == (True, True)
    answer = cluster.heartbeat(2, current_metadata_offset=offset)
    assert (answer.is_caught_up, answer.is_fenced, answer.should_shut_down) == (True, False, False)
    assert not cluster.image.brokers[2].fenced


def test_rule_90_a48_a_new_controller_does_not_unfence_earlier() -> None:
    cluster = Cluster()
    cluster.register(1)
    offset = len(cluster.log) - 1
    cluster.controller.deactivate(cluster.image)
    cluster.commit(cluster.controller.activate(2, cluster.now_ms, len(cluster.log)))
    assert cluster.heartbeat(1, current_metadata_offset=offset - 1).is_fenced
    assert not cluster.heartbeat(1, current_metadata_offset=offset).is_fenced


def test_rule_91_a_wish_to_be_fenced_is_a_full_fence() -> None:
    cluster = _cluster()
    since = len(cluster.log)
    answer = cluster.heartbeat(1, want_fence=True)
    assert (answer.is_fenced, answer.should_shut_down) == (True, False)
    assert cluster.written(since) == ["PartitionChangeRecord", "BrokerRegistrationChangeRecord"]  # rule 78
    assert (cluster.partition("foo").leader, cluster.partition("foo").isr) == (2, (2, 3))


def test_rule_91_shutdown_now_fences_and_lets_the_next_life_in() -> None:
    cluster = _cluster()
    answer = cluster.heartbeat(3, want_shut_down=True)  # it leads nothing
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert cluster.image.brokers[3].fenced
    assert cluster.partition("foo").isr == (1, 2)
    stored = cluster.image.brokers[3].epoch
    cluster.register(3, 2, previous_broker_epoch=stored)


def test_a_fenced_broker_that_shuts_down_writes_nothing() -> None:
    cluster = Cluster()
    cluster.register(1)
    since = len(cluster.log)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.written(since) == []


def test_rule_92_controlled_shutdown_waits_until_everyone_active_knows() -> None:
    cluster = _cluster()
    since = len(cluster.log)
    answer = cluster.heartbeat(1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (False, False)
    assert cluster.written(since) == ["BrokerRegistrationChangeRecord", "PartitionChangeRecord"]  # rule 78
    assert (cluster.partition("foo").leader, cluster.partition("foo").isr) == (2, (2, 3))
    end = len(cluster.log) - 1
    cluster.heartbeat(2, current_metadata_offset=end)
    cluster.heartbeat(3, current_metadata_offset=end - 1)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.create_topic("later", (2, 3))  # the offset does not move with the log
    cluster.heartbeat(3, current_metadata_offset=end)
    answer = cluster.heartbeat(1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert cluster.image.brokers[1].fenced


def test_rule_92_each_life_has_its_own_shutdown_offset() -> None:
    cluster = _cluster()
    cluster.heartbeat(1, want_shut_down=True)
    _end_session(cluster, 1)
    cluster.register(1, 2, previous_broker_epoch=cluster.image.brokers[1].epoch)
    cluster.heartbeat(1)
    cluster.create_topic("bar", (1, 2))
    before = len(cluster.log) - 1
    cluster.heartbeat(1, want_shut_down=True)
    cluster.heartbeat(2, current_metadata_offset=before)
    cluster.heartbeat(3, current_metadata_offset=before)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down


def test_rule_92_nobody_else_active() -> None:
    cluster = Cluster()
    cluster.start(1)
    cluster.create_topic("foo", (1,))
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.partition("foo").leader == -1
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


def test_rule_92_a_new_controller_lets_a_shutdown_it_inherits_finish() -> None:
    cluster = _cluster()
    cluster.heartbeat(1, want_shut_down=True)
    cluster.controller.deactivate(cluster.image)
    cluster.commit(cluster.controller.activate(2, cluster.now_ms, len(cluster.log)))
    end = len(cluster.log) - 1
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down  # no metadata has come yet
    cluster.heartbeat(2, current_metadata_offset=end)
    cluster.heartbeat(3, current_metadata_offset=end - 1)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(3, current_metadata_offset=end)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


def test_a29_a_broker_that_shuts_down_is_not_elected() -> None:
    cluster = _cluster()
    cluster.heartbeat(2, want_shut_down=True)  # it leads nothing: gone at once
    cluster.create_topic("bar", (3, 1))
    cluster.heartbeat(3, want_shut_down=True)
    assert cluster.image.brokers[3].in_controlled_shutdown
    assert cluster.partition("bar").leader == 1
    cluster.heartbeat(1, want_fence=True)
    assert cluster.partition("foo").leader == -1


def test_a29_there_is_no_way_back_from_a_controlled_shutdown() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.create_topic("foo", (1,))
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.heartbeat(1).should_shut_down
    assert cluster.partition("foo").leader == -1
    assert cluster.heartbeat(1).is_fenced  # it should have gone; instead it asks to be unfenced
    assert cluster.partition("foo").leader == -1
    cluster.controller._heartbeats.end_session(1)
    cluster.register(1, 2, previous_broker_epoch=cluster.image.brokers[1].epoch)
    assert not cluster.heartbeat(1).is_fenced
    assert cluster.partition("foo").leader == 1


def test_rule_93_stale_epochs() -> None:
    cluster = _cluster()
    since = len(cluster.log)
    for broker_id, epoch in ((1, cluster.image.brokers[1].epoch - 1), (1, 10_000), (9, 1)):
        request = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=CAUGHT_UP)
        assert cluster.ask(request).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.written(since) == []


# -- directories


def test_rule_48_a_failed_directory_empties_the_isr_of_what_was_in_it() -> None:
    cluster = Cluster()
    for broker_id in (1, 2):
        cluster.register(broker_id, log_dirs=(directory(broker_id), directory(broker_id, 1)))
        cluster.heartbeat(broker_id)
    cluster.create_topic("foo", (1, 2))
    from tests.controller.partitions.test_directories import assign

    assign(cluster, 1, directory(1, 1), "foo")
    since = len(cluster.log)
    answer = cluster.heartbeat(1, offline_log_dirs=(directory(1, 1), UUID(int=1 << 90)))
    assert (answer.error_code, answer.is_fenced) == (ErrorCode.NONE, False)
    assert cluster.written(since) == ["PartitionChangeRecord", "BrokerRegistrationChangeRecord"]
    assert (cluster.partition("foo").leader, cluster.partition("foo").isr) == (2, (2,))
    assert cluster.image.brokers[1].directories == (directory(1),)
    since = len(cluster.log)
    cluster.heartbeat(1, offline_log_dirs=(directory(1, 1),))  # it says so from now on: nothing is new
    assert cluster.written(since) == []


def test_a_directory_is_lost_before_its_broker_is_unfenced() -> None:
    """Else the unfence could make it the leader of what it has lost."""
    cluster = Cluster()
    cluster.register(1, log_dirs=(directory(1), directory(1, 1)))
    cluster.heartbeat(1)
    cluster.create_topic("foo", (1,))
    from tests.controller.partitions.test_directories import assign

    assign(cluster, 1, directory(1, 1), "foo")
    cluster.heartbeat(1, want_fence=True)
    assert cluster.partition("foo").leader == -1
    assert cluster.heartbeat(1, offline_log_dirs=(directory(1, 1),)).is_fenced
    assert not cluster.heartbeat(1, offline_log_dirs=(directory(1, 1),)).is_fenced
    assert cluster.partition("foo").leader == -1


def test_the_last_directory_stays_in_the_registration() -> None:
    cluster = Cluster()
    cluster.start(1)
    since = len(cluster.log)
    cluster.heartbeat(1, offline_log_dirs=(directory(1),))
    assert BrokerRegistrationChangeRecord not in map(type, cluster.log[since:])
    assert cluster.image.brokers[1].directories == (directory(1),)


# -- 94, 95, 97: sessions


def test_rule_94_one_broker_is_fenced_a_run_and_the_next_at_once() -> None:
    cluster = Cluster(static_configs={"metadata.max.idle.interval.ms": "0"})
    cluster.start(1, 2, 3)
    cluster.now_ms += 9001
    fenced = []
    while (cluster.controller.next_deadline_ms or 0) <= cluster.now_ms:
        since = len(cluster.log)
        cluster.commit(cluster.controller.tick(cluster.now_ms, len(cluster.log)))
        changes = [r for r in cluster.log[since:] if isinstance(r, BrokerRegistrationChangeRecord)]
        fenced.append([change.broker_id for change in changes])
    assert fenced == [[1], [2], [3]]
    assert all(broker.fenced for broker in cluster.image.brokers.values())


def test_rule_94_contact_counts_before_the_heartbeat_is_handled() -> None:
    cluster = _cluster()
    cluster.advance(8000, beating=(2, 3))
    cluster.controller.contact(1, cluster.image.brokers[1].epoch, cluster.now_ms)
    cluster.advance(2000, beating=(2, 3))
    assert not cluster.image.brokers[1].fenced


def test_rule_94_strangers_and_former_lives_leave_no_trace() -> None:
    cluster = _cluster()
    table = cluster.controller._heartbeats
    cluster.controller.contact(9, 1, cluster.now_ms)
    cluster.controller.contact(1, 10_000, cluster.now_ms + 5)
    assert set(table._sessions) == {1, 2, 3}
    assert table.contact_time_ms(1, cluster.image.brokers[1].epoch) == cluster.now_ms


def test_rule_95_unfenced_brokers_start_afresh_with_a_new_controller() -> None:
    cluster = _cluster()
    cluster.heartbeat(3, want_fence=True)
    cluster.advance(8000, beating=(2,))
    image = cluster.image
    cluster.controller.deactivate(image)
    cluster.commit(cluster.controller.activate(2, cluster.now_ms, len(cluster.log)))
    cluster.advance(8000, beating=(2,))
    assert [broker_id for broker_id, broker in cluster.image.brokers.items() if broker.fenced] == [3]
    cluster.advance(1001, beating=(2,))
    assert cluster.image.brokers[1].fenced


def test_rule_97_fencing_keeps_the_epoch_and_unfencing_needs_no_registration() -> None:
    cluster = _cluster()
    epoch = cluster.image.brokers[1].epoch
    cluster.advance(9001, beating=(2, 3))
    assert cluster.image.brokers[1].fenced
    since = len(cluster.log)
    assert not cluster.heartbeat(1).is_fenced
    assert cluster.image.brokers[1].epoch == epoch
    assert cluster.written(since) == ["BrokerRegistrationChangeRecord"]


def test_broker_lost_fences_at_once_and_only_that_incarnation() -> None:
    cluster = _cluster()
    epoch = cluster.image.brokers[1].epoch
    assert cluster.controller.fencing.fence(cluster.image, 1, epoch - 1) is None
    assert cluster.controller.fencing.fence(cluster.image, 9, 1) is None
    decision = cluster.controller.fencing.fence(cluster.image, 1, epoch)
    assert decision is not None
    cluster.commit(decision)
    assert cluster.image.brokers[1].fenced
    assert cluster.partition("foo").leader == 2
    assert cluster.controller.fencing.fence(cluster.image, 1, epoch) is None  # it is fenced
    assert _error(cluster) == "NONE"  # and its next life may register


def test_a_broker_with_many_partitions_is_fenced_in_parts_those_that_it_leads_first() -> None:
    cluster = Cluster(fenced_partitions_max=2)
    cluster.start(1, 2, 3)
    cluster.create_topic("many", *[(2, 1, 3), (1, 2, 3)] * 5)
    cluster.commit(cluster.controller.fencing.fence(cluster.image, 1, cluster.image.brokers[1].epoch))
    led: list[int] = []
    in_isr: list[int] = []
    while not cluster.image.brokers[1].fenced:
        led.append(len(list(cluster.image.partitions_led_by(1))))
        in_isr.append(cluster.image.isr_count(1))
        assert cluster.controller.next_deadline_ms is not None
        assert cluster.controller.next_deadline_ms <= cluster.now_ms  # it goes on at once
        cluster.commit(cluster.controller.tick(cluster.now_ms, len(cluster.log)))
    assert led == [3, 1, 0, 0, 0]
    assert in_isr == [8, 6, 5, 3, 1]
    assert cluster.image.isr_count(1) == 0
    assert cluster.decisions[-1].records[-1] == BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=cluster.image.brokers[1].epoch, fenced=1
    )
    assert _error(cluster) == "NONE"  # its next life may register


def test_a_broker_that_is_heard_of_while_it_is_fenced_in_parts_stays() -> None:
    cluster = Cluster(fenced_partitions_max=2)
    cluster.start(1, 2, 3)
    cluster.create_topic("many", *[(1, 2, 3)] * 5)
    cluster.commit(cluster.controller.fencing.fence(cluster.image, 1, cluster.image.brokers[1].epoch))
    assert not cluster.heartbeat(1).is_fenced
    cluster.advance(5_000, beating=(1, 2, 3))
    assert not cluster.image.brokers[1].fenced
    assert (len(list(cluster.image.partitions_led_by(1))), cluster.image.isr_count(1)) == (3, 3)
    cluster.advance(20_000, beating=(2, 3))
    assert cluster.image.brokers[1].fenced
    assert cluster.image.isr_count(1) == 0


@pytest.mark.parametrize("features", [{}, {ELR: 1}])
def test_what_nobody_else_can_lead_is_taken_with_the_last_part(features: dict[str, int]) -> None:
    cluster = Cluster(bootstrap=Bootstrap(features=features), fenced_partitions_max=2)
    cluster.start(1, 2)
    cluster.create_topic("alone", *[(1,)] * 3)
    cluster.create_topic("unclean", *[(1, 2)] * 3, unclean_leader_election_enable="true")
    cluster.create_topic("safe", *[(1, 2)] * 3)
    for number in range(3):
        assert cluster.alter_isr("unclean", (1,), number) == 0
    cluster.commit(cluster.controller.fencing.fence(cluster.image, 1, cluster.image.brokers[1].epoch))
    cluster.commit(cluster.controller.tick(cluster.now_ms, len(cluster.log)))
    assert {cluster.partition("safe", number).leader for number in range(3)} == {2}
    assert not cluster.image.brokers[1].fenced
    assert len(list(cluster.image.partitions_led_by(1))) == 6
    cluster.commit(cluster.controller.tick(cluster.now_ms, len(cluster.log)))
    assert cluster.image.brokers[1].fenced
    assert {cluster.partition("alone", number).leader for number in range(3)} == {-1}
    elected = -1 if features else 2  # with ELR, the replicas are asked for their logs first
    assert {cluster.partition("unclean", number).leader for number in range(3)} == {elected}


def test_rule_78_an_unfence_is_written_before_the_elections_it_allows() -> None:
    cluster = _cluster()
    for broker_id in (1, 2, 3):
        cluster.heartbeat(broker_id, want_fence=True)
    assert cluster.partition("foo").leader == -1
    since = len(cluster.log)
    cluster.heartbeat(2)
    assert cluster.written(since) == ["BrokerRegistrationChangeRecord", "PartitionChangeRecord"]
    assert cluster.partition("foo").leader == 2


# -- unregistration, controllers


def test_rule_78_unregistration() -> None:
    cluster = _cluster()
    since = len(cluster.log)
    answer = cluster.ask(UnregisterBrokerRequest(broker_id=2))
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert cluster.written(since) == ["PartitionChangeRecord", "UnregisterBrokerRecord"]
    assert cluster.log[-1] == UnregisterBrokerRecord(broker_id=2, broker_epoch=cluster.log[-1].broker_epoch)
    assert 2 not in cluster.image.brokers
    assert cluster.partition("foo").isr == (1, 3)
    answer = cluster.ask(UnregisterBrokerRequest(broker_id=2))
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert "2" in answer.error_message


def test_controllers_register_from_3_7_on() -> None:
    request = ControllerRegistrationRequest(
        controller_id=100,
        incarnation_id=UUID(int=5),
        listeners=(Listener(name="CONTROLLER", host="h", port=9093),),
    )
    old = Cluster(bootstrap=Bootstrap(metadata_version=14))
    assert old.ask(request).error_code == ErrorCode.UNSUPPORTED_VERSION
    cluster = Cluster()
    assert cluster.ask(request).error_code == ErrorCode.NONE
    assert cluster.standby.controllers[100].endpoints[0].port == 9093


@pytest.mark.parametrize(
    ("level", "controller_id", "error", "message"),
    [
        (33, 101, ErrorCode.NONE, None),
        (33, 102, ErrorCode.CONTROLLER_ID_NOT_REGISTERED, "Controller ID 102 is not currently registered."),
        (33, 100, ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active."),
        (
            32,
            101,
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller unregistration.",
        ),
    ],
)
def test_a_controller_is_unregistered_where_all_nodes_know_the_record(
    level: int, controller_id: int, error: ErrorCode, message: str | None
) -> None:
    """As Apache Kafka 4.4.0 answers. The standby has read the record from the log."""
    cluster = Cluster(bootstrap=Bootstrap(metadata_version=level))
    for registered in (100, 101):
        cluster.ask(ControllerRegistrationRequest(controller_id=registered, incarnation_id=UUID(int=5)))
    answer = cluster.ask(UnregisterControllerRequest(controller_id=controller_id))
    assert (answer.error_code, answer.error_message) == (error, message)
    assert set(cluster.standby.controllers) == ({100, 101} if error else {100})
    cluster.ask(ControllerRegistrationRequest(controller_id=101, incarnation_id=UUID(int=6)))
    assert cluster.standby.controllers[101].incarnation_id == UUID(int=6), "one that lives registers again"


def test_supported_features_let_a_broker_register() -> None:
    assert set(SUPPORTED_FEATURES) == {"metadata.version", ELR, "group.version", "transaction.version"}
    assert isinstance(Cluster().controller, Controller)
