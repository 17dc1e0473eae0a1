"""AllocateProducerIds: blocks of a thousand that never overlap."""

from __future__ import annotations

from tanist.wire.errors import ErrorCode
from tanist.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from tanist.wire.metadata import ProducerIdsRecord
from tests.controller.controller_double import Cluster


def _allocate(cluster: Cluster, broker_id: int, epoch: int | None = None) -> tuple[int, int, int]:
    if epoch is None:
        epoch = cluster.image.brokers[broker_id].epoch
    answer = cluster.ask(AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch))
    return answer.error_code, answer.producer_id_start, answer.producer_id_len


def test_blocks_follow_each_other_and_are_in_the_log_before_the_answer() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    assert _allocate(cluster, 1) == (ErrorCode.NONE, 0, 1000)
    assert _allocate(cluster, 2) == (ErrorCode.NONE, 1000, 1000)
    assert cluster.log[-1] == ProducerIdsRecord(
        broker_id=2, broker_epoch=cluster.image.brokers[2].epoch, next_producer_id=2000
    )
    assert cluster.standby.next_producer_id == 2000


def test_a_stale_broker_gets_none() -> None:
    cluster = Cluster()
    cluster.start(1)
    before = len(cluster.log)
    assert _allocate(cluster, 1, epoch=99)[0] == ErrorCode.STALE_BROKER_EPOCH
    assert _allocate(cluster, 7, epoch=1)[0] == ErrorCode.STALE_BROKER_EPOCH
    assert len(cluster.log) == before


def test_ids_run_out_before_they_overflow() -> None:
    cluster = Cluster()
    cluster.start(1)
    last = (1 << 63) - 1
    cluster.image.replay(ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=last - 1000))
    cluster.standby.replay(ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=last - 1000))
    assert _allocate(cluster, 1) == (ErrorCode.NONE, last - 1000, 1000)
    assert _allocate(cluster, 1)[0] == ErrorCode.UNKNOWN_SERVER_ERROR
