"""The facade: a whole small cluster driven through replayed records only, and what a node relies on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tanist.controller.alter_configs import SET
from tanist.controller.controller import _DECIDE, Bootstrap, Controller, not_controller_response
from tanist.controller.decision import ControllerSettings
from tanist.controller.image.image import MetadataImage
from tanist.controller.token_request import TokenRequest
from tanist.wire.errors import ErrorCode
from tanist.wire.messages import (
    alter_client_quotas_request,
    alter_configs_request,
    incremental_alter_configs_request,
    update_features_request,
)
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest
from tanist.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest
from tanist.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from tanist.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from tanist.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tanist.wire.messages.update_features_request import UpdateFeaturesRequest
from tanist.wire.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
)
from tests.controller.controller_double import CLUSTER_ID, Cluster, Dice, directory

IDLE_OFF = {"metadata.max.idle.interval.ms": "0"}


def test_the_life_of_a_small_cluster() -> None:
    """Register, unfence, create, fence, restart uncleanly, shut down; the standby holds the same image throughout."""
    cluster = Cluster()
    assert cluster.standby.elr_enabled
    for broker_id in (1, 2, 3):
        cluster.register(broker_id)
    assert all(broker.fenced for broker in cluster.standby.brokers.values())
    for broker_id in (1, 2, 3):
        assert not cluster.heartbeat(broker_id).is_fenced
    cluster.create_topic("foo", (1, 2, 3), (2, 3, 1), min_insync_replicas="2")
    assert [cluster.partition("foo", number).leader for number in (0, 1)] == [1, 2]

    # Broker 1 falls silent: after nine seconds it is fenced, and 2 leads what it led.
    cluster.advance(9001, beating=(2, 3))
    state = cluster.partition("foo")
    assert (state.leader, state.isr, state.elr, state.leader_epoch) == (2, (2, 3), (), 1)
    # Broker 2 too: the last of the ISR goes on alone, 2 stays eligible.
    cluster.advance(9001, beating=(3,))
    state = cluster.partition("foo")
    assert (state.leader, state.isr, state.elr) == (3, (3,), (2,))
    # Broker 3 dies, and nobody leads. 3 and 2 have all that was committed, 1 has not.
    cluster.advance(9001)
    state = cluster.partition("foo")
    assert (state.leader, state.isr, state.elr) == (-1, (), (2, 3))

    # 1 comes back: nobody asks it to lead. 2 comes back uncleanly: neither. 3 comes back cleanly, and leads.
    cluster.register(1, 2, previous_broker_epoch=cluster.image.brokers[1].epoch)
    cluster.heartbeat(1)
    assert cluster.partition("foo").leader == -1
    cluster.register(2, 2, previous_broker_epoch=-1)
    cluster.heartbeat(2)
    assert (cluster.partition("foo").leader, cluster.partition("foo").elr) == (-1, (3,))
    cluster.register(3, 2, previous_broker_epoch=cluster.image.brokers[3].epoch)
    cluster.heartbeat(3)
    state = cluster.partition("foo")
    assert (state.leader, state.isr, state.elr, state.recovering) == (3, (3,), (), False)

    # The others catch up and join; leadership goes home by itself.
    for number in (0, 1):
        assert cluster.alter_isr("foo", (3, 1, 2), number) == ErrorCode.NONE
    cluster.advance(300_000, beating=(1, 2, 3))
    assert [cluster.partition("foo", number).leader for number in (0, 1)] == [1, 2]

    # An orderly stop of broker 1: its leadership moves first, then it may go.
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.partition("foo").leader == 2
    for broker_id in (2, 3):
        cluster.heartbeat(broker_id, current_metadata_offset=len(cluster.log))
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.image.brokers[1].fenced
    assert cluster.partition("foo").isr == (3, 2)


# -- rule 149: becoming active and ceasing to be


def test_an_empty_log_begins_with_the_bootstrap_records() -> None:
    cluster = Cluster()
    assert cluster.written(0) == [*["FeatureLevelRecord"] * 6, "ConfigRecord"]
    assert cluster.image.features.keys() == {
        "metadata.version",
        "eligible.leader.replicas.version",
        "group.version",
        "share.version",
        "streams.version",
        "transaction.version",
    }
    assert cluster.decisions[0].atomic
    cluster.controller.deactivate(cluster.image)
    assert cluster.controller.activate(2, cluster.now_ms, len(cluster.log)).records == ()


def test_bootstrap_is_what_the_node_was_formatted_with() -> None:
    cluster = Cluster(bootstrap=Bootstrap(metadata_version=25), min_insync_replicas=2)
    assert cluster.log == [
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
    ]
    cluster = Cluster(min_insync_replicas=2)
    assert cluster.image.configs == {(4, ""): {"min.insync.replicas": "2"}}


def test_a_log_of_others_is_not_bootstrapped_again() -> None:
    cluster = Cluster(activate=False)
    cluster.image.replay(FeatureLevelRecord(name="metadata.version", feature_level=23))
    assert cluster.controller.activate(1, 0, 5).records == ()


def test_an_open_transaction_is_aborted_first() -> None:
    cluster = Cluster()
    image = cluster.image.copy()
    image.replay(BeginTransactionRecord(name="half done"))
    cluster.controller.deactivate(image)
    decision = cluster.controller.activate(2, cluster.now_ms, len(cluster.log) + 1)
    assert decision.records == (AbortTransactionRecord(reason="Controller failover"),)


def test_epochs_of_a_controller_only_grow() -> None:
    cluster = Cluster()
    cluster.controller.deactivate(cluster.image)
    with pytest.raises(ValueError, match="activated in epoch 1 after 1"):
        cluster.controller.activate(1, cluster.now_ms, 0)


def test_a49_an_inactive_controller_answers_nothing() -> None:
    cluster = Cluster()
    cluster.start(1)
    committed = cluster.image.copy()
    epoch = cluster.image.brokers[1].epoch
    cluster.controller.deactivate(committed)
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch)
    decision = cluster.controller.handle(request, cluster.now_ms, next_offset=9, api_version=1)
    assert decision.records == ()
    assert decision.response == not_controller_response(request)
    assert cluster.controller.next_deadline_ms is None
    assert cluster.controller.tick(cluster.now_ms + 10**9, 9) is None
    cluster.controller.contact(1, epoch, cluster.now_ms)
    assert cluster.controller._heartbeats.next_expiry_ms is None


def test_uncommitted_decisions_vanish_with_the_image() -> None:
    cluster = Cluster()
    cluster.start(1)
    committed = cluster.image.copy()
    cluster.create_topic("foo", (1,))
    cluster.controller.deactivate(committed)
    assert cluster.controller.image.topic("foo") is None
    cluster.controller.activate(2, cluster.now_ms, 3)
    assert "foo" not in cluster.controller.image.topic_ids


# -- requests


def _responses(answer: Any) -> list[int]:
    """Every error code in an answer."""
    codes = [answer.error_code] if hasattr(answer, "error_code") else []
    for name in ("topics", "responses", "results", "filter_results", "entries"):
        codes.extend(each.error_code for each in getattr(answer, name, ()) if hasattr(each, "error_code"))
    return codes


ABOUT_TOKENS = (CreateDelegationTokenRequest, RenewDelegationTokenRequest, ExpireDelegationTokenRequest)


@pytest.mark.parametrize(
    "kind", [*(each for each in _DECIDE if each is not TokenRequest), *ABOUT_TOKENS], ids=lambda kind: kind.__name__
)
def test_not_controller_is_said_where_each_asker_looks(kind: type) -> None:
    filled: dict[type, dict[str, Any]] = {
        CreateTopicsRequest: {"topics": (CreatableTopic(name="a"),)},
        DeleteTopicsRequest: {"topic_names": ("a",), "topics": (DeleteTopicState(topic_id=UUID(int=5)),)},
        CreatePartitionsRequest: {"topics": (CreatePartitionsTopic(name="a"),)},
        UpdateFeaturesRequest: {"feature_updates": (update_features_request.FeatureUpdateKey(feature="a"),)},
        incremental_alter_configs_request.IncrementalAlterConfigsRequest: {
            "resources": (incremental_alter_configs_request.AlterConfigsResource(resource_name="a"),)
        },
        alter_configs_request.AlterConfigsRequest: {
            "resources": (alter_configs_request.AlterConfigsResource(resource_name="a"),)
        },
        CreateAclsRequest: {"creations": (AclCreation(),)},
        DeleteAclsRequest: {"filters": (DeleteAclsFilter(),)},
        alter_client_quotas_request.AlterClientQuotasRequest: {"entries": (alter_client_quotas_request.EntryData(),)},
        AlterUserScramCredentialsRequest: {"deletions": (ScramCredentialDeletion(name="a"),)},
    }
    asked = kind(**filled.get(kind, {}))
    if kind in ABOUT_TOKENS:
        asked = TokenRequest(asked, ("User", "a"), 0)
    answer = not_controller_response(asked)
    assert type(answer).__name__ == kind.__name__.replace("Request", "Response")
    codes = _responses(answer)
    assert codes
    assert set(codes) == {ErrorCode.NOT_CONTROLLER}


def test_other_requests_are_a_mistake_of_the_node() -> None:
    cluster = Cluster()
    with pytest.raises(ValueError, match="ApiVersionsRequest is not for a controller"):
        cluster.ask(ApiVersionsRequest())
    with pytest.raises(ValueError, match="ApiVersionsRequest is not for a controller"):
        not_controller_response(ApiVersionsRequest())


def test_every_request_finds_the_module_that_decides_it() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.create_topic("foo", (1, 2))
    answer = cluster.ask(
        CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="foo", count=3, assignments=None),))
    )
    assert [result.error_code for result in answer.results] == [ErrorCode.NONE]
    assert len(cluster.image.topics[cluster.image.topic_ids["foo"]].partitions) == 3
    assert cluster.ask(ListPartitionReassignmentsRequest(topics=None)).error_code == ErrorCode.NONE
    assert cluster.ask(AlterPartitionRequest(broker_id=9)).error_code == ErrorCode.STALE_BROKER_EPOCH
    answer = cluster.ask(ElectLeadersRequest(election_type=0, topic_partitions=None))
    assert answer.replica_election_results == ()
    answer = cluster.ask(DeleteTopicsRequest(topic_names=("foo",)))
    assert [response.error_code for response in answer.responses] == [ErrorCode.NONE]
    assert cluster.standby.topics == {}


def test_the_version_of_the_request_reaches_the_decision() -> None:
    cluster = Cluster()
    cluster.start(1)
    request = UpdateFeaturesRequest(
        feature_updates=(
            update_features_request.FeatureUpdateKey(
                feature="eligible.leader.replicas.version", max_version_level=0, allow_downgrade=True, upgrade_type=1
            ),
        )
    )
    assert cluster.ask(request, api_version=1).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.ask(request, api_version=0).error_code == ErrorCode.NONE
    assert not cluster.image.elr_enabled


# -- time


def test_an_idle_log_shows_progress() -> None:
    cluster = Cluster()
    since = len(cluster.log)
    cluster.advance(499)
    assert cluster.written(since) == []
    cluster.advance(1)
    assert cluster.log[since:] == [NoOpRecord()]
    cluster.advance(1000)
    assert cluster.log[since:] == [NoOpRecord()] * 3
    cluster.register(1)  # any record will do
    since = len(cluster.log)
    cluster.advance(499)
    assert cluster.written(since) == []


def test_no_progress_is_shown_when_switched_off() -> None:
    cluster = Cluster(static_configs=IDLE_OFF, auto_leader_rebalance_enable=False)
    since = len(cluster.log)
    cluster.advance(10_000)
    assert cluster.written(since) == []
    assert cluster.controller.next_deadline_ms == cluster.now_ms - 10_000 + 300_000  # the unclean sweep


def test_a_deadline_is_always_ahead_once_its_tick_is_done() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    for _ in range(50):
        deadline_ms = cluster.controller.next_deadline_ms
        assert deadline_ms is not None
        assert deadline_ms >= cluster.now_ms
        cluster.now_ms = deadline_ms
        cluster.commit(cluster.controller.tick(cluster.now_ms, len(cluster.log)))


def test_rule_98_leadership_goes_home_every_five_minutes() -> None:
    cluster = Cluster(static_configs=IDLE_OFF)
    cluster.start(1, 2)
    cluster.create_topic("foo", (1, 2))
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    assert cluster.alter_isr("foo", (2, 1)) == ErrorCode.NONE
    assert cluster.partition("foo").leader == 2
    activated_ms = cluster.now_ms
    cluster.advance(299_999, beating=(1, 2))
    assert cluster.partition("foo").leader == 2
    cluster.advance(1, beating=(1, 2))
    assert cluster.partition("foo").leader == 1
    assert cluster.now_ms == activated_ms + 300_000


def test_rule_98_switched_off() -> None:
    cluster = Cluster(static_configs=IDLE_OFF, auto_leader_rebalance_enable=False)
    cluster.start(1, 2)
    cluster.create_topic("foo", (1, 2))
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    cluster.alter_isr("foo", (2, 1))
    cluster.advance(700_000, beating=(1, 2))
    assert cluster.partition("foo").leader == 2


def test_rule_98_a_long_run_is_cut_and_goes_on_at_once() -> None:
    cluster = Cluster(static_configs=IDLE_OFF, max_elections_per_imbalance_check=2)
    cluster.start(1, 2)
    cluster.create_topic("foo", *[(1, 2)] * 5)
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    for number in range(5):
        cluster.alter_isr("foo", (2, 1), number)
    since = len(cluster.decisions)
    cluster.advance(300_000, beating=(1, 2))
    sizes = [
        len(decision.records)
        for decision in cluster.decisions[since:]
        if any(isinstance(record, PartitionChangeRecord) for record in decision.records)
    ]
    assert sizes == [2, 2, 1]


def test_rule_99_the_task_revives_from_the_last_known_leader() -> None:
    cluster = Cluster(static_configs=IDLE_OFF, unclean_recovery_manager_enabled=False)
    cluster.start(1, 2)
    cluster.create_topic("foo", (1, 2), min_insync_replicas="1")
    cluster.heartbeat(2, want_fence=True)
    cluster.controller._heartbeats.end_session(1)
    cluster.register(1, 2, previous_broker_epoch=-1)
    state = cluster.partition("foo")
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (-1, (), (), (1,))
    # Unfenced by a record that elects nobody, as an older controller might have left it.
    from tanist.wire.metadata import BrokerRegistrationChangeRecord

    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=cluster.image.brokers[1].epoch, fenced=-1)
    cluster.image.replay(change)
    cluster.standby.replay(change)
    cluster.advance(300_000, beating=(1,))
    state = cluster.partition("foo")
    assert (state.leader, state.isr, state.recovering) == (1, (1,), True)


def test_rule_100_the_sweep_elects_where_the_topic_allows_it() -> None:
    cluster = Cluster(
        static_configs=IDLE_OFF, auto_leader_rebalance_enable=False, unclean_recovery_manager_enabled=False
    )
    cluster.start(1, 2, 3)
    for name in ("careful", "careless"):
        cluster.create_topic(name, (1, 2), min_insync_replicas="1")
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(2)
    assert cluster.partition("careless").leader == -1
    cluster.set_config((2, "careless"), "unclean.leader.election.enable", "true")
    assert cluster.partition("careless").leader == -1  # setting it elects nobody by itself
    cluster.advance(300_000, beating=(2, 3))
    assert (cluster.partition("careless").leader, cluster.partition("careless").recovering) == (2, True)
    assert cluster.partition("careful").leader == -1


def test_a_controller_that_was_stopped_blames_nobody() -> None:
    """Suspended, starved, asleep: it heard nobody because it did not listen."""
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.now_ms += 60_000
    cluster.commit(cluster.controller.tick(cluster.now_ms, len(cluster.log)))
    assert not any(broker.fenced for broker in cluster.image.brokers.values())
    cluster.advance(9001, beating=(2,))
    assert [broker_id for broker_id, broker in cluster.image.brokers.items() if broker.fenced] == [1]


# -- any history


class Histories(RuleBasedStateMachine):
    """Three brokers live and die at random; what S8, S9 and S12 say of partitions and epochs holds after every step."""

    brokers = st.sampled_from((1, 2, 3))

    @initialize(min_isr=st.sampled_from(("1", "2", "3")))
    def begin(self, min_isr: str) -> None:
        self.cluster = Cluster(static_configs=IDLE_OFF)
        self.cluster.start(1, 2, 3)
        self.cluster.create_topic("foo", (1, 2, 3), (2, 3, 1), min_insync_replicas=min_isr)
        self.lives = {1: 1, 2: 1, 3: 1}
        self.unclean: set[int] = set()
        self.before: dict[int, Any] = {number: self.cluster.partition("foo", number) for number in (0, 1)}

    @rule(broker_id=brokers)
    def dies(self, broker_id: int) -> None:
        broker = self.cluster.image.brokers[broker_id]
        self.cluster.commit(self.cluster.controller.fencing.fence(self.cluster.image, broker_id, broker.epoch))

    @rule(broker_id=brokers, clean=st.booleans())
    def restarts(self, broker_id: int, clean: bool) -> None:
        self.dies(broker_id)
        self.lives[broker_id] += 1
        epoch = self.cluster.image.brokers[broker_id].epoch
        given = self.cluster.register(broker_id, self.lives[broker_id], previous_broker_epoch=epoch if clean else -1)
        if given <= epoch:
            raise AssertionError("a broker epoch was used again (A6)")
        if not clean:
            for number in (0, 1):
                state = self.cluster.partition("foo", number)
                if broker_id in (*state.isr, *state.elr) or state.leader == broker_id:
                    raise AssertionError("S8: an unclean broker is still believed")

    @rule(broker_id=brokers, want_fence=st.booleans(), want_shut_down=st.booleans())
    def beats(self, broker_id: int, want_fence: bool, want_shut_down: bool) -> None:
        self.cluster.heartbeat(broker_id, want_fence=want_fence, want_shut_down=want_shut_down)

    @rule(number=st.sampled_from((0, 1)), members=st.sets(brokers))
    @precondition(lambda self: any(self.cluster.partition("foo", number).leader > 0 for number in (0, 1)))
    def proposes(self, number: int, members: set[int]) -> None:
        if self.cluster.partition("foo", number).leader > 0:
            self.cluster.alter_isr("foo", tuple(sorted(members)), number)

    @rule(value=st.sampled_from(("1", "2", "3")))
    def minimum_changes(self, value: str) -> None:
        self.cluster.set_config((2, "foo"), "min.insync.replicas", value)

    @rule(by_ms=st.sampled_from((1, 5000, 9001, 300_000)), beating=st.sets(brokers))
    def time_passes(self, by_ms: int, beating: set[int]) -> None:
        self.cluster.advance(by_ms, beating=sorted(beating))

    @rule()
    def fails_over(self) -> None:
        epoch = self.cluster.controller.epoch
        self.cluster.controller.deactivate(self.cluster.standby.copy())
        self.cluster.commit(self.cluster.controller.activate(epoch + 1, self.cluster.now_ms, len(self.cluster.log)))

    @invariant()
    def partitions_are_sound(self) -> None:
        image = self.cluster.image
        for number, before in self.before.items():
            state = self.cluster.partition("foo", number)
            min_isr = image.effective_min_isr(image.topic_ids["foo"], number)
            problems = {
                "S9": state.leader_epoch < before.leader_epoch or state.partition_epoch < before.partition_epoch,
                "S9 leader": state.leader not in (before.leader, -1) and state.leader_epoch == before.leader_epoch,
                "S12 disjoint": bool(set(state.isr) & set(state.elr)),
                "S12 leader": state.leader != -1 and state.leader not in state.isr,
                "S12 none": state.leader == -1 and bool(state.isr),
                "S12 fenced": any(image.brokers[member].fenced for member in state.isr),
                "S12 full": len(state.isr) >= min_isr and bool(state.elr),
                "A29": state.leader != -1 and not image.brokers[state.leader].active,
            }
            broken = [name for name, is_broken in problems.items() if is_broken]
            if broken:
                raise AssertionError(f"{broken}: {before} -> {state}")
            self.before[number] = state


TestHistories = pytest.mark.long(Histories.TestCase)
TestHistories.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_it_takes_what_the_node_gives() -> None:
    controller = Controller(
        1, MetadataImage(), ControllerSettings(), Dice(), cluster_id=CLUSTER_ID, voter_ids=lambda: (1, 2, 3)
    )
    assert (controller.active, controller.next_deadline_ms) == (False, None)
    controller.replay(FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert controller.image.metadata_version == 30
    assert SET == 0
    assert directory(1) != directory(2)
    assert UnregisterBrokerRequest in _DECIDE
