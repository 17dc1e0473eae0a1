"""Heartbeats, controlled shutdown, failed directories (rules 48, 90-93)."""

from __future__ import annotations

from uuid import UUID

from tanist.wire.errors import ErrorCode
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.metadata import BrokerRegistrationChangeRecord
from tests.controller.controller_double import CAUGHT_UP, Cluster, directory, end_session, three_brokers

# -- 90-93: heartbeats


def test_rule_90_unfenced_once_caught_up_with_its_registration() -> None:
    cluster = three_brokers()
    end_session(cluster, 2)
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
    cluster = three_brokers()
    since = len(cluster.log)
    answer = cluster.heartbeat(1, want_fence=True)
    assert (answer.is_fenced, answer.should_shut_down) == (True, False)
    assert cluster.written(since) == ["PartitionChangeRecord", "BrokerRegistrationChangeRecord"]  # rule 78
    assert (cluster.partition("foo").leader, cluster.partition("foo").isr) == (2, (2, 3))


def test_rule_91_shutdown_now_fences_and_lets_the_next_life_in() -> None:
    cluster = three_brokers()
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
    cluster = three_brokers()
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
    cluster = three_brokers()
    cluster.heartbeat(1, want_shut_down=True)
    end_session(cluster, 1)
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
    cluster = three_brokers()
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
    cluster = three_brokers()
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
    cluster = three_brokers()
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
