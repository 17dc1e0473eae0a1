"""The metadata image: every kind of record, what does not fit, transactions, deltas, indexes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from uuid import UUID

import pytest

from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.differences import delta_between, local_changes
from tanist.controller.image.image import (
    BROKER,
    ELR_VERSION,
    METADATA_VERSION,
    TOPIC,
    Endpoint,
    ImageError,
    MetadataImage,
    PartitionState,
)
from tanist.controller.image.snapshot import from_records, to_records
from tanist.wire.ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from tanist.wire.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerEndpoint,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from tanist.wire.schema import MetadataRecord as AnyRecord

FOO, BAR = UUID(int=501), UUID(int=502)
D1, D2 = UUID(int=9001), UUID(int=9002)


def register(broker_id: int, epoch: int = 10, **more: object) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=70 + broker_id),
        broker_epoch=epoch,
        end_points=(BrokerEndpoint(name="PLAIN", host="h", port=9092, security_protocol=0),),
        features=(BrokerFeature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=30),),
        rack="r1",
        fenced=False,
        log_dirs=(D1,),
        **more,  # type: ignore[arg-type]
    )


def partition(number: int = 0, topic_id: UUID = FOO, **more: object) -> PartitionRecord:
    fields: dict[str, object] = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1, "leader_epoch": 0}
    return PartitionRecord(partition_id=number, topic_id=topic_id, partition_epoch=0, **{**fields, **more})  # type: ignore[arg-type]


def change(number: int = 0, topic_id: UUID = FOO, **more: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=topic_id, **more)  # type: ignore[arg-type]


def image_of(*records: AnyRecord) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.replay(record)
    return image


def small() -> MetadataImage:
    return image_of(
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=30),
        register(1),
        register(2),
        TopicRecord(name="foo", topic_id=FOO),
        partition(0),
        partition(1, isr=(2, 3), leader=2),
        ConfigRecord(resource_type=TOPIC, resource_name="foo", name="retention.ms", value="5"),
        ProducerIdsRecord(next_producer_id=1000),
        RegisterControllerRecord(
            controller_id=9, incarnation_id=UUID(int=1), end_points=(ControllerEndpoint(name="C", host="h", port=1),)
        ),
        AccessControlEntryRecord(id=UUID(int=3)),
    )


# -- brokers ----------------------------------------------------------------------------------------------------------


def test_a_registration_is_taken_over_whole() -> None:
    broker = image_of(register(1)).brokers[1]
    assert (broker.id, broker.epoch, broker.rack, broker.fenced, broker.directories) == (1, 10, "r1", False, (D1,))
    assert broker.endpoints == (Endpoint("PLAIN", "h", 9092, 0),)
    assert broker.features == {METADATA_VERSION: (7, 30)}
    again = image_of(register(1), register(1, epoch=11, cordoned_log_dirs=(D1,))).brokers[1]
    assert (again.epoch, again.cordoned_directories) == (11, (D1,))


def test_rule_76_a_registration_change() -> None:
    image = image_of(register(1))
    image.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, fenced=1))
    assert image.brokers[1].fenced
    image.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, in_controlled_shutdown=1))
    assert image.brokers[1].fenced
    assert image.brokers[1].in_controlled_shutdown
    image.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, fenced=-1, log_dirs=(D2,)))
    assert not image.brokers[1].fenced
    assert not image.brokers[1].active  # still shutting down
    assert image.brokers[1].directories == (D2,)
    image.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, cordoned_log_dirs=(D2,)))
    assert image.brokers[1].cordoned_directories == (D2,)
    assert image.brokers[1].directories == (D2,)


def test_the_old_fencing_records_are_replayed() -> None:
    image = image_of(register(1), FenceBrokerRecord(id=1, epoch=10))
    assert image.brokers[1].fenced
    image.replay(UnfenceBrokerRecord(id=1, epoch=10))
    assert not image.brokers[1].fenced


def test_an_unregistered_broker_is_gone() -> None:
    assert image_of(register(1), UnregisterBrokerRecord(broker_id=1, broker_epoch=10)).brokers == {}


@pytest.mark.parametrize(
    ("directories", "asked", "online"),
    [
        ((D1,), D1, True),
        ((D1,), D2, False),
        ((D1,), UNASSIGNED_DIRECTORY, True),
        ((D1,), MIGRATING_DIRECTORY, True),
        ((D1,), LOST_DIRECTORY, False),
        ((), D2, True),
    ],
)
def test_rule_30_which_directories_are_online(directories: tuple[UUID, ...], asked: UUID, online: bool) -> None:
    record = register(1)
    record.log_dirs = directories
    assert image_of(record).brokers[1].has_online_directory(asked) is online


# -- topics and partitions --------------------------------------------------------------------------------------------


def test_topics_and_partitions_come_and_go() -> None:
    image = small()
    assert image.topic_ids == {"foo": FOO}
    assert image.partition(FOO, 1) == PartitionState(
        replicas=(1, 2, 3), isr=(2, 3), leader=2, directories=(MIGRATING_DIRECTORY,) * 3
    )
    assert image.partition(FOO, 2) is None
    assert image.partition(BAR, 0) is None
    image.replay(RemoveTopicRecord(topic_id=FOO))
    assert image.topics == {}
    assert image.topic("foo") is None
    assert (TOPIC, "foo") not in image.configs
    assert list(image.partitions_on(1)) == []
    image.replay(TopicRecord(name="foo", topic_id=BAR))
    assert image.topic_ids == {"foo": BAR}


def test_lookups_by_broker() -> None:
    image = small()
    assert list(image.partitions_in_isr(1)) == [(FOO, 0)]
    assert list(image.partitions_in_isr(3)) == [(FOO, 0), (FOO, 1)]
    assert list(image.partitions_on(1)) == [(FOO, 0), (FOO, 1)]
    assert list(image.partitions_led_by(2)) == [(FOO, 1)]
    assert image.leads_any(2)
    assert len(list(image.partitions_led_by(2))) == 1
    image.replay(change(1, leader=-1, isr=(), eligible_leader_replicas=(2,)))
    assert list(image.leaderless_partitions()) == [(FOO, 1)]
    assert list(image.partitions_in_elr(2)) == [(FOO, 1)]
    assert not image.leads_any(2)
    assert list(image.partitions_in_isr(3)) == [(FOO, 0)]


def test_rule_55_clearing_the_elr_counts_only_where_there_was_one() -> None:
    image = small()
    image.replay(change(0, isr=(1,), eligible_leader_replicas=(2, 3)))
    image.replay(ClearElrRecord(topic_name="foo"))
    state = image.topics[FOO].partitions[0]
    assert (state.elr, state.partition_epoch, state.leader_epoch) == ((), 2, 0)
    assert image.topics[FOO].partitions[1].partition_epoch == 0
    image.replay(change(1, isr=(), leader=-1, last_known_elr=(2,)))
    image.replay(ClearElrRecord())
    assert image.topics[FOO].partitions[1].last_known_elr == ()
    assert image.topics[FOO].partitions[0].partition_epoch == 2


def test_rule_55_clearing_the_elr_clears_its_index_too() -> None:
    image = small()
    image.replay(change(0, isr=(1,), eligible_leader_replicas=(2, 3)))
    image.replay(ClearElrRecord(topic_name="foo"))
    assert list(image.partitions_in_elr(2)) == []
    image.replay(RemoveTopicRecord(topic_id=FOO))  # Apache's controller crashed from here on
    assert list(image.partitions_in_elr(2)) == []


# -- configurations and the rest --------------------------------------------------------------------------------------


def config(kind: int, name: str, value: str | None, key: str = "min.insync.replicas") -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def test_configurations_are_set_and_deleted() -> None:
    image = image_of(config(TOPIC, "foo", "2"), config(TOPIC, "foo", "x", key="k"))
    assert image.topic_config("foo", "min.insync.replicas") == "2"
    image.replay(config(TOPIC, "foo", None))
    image.replay(config(TOPIC, "foo", None, key="k"))
    image.replay(config(TOPIC, "foo", None, key="was never there"))
    assert image.configs == {}


def test_rules_3_and_100_a_configuration_is_looked_up_topic_node_cluster_static() -> None:
    image = MetadataImage({"min.insync.replicas": "5"})
    assert image.resolved_config("foo", "min.insync.replicas", node_id=7) == "5"
    image.replay(config(BROKER, "", "4"))
    assert image.resolved_config("foo", "min.insync.replicas", node_id=7) == "4"
    image.replay(config(BROKER, "7", "3"))
    assert image.resolved_config("foo", "min.insync.replicas", node_id=7) == "3"
    assert image.resolved_config("foo", "min.insync.replicas") == "4"
    image.replay(config(TOPIC, "foo", "2"))
    assert image.resolved_config("foo", "min.insync.replicas", node_id=7) == "2"
    image.replay(config(BROKER, "", "60", key="log.retention.ms"))
    assert image.resolved_config("foo", "retention.ms", broker_key="log.retention.ms") == "60"
    assert MetadataImage().resolved_config("foo", "min.insync.replicas") is None


def test_rule_3_the_minimum_is_capped_by_the_replicas() -> None:
    image = small()
    assert image.effective_min_isr(FOO) == 1
    image.replay(config(TOPIC, "foo", "5"))
    assert image.effective_min_isr(FOO) == 3
    image.replay(change(1, replicas=(2, 3), isr=(2, 3)))
    assert image.effective_min_isr(FOO, 1) == 2
    assert image.effective_min_isr(FOO, 99) == 5
    image.replay(config(TOPIC, "foo", "many"))
    with pytest.raises(ImageError, match="many"):
        image.effective_min_isr(FOO)


def test_unclean_elections_are_off_unless_somebody_turned_them_on() -> None:
    key = "unclean.leader.election.enable"
    image = small()
    assert not image.unclean_election_enabled("foo")
    image.replay(config(BROKER, "7", "true", key))
    assert image.unclean_election_enabled("foo", 7)
    assert not image.unclean_election_enabled("foo")
    image.replay(config(TOPIC, "foo", "false", key))
    assert not image.unclean_election_enabled("foo", 7)


def test_features() -> None:
    image = MetadataImage()
    assert image.metadata_version == 7
    assert not image.elr_enabled
    image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=30))
    image.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
    assert image.metadata_version == 30
    assert image.elr_enabled
    image.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=0))
    assert image.features == {METADATA_VERSION: 30}


def test_quotas_of_clients() -> None:
    user, default = EntityData(entity_type="user", entity_name="u"), EntityData(entity_type="user", entity_name=None)
    client = EntityData(entity_type="client-id", entity_name="")
    image = image_of(
        ClientQuotaRecord(entity=(user,), key="a", value=1.0),
        ClientQuotaRecord(entity=(default,), key="a", value=2.0),
        ClientQuotaRecord(entity=(user, client), key="a", value=3.0),
    )
    before, delta = image.copy(), ImageDelta()
    image.replay(ClientQuotaRecord(entity=(client, user), key="b", value=4.0), delta)  # in another order, the same
    image.replay(ClientQuotaRecord(entity=(user,), key="a", remove=True), delta)
    assert delta.quotas
    assert image != before
    assert image.quotas.by_entity == {
        (("user", None),): {"a": 2.0},
        (("client-id", ""), ("user", "u")): {"a": 3.0, "b": 4.0},
    }
    assert from_records(to_records(image)) == image
    with pytest.raises(ImageError, match="no client quota a of"):
        image.replay(ClientQuotaRecord(entity=(user,), key="a", remove=True))


def test_the_last_record_of_a_token_is_the_token() -> None:
    image = image_of(DelegationTokenRecord(token_id="t"), DelegationTokenRecord(token_id="u"))
    later = DelegationTokenRecord(token_id="t", expiration_timestamp=9)
    copy = image.copy()
    image.replay(later)
    image.replay(RemoveDelegationTokenRecord(token_id="u"))
    assert image.tokens == {"t": later}
    assert copy != image
    assert set(copy.tokens) == {"t", "u"}


def test_a_user_has_one_credential_of_each_mechanism() -> None:
    first, other = UserScramCredentialRecord(name="u", mechanism=1), UserScramCredentialRecord(name="u", mechanism=2)
    image = image_of(first, other)
    assert image.scram == {("u", 1): first, ("u", 2): other}
    changed = UserScramCredentialRecord(name="u", mechanism=1, iterations=8192)
    copy = image.copy()
    image.replay(changed)
    image.replay(RemoveUserScramCredentialRecord(name="u", mechanism=2))
    assert image.scram == {("u", 1): changed}
    assert copy != image
    assert copy.scram[("u", 2)] == other


# -- what does not fit ------------------------------------------------------------------------------------------------

ILLEGAL: list[Callable[[], MetadataRecord]] = [
    lambda: register(-1),
    lambda: UnregisterBrokerRecord(broker_id=9, broker_epoch=10),
    lambda: UnregisterBrokerRecord(broker_id=1, broker_epoch=9),
    lambda: BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=9, fenced=1),
    lambda: BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, fenced=2),
    lambda: BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, in_controlled_shutdown=-1),
    lambda: FenceBrokerRecord(id=1, epoch=11),
    lambda: UnfenceBrokerRecord(id=8, epoch=10),
    lambda: RegisterControllerRecord(controller_id=-4),
    lambda: TopicRecord(name="foo", topic_id=BAR),
    lambda: TopicRecord(name="bar", topic_id=FOO),
    lambda: TopicRecord(name="bar", topic_id=UUID(int=0)),
    lambda: RemoveTopicRecord(topic_id=BAR),
    lambda: partition(0, BAR),
    lambda: partition(-1),
    lambda: partition(2, replicas=()),
    lambda: partition(2, replicas=(1, 1)),
    lambda: partition(2, leader=-2),
    lambda: partition(2, leader_recovery_state=7),
    lambda: partition(2, directories=(D1,)),
    lambda: PartitionRecord(partition_id=2, topic_id=FOO, replicas=(1,), isr=(1,), leader=1),
    lambda: change(2),
    lambda: change(0, BAR),
    lambda: change(0, replicas=(1, 1)),
    lambda: change(0, leader=-7),
    lambda: ClearElrRecord(topic_name="bar"),
    lambda: FeatureLevelRecord(name="x", feature_level=-1),
    lambda: ProducerIdsRecord(next_producer_id=1000),
    lambda: EndTransactionRecord(),
    lambda: AbortTransactionRecord(),
    lambda: RemoveAccessControlEntryRecord(id=UUID(int=4)),
    lambda: MetadataRecord(),
]


@pytest.mark.parametrize("make", ILLEGAL)
def test_a_record_that_does_not_fit_raises_and_changes_nothing(make: Callable[[], MetadataRecord]) -> None:
    image, untouched, delta = small(), small(), ImageDelta()
    with pytest.raises(ImageError):
        image.replay(make(), delta)
    assert image == untouched
    assert not delta
    assert list(image.partitions_in_isr(1)) == list(untouched.partitions_in_isr(1))


# -- transactions -----------------------------------------------------------------------------------------------------


def test_a_transaction_takes_effect_at_its_end() -> None:
    image, delta = small(), ImageDelta()
    image.replay(BeginTransactionRecord(name="t"), delta)
    image.replay(TopicRecord(name="bar", topic_id=BAR), delta)
    image.replay(partition(0, BAR), delta)
    assert "bar" not in image.topic_ids
    assert image.in_transaction
    assert not delta
    image.replay(EndTransactionRecord(), delta)
    assert image.partition(BAR, 0) is not None
    assert not image.in_transaction
    assert delta.created_topics == {BAR: "bar"}


def test_an_aborted_transaction_never_was() -> None:
    image = small()
    for record in (BeginTransactionRecord(), RemoveTopicRecord(topic_id=FOO), AbortTransactionRecord(reason="r")):
        image.replay(record)
    assert image == small()


def test_a_transaction_with_a_record_that_does_not_fit_changes_nothing() -> None:
    image = small()
    for record in (BeginTransactionRecord(), RemoveTopicRecord(topic_id=FOO), change(0, leader=2)):
        image.replay(record)
    with pytest.raises(ImageError):
        image.replay(EndTransactionRecord())
    assert image.in_transaction
    image.replay(AbortTransactionRecord())
    assert image == small()


def test_a_transaction_does_not_begin_within_another() -> None:
    image = image_of(BeginTransactionRecord())
    with pytest.raises(ImageError):
        image.replay(BeginTransactionRecord())


# -- copies and deltas ------------------------------------------------------------------------------------------------


def test_a_copy_goes_its_own_way() -> None:
    image, copy = small(), small().copy()
    assert copy == image
    for record in (
        change(0, leader=2, isr=(2,), eligible_leader_replicas=(1,)),
        config(TOPIC, "foo", "2"),
        RemoveAccessControlEntryRecord(id=UUID(int=3)),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=10),
    ):
        copy.replay(record)
    assert image == small()
    assert list(image.partitions_in_elr(1)) == []
    assert copy != image


def test_a_delta_has_what_was_before_the_batch() -> None:
    image, delta = small(), ImageDelta()
    before = image.topics[FOO].partitions[0]
    for record in (
        change(0, leader=2),
        change(0, leader=3),
        partition(2),
        register(2, epoch=20),
        config(TOPIC, "foo", "2"),
        FeatureLevelRecord(name=ELR_VERSION, feature_level=1),
        ProducerIdsRecord(next_producer_id=2000),
        RegisterControllerRecord(controller_id=8),
    ):
        image.replay(record, delta)
    assert delta.partitions == {FOO: {0: before, 2: None}}
    assert delta.brokers == {2: small().brokers[2]}
    assert delta.configs == {(TOPIC, "foo")}
    assert (delta.features, delta.producer_ids, delta.controllers) == ({ELR_VERSION}, True, {8})
    assert delta == delta_between(small(), image)


def test_local_changes_are_those_of_one_broker() -> None:
    image, delta = small(), ImageDelta()
    image.replay(change(0, replicas=(2, 3), isr=(2, 3), leader=2), delta)
    image.replay(change(1, isr=(2,)), delta)
    mine = list(local_changes(delta, image, 1))
    assert [(each.partition, each.after.replicas if each.after else None) for each in mine] == [
        (0, (2, 3)),
        (1, (1, 2, 3)),
    ]
    assert list(local_changes(delta, image, 9)) == []
    gone = ImageDelta()
    image.replay(change(1, replicas=(2, 3)), gone)
    image.replay(RemoveTopicRecord(topic_id=FOO), gone)
    dropped = list(local_changes(gone, image, 1))  # its replica of 1 goes, though the last record had moved it away
    assert [(each.partition, each.after) for each in dropped] == [(1, None)]
    assert gone.configs == {(TOPIC, "foo")}


def test_a_name_can_be_used_again_in_one_batch() -> None:
    image, delta = small(), ImageDelta()
    image.replay(RemoveTopicRecord(topic_id=FOO), delta)
    image.replay(TopicRecord(name="foo", topic_id=BAR), delta)
    image.replay(partition(0, BAR), delta)
    changes = list(local_changes(delta, image, 1))
    assert [(each.topic_id, each.after is None) for each in changes] == [(FOO, True), (FOO, True), (BAR, False)]
    brief = ImageDelta()
    image.replay(RemoveTopicRecord(topic_id=BAR), ImageDelta())
    image.replay(TopicRecord(name="foo", topic_id=FOO), brief)
    image.replay(RemoveTopicRecord(topic_id=FOO), brief)
    assert not brief


def test_delta_between_images_sees_deleted_topics() -> None:
    image = small()
    image.replay(RemoveTopicRecord(topic_id=FOO))
    delta = delta_between(small(), image)
    assert list(delta.deleted_topics) == [FOO]
    assert delta_between(image, small()).created_topics == {FOO: "foo"}
    assert not delta_between(small(), small())


def test_a_snapshot_tells_of_each_kind_of_change_that_records_tell_of() -> None:
    """A kind that is missing there is one that a broker does not obey after it has read a snapshot."""
    image, delta = small(), ImageDelta()
    for record in (
        RemoveTopicRecord(topic_id=FOO),
        TopicRecord(name="bar", topic_id=BAR),
        partition(0, BAR),
        register(2, epoch=20),
        RegisterControllerRecord(controller_id=8),
        config(BROKER, "", "2"),
        FeatureLevelRecord(name=ELR_VERSION, feature_level=1),
        ProducerIdsRecord(next_producer_id=2000),
        ClientQuotaRecord(entity=(EntityData(entity_type="user", entity_name="alice"),), key="a", value=1.0),
        RemoveAccessControlEntryRecord(id=UUID(int=3)),
    ):
        image.replay(record, delta)
    of_snapshot = delta_between(small(), image)
    for each in fields(ImageDelta):
        assert getattr(delta, each.name), f"no record of this test changes {each.name}"
        assert getattr(of_snapshot, each.name) == getattr(delta, each.name), each.name
    assert not delta_between(image, image.copy())
