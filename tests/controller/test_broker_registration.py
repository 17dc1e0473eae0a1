"""Registration of brokers and controllers, and its end (rules 78, 80-85)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tanist.controller.controller import Controller
from tanist.controller.features import SUPPORTED_FEATURES, Bootstrap
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.broker_registration_request import Feature
from tanist.wire.messages.controller_registration_request import ControllerRegistrationRequest, Listener
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tanist.wire.messages.unregister_controller_request import UnregisterControllerRequest
from tanist.wire.metadata import RegisterBrokerRecord, UnregisterBrokerRecord
from tests.controller.controller_double import Cluster, directory, end_session, registration_error, three_brokers

ELR = "eligible.leader.replicas.version"


# -- 80-85: registration


def test_rule_80_the_epoch_is_the_next_offset_of_the_log() -> None:
    cluster = Cluster()
    expected = len(cluster.log)
    assert cluster.register(1) == expected
    assert cluster.image.brokers[1].epoch == expected


def test_rule_80_no_epoch_is_given_twice() -> None:
    cluster = three_brokers()
    epochs = [broker.epoch for broker in cluster.image.brokers.values()]
    for incarnation in range(2, 6):
        end_session(cluster, 2)
        epochs.append(cluster.register(2, incarnation))
        cluster.heartbeat(2)
    assert len(set(epochs)) == len(epochs)
    assert epochs == sorted(epochs)


def test_rule_80_the_epoch_precedes_the_cleanup_and_the_record_follows_it() -> None:
    cluster = three_brokers()
    end_session(cluster, 2)
    cluster.heartbeat(1)  # (an unrelated step)
    epoch = len(cluster.log)
    cluster.create_topic("bar", (1, 3))
    epoch = len(cluster.log)
    assert cluster.register(2, 2) == epoch
    assert isinstance(cluster.log[-1], RegisterBrokerRecord)


def test_rule_81_wrong_cluster() -> None:
    assert registration_error(three_brokers(), cluster_id="another") == "INCONSISTENT_CLUSTER_ID"


def test_rule_81_another_incarnation_while_the_old_one_lives() -> None:
    cluster = three_brokers()
    assert registration_error(cluster) == "DUPLICATE_BROKER_REGISTRATION"
    cluster.advance(9001, beating=(2, 3))
    assert cluster.image.brokers[1].fenced
    assert registration_error(cluster) == "NONE"


def test_rule_81_fenced_brokers_have_no_session_unless_they_beat() -> None:
    cluster = Cluster()
    cluster.register(1)
    assert registration_error(cluster, incarnation=2) == "NONE"
    cluster.heartbeat(1, want_fence=True)
    assert registration_error(cluster, incarnation=3) == "DUPLICATE_BROKER_REGISTRATION"


@pytest.mark.parametrize(
    "log_dirs",
    [(), (UUID(int=0),), (UUID(int=99),), (directory(1), directory(1)), (directory(2),), (directory(1), directory(3))],
)
def test_rule_81_directories(log_dirs: tuple[UUID, ...]) -> None:
    cluster = three_brokers()
    end_session(cluster, 1)
    assert registration_error(cluster, log_dirs=log_dirs) == "INVALID_REGISTRATION"
    assert registration_error(cluster, log_dirs=(UUID(int=100), directory(1, 5))) == "NONE"


BOTH = {ELR: (0, 1), "group.version": (0, 1), "share.version": (0, 1), "streams.version": (0, 1)}


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
    assert registration_error(Cluster(), features=features) == error


def test_rule_81_no_brokers_of_another_kind() -> None:
    assert registration_error(Cluster(), is_migrating_zk_broker=True) == "INVALID_REGISTRATION"
    assert registration_error(Cluster(), broker_id=-1, incarnation=2000) == "INVALID_REGISTRATION"


def test_rule_81_a_refusal_writes_nothing_and_gives_no_epoch() -> None:
    cluster = three_brokers()
    since = len(cluster.log)
    answer = cluster.ask(cluster.registration(1, 2))
    assert (answer.broker_epoch, cluster.written(since)) == (-1, [])


def test_rule_82_the_same_incarnation_keeps_everything() -> None:
    cluster = three_brokers()
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
    cluster = three_brokers("3")
    cluster.heartbeat(2, want_fence=True)
    assert cluster.partition("foo").elr == (2,)
    end_session(cluster, 2)
    stored = cluster.image.brokers[2].epoch
    epoch = {"stored": stored, "other": stored - 1}.get(previous_broker_epoch, previous_broker_epoch)
    cluster.register(2, 2, api_version, previous_broker_epoch=epoch)
    assert cluster.partition("foo").elr == ((2,) if clean else ())


@pytest.mark.parametrize("previous_broker_epoch", [-2, -1, 0])
def test_rule_83_an_unknown_broker_is_never_clean(previous_broker_epoch: int) -> None:
    cluster = three_brokers("3")
    cluster.heartbeat(2, want_fence=True)
    cluster.ask(UnregisterBrokerRequest(broker_id=2))
    cluster.register(2, 2, previous_broker_epoch=previous_broker_epoch)
    assert 2 not in (*cluster.partition("foo").isr, *cluster.partition("foo").elr)


@pytest.mark.parametrize("previous_broker_epoch", [-1, 0])
def test_rule_83_not_even_where_an_unregistered_broker_stayed_in_an_elr(previous_broker_epoch: int) -> None:
    """As Apache leaves it (rule 47): in a log that it wrote, we may find such a broker."""
    cluster = three_brokers("3")
    cluster.heartbeat(2, want_fence=True)
    gone = UnregisterBrokerRecord(broker_id=2, broker_epoch=cluster.image.brokers[2].epoch)
    cluster.image.replay(gone)
    cluster.standby.replay(gone)
    assert cluster.partition("foo").elr == (2,)
    cluster.register(2, 2, previous_broker_epoch=previous_broker_epoch)
    assert cluster.partition("foo").elr == ()


def test_rule_84_a_new_incarnation_is_fenced() -> None:
    cluster = three_brokers()
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.image.brokers[1].in_controlled_shutdown
    end_session(cluster, 1)
    cluster.register(1, 2)
    after = cluster.image.brokers[1]
    assert (after.fenced, after.in_controlled_shutdown) == (True, False)


def test_rule_85_s8_an_unclean_broker_is_nowhere_until_its_new_epoch_is_added() -> None:
    cluster = three_brokers()
    for broker_id in (3, 2):
        cluster.heartbeat(broker_id, want_fence=True)
    assert cluster.partition("foo").elr == (2,)
    end_session(cluster, 1)
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
    cluster = three_brokers("3")
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


# -- unregistration, controllers


def test_rule_78_unregistration() -> None:
    cluster = three_brokers()
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
    others = {"group.version", "transaction.version", "share.version", "streams.version"}
    assert set(SUPPORTED_FEATURES) == {"metadata.version", ELR, *others}
    assert isinstance(Cluster().controller, Controller)
