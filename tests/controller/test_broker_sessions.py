"""Sessions of brokers, and fencing in parts (rules 78, 94-97)."""

from __future__ import annotations

import pytest

from tanist.controller.features import Bootstrap
from tanist.wire.metadata import BrokerRegistrationChangeRecord
from tests.controller.controller_double import Cluster, registration_error, three_brokers

ELR = "eligible.leader.replicas.version"


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
    cluster = three_brokers()
    cluster.advance(8000, beating=(2, 3))
    cluster.controller.contact(1, cluster.image.brokers[1].epoch, cluster.now_ms)
    cluster.advance(2000, beating=(2, 3))
    assert not cluster.image.brokers[1].fenced


def test_rule_94_strangers_and_former_lives_leave_no_trace() -> None:
    cluster = three_brokers()
    table = cluster.controller._heartbeats
    cluster.controller.contact(9, 1, cluster.now_ms)
    cluster.controller.contact(1, 10_000, cluster.now_ms + 5)
    assert set(table._sessions) == {1, 2, 3}
    assert table.contact_time_ms(1, cluster.image.brokers[1].epoch) == cluster.now_ms


def test_rule_95_unfenced_brokers_start_afresh_with_a_new_controller() -> None:
    cluster = three_brokers()
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
    cluster = three_brokers()
    epoch = cluster.image.brokers[1].epoch
    cluster.advance(9001, beating=(2, 3))
    assert cluster.image.brokers[1].fenced
    since = len(cluster.log)
    assert not cluster.heartbeat(1).is_fenced
    assert cluster.image.brokers[1].epoch == epoch
    assert cluster.written(since) == ["BrokerRegistrationChangeRecord"]


def test_broker_lost_fences_at_once_and_only_that_incarnation() -> None:
    cluster = three_brokers()
    epoch = cluster.image.brokers[1].epoch
    assert cluster.controller.fencing.fence(cluster.image, 1, epoch - 1) is None
    assert cluster.controller.fencing.fence(cluster.image, 9, 1) is None
    decision = cluster.controller.fencing.fence(cluster.image, 1, epoch)
    assert decision is not None
    cluster.commit(decision)
    assert cluster.image.brokers[1].fenced
    assert cluster.partition("foo").leader == 2
    assert cluster.controller.fencing.fence(cluster.image, 1, epoch) is None  # it is fenced
    assert registration_error(cluster) == "NONE"  # and its next life may register


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
    assert registration_error(cluster) == "NONE"  # its next life may register


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
    cluster = three_brokers()
    for broker_id in (1, 2, 3):
        cluster.heartbeat(broker_id, want_fence=True)
    assert cluster.partition("foo").leader == -1
    since = len(cluster.log)
    cluster.heartbeat(2)
    assert cluster.written(since) == ["BrokerRegistrationChangeRecord", "PartitionChangeRecord"]
    assert cluster.partition("foo").leader == 2
