"""Compacted topics in a cluster: which log is cleaned, when, and what clients and replicas see of it."""

from __future__ import annotations

import pytest

from tanist.broker.storage.cleaning import LogCleaner
from tanist.client.admin import TOPIC_RESOURCE
from tanist.events.coordination import CoordinatorLoaded
from tanist.events.storage import LogUncleanable
from tanist.log.cleaner.offset_checkpoint import CLEANER_OFFSET_CHECKPOINT
from tanist.log.log import Log
from tanist.sim.oracle import batch_bytes
from tanist.sim.world.scheduler import Process
from tanist.wire.batch import decode_batch, iterate_headers
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client, groups_cluster

QUICK = {"log.cleaner.backoff.ms": "500"}
COMPACT = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}


def records_of(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    found: list[tuple[int, bytes | None, bytes | None]] = []
    for view in batch_bytes(log, log.log_start_offset, log.log_end_offset):
        for at, header in iterate_headers(view):
            if header.base_offset >= (found[-1][0] if found else 0):
                batch = decode_batch(view[at : at + header.size_bytes])
                found += [(record.offset, record.key, record.value) for record in batch]
    return found


def cleaner(cluster: Cluster, node_id: int) -> LogCleaner:
    return cluster.node(node_id).components.housekeeping.cleaner


def fill(cluster: Cluster, topic: str, rounds: int = 4, keys: int = 3) -> None:
    """Each key once a round; the rounds lie in segments of their own."""
    for number in range(rounds):
        for key in range(keys):
            assert cluster.produce(topic, [b"%d" % number], key=b"k%d" % key).error_code == 0
        cluster.run(2_500)


def test_leader_and_followers_keep_the_latest_of_each_key() -> None:
    cluster = Cluster(config=QUICK)
    cluster.create_topic("t", config=COMPACT)
    fill(cluster, "t")
    cluster.until(lambda: all(cleaner(cluster, node_id).dropped_records >= 3 for node_id in (1, 2, 3)))
    leader = cluster.leader("t")
    assert leader is not None
    cluster.until(lambda: len(records_of(cluster.hosted("t")[leader].log)) <= 6)
    for hosted in cluster.hosted("t").values():
        found = records_of(hosted.log)
        assert [(key, value) for _, key, value in found[-3:]] == [(b"k0", b"3"), (b"k1", b"3"), (b"k2", b"3")]
        assert len(found) < 12
        assert hosted.log.log_end_offset == 12
    disk = cluster.host(leader).disk
    lines = disk.content(f"/data/{CLEANER_OFFSET_CHECKPOINT}").decode().splitlines()
    assert lines[:2] == ["0", "1"]
    topic, partition, offset = lines[2].split()
    assert (topic, partition) == ("t", "0")
    assert 3 <= int(offset) <= 12


def test_consumers_go_on_over_what_is_gone() -> None:
    cluster = Cluster(nodes=1, config=QUICK)
    cluster.create_topic("t", factor=1, config=COMPACT)
    fill(cluster, "t")
    log = cluster.hosted("t")[1].log
    cluster.until(lambda: len(records_of(log)) == 3 or cluster.run(1_000) is not None)
    kept = records_of(log)
    for offset in range(12):
        answer = cluster.fetch("t", offset)
        assert answer.error_code == 0
        first = next(
            (
                record.offset
                for at, header in iterate_headers(answer.records)
                for record in decode_batch(answer.records[at : at + header.size_bytes])
                if record.offset >= offset
            ),
            None,
        )
        assert first in {each[0] for each in kept if each[0] >= offset} | {None}


def test_a_new_replica_copies_what_is_left_and_catches_up() -> None:
    cluster = Cluster(config=QUICK)
    cluster.create_topic("t", config=COMPACT)
    cluster.host(3).kill()
    cluster.until(lambda: cluster.leader("t") in (1, 2) and len(cluster.hosted("t")) == 2)
    fill(cluster, "t", rounds=6)
    leader = cluster.leader("t")
    assert leader is not None
    cluster.until(lambda: cleaner(cluster, leader).dropped_records >= 9)
    cluster.host(3).start()
    state = cluster.hosted("t")[leader].leader
    assert state is not None
    cluster.until(lambda: 3 in state.isr)
    copied, original = cluster.hosted("t")[3].log, cluster.hosted("t")[leader].log
    assert copied.log_end_offset == original.log_end_offset
    assert copied.epochs.entries == original.epochs.entries
    assert {each[1:] for each in records_of(copied)} >= {(b"k0", b"5"), (b"k1", b"5"), (b"k2", b"5")}


def test_the_policy_may_change_at_any_time() -> None:
    cluster = Cluster(nodes=1, config=QUICK)
    cluster.create_topic("t", factor=1, config={**COMPACT, "cleanup.policy": "delete"})
    assert cluster.produce("t", [b"keyless"]).error_code == 0
    fill(cluster, "t", rounds=3)
    assert cleaner(cluster, 1).cleaned == 0
    cluster.configure(TOPIC_RESOURCE, "t", {"cleanup.policy": "compact"})
    cluster.until(lambda: cleaner(cluster, 1).cleaned > 0)
    log = cluster.hosted("t")[1].log
    assert records_of(log)[0][1] is not None, "a record without a key is nobody's latest"
    assert cluster.produce("t", [b"keyless"]).error_code == ErrorCode.INVALID_RECORD
    cluster.configure(TOPIC_RESOURCE, "t", {"cleanup.policy": "delete"})
    assert cluster.produce("t", [b"keyless"]).error_code == 0
    cleaned = cleaner(cluster, 1).cleaned
    fill(cluster, "t", rounds=3)
    assert cleaner(cluster, 1).cleaned == cleaned


def test_compact_delete_does_both() -> None:
    cluster = Cluster(nodes=1, config={**QUICK, "log.retention.check.interval.ms": "1000"})
    cluster.create_topic("t", factor=1, config={**COMPACT, "cleanup.policy": "compact,delete", "retention.ms": "20000"})
    fill(cluster, "t")
    cluster.until(lambda: cleaner(cluster, 1).dropped_records > 0)
    log = cluster.hosted("t")[1].log
    assert len(records_of(log)) >= 3
    cluster.run(25_000)
    assert log.log_start_offset >= 9
    assert cluster.produce("t", [b"v"], key=b"k").error_code == 0


def test_the_cleaner_can_be_switched_off_and_slowed() -> None:
    cluster = Cluster(nodes=1, config={**QUICK, "log.cleaner.enable": "false"})
    cluster.create_topic("t", factor=1, config=COMPACT)
    fill(cluster, "t")
    assert len(records_of(cluster.hosted("t")[1].log)) == 12
    slow = Cluster(nodes=1, config={**QUICK, "log.cleaner.io.max.bytes.per.second": "10"})
    slow.create_topic("t", factor=1, config=COMPACT)
    fill(slow, "t")
    assert cleaner(slow, 1).cleaned == 0, "300 bytes take half a minute"
    slow.until(lambda: cleaner(slow, 1).cleaned == 1, within_ms=200_000)


def test_a_damaged_log_is_said_and_left_alone_and_others_are_cleaned() -> None:
    cluster = Cluster(nodes=1, config={**QUICK, "log.cleaner.backoff.ms": "12000"})
    cluster.create_topic("bad", factor=1, config=COMPACT)
    cluster.create_topic("good", factor=1, config=COMPACT)
    for topic in ("bad", "good"):
        for _ in range(3):
            assert cluster.produce(topic, [b"v"], key=b"k").error_code == 0
    cluster.run(2_500)
    cluster.host(1).disk.corrupt("/data/bad-0/00000000000000000000.log", 66)
    cluster.until(lambda: cleaner(cluster, 1).failures == 1 and cleaner(cluster, 1).cleaned >= 1)
    assert [each.partition for each in cluster.seen(LogUncleanable)] == ["bad-0"]
    assert [each[0] for each in records_of(cluster.hosted("good")[1].log)] == [2]
    cluster.run(30_000)
    assert cleaner(cluster, 1).failures == 1


def test_a_checkpoint_of_another_log_is_put_right() -> None:
    """What was written of an earlier topic of this name must not make a part of this one look clean later."""
    cluster = Cluster(nodes=1, config=QUICK)
    path = f"/data/{CLEANER_OFFSET_CHECKPOINT}"
    cluster.host(1).disk.view(Process("before")).write_file(path, b"0\n1\nt 0 999\n")
    cluster.create_topic("t", factor=1, config=COMPACT)
    cluster.until(lambda: cluster.host(1).disk.content(path) == b"0\n1\nt 0 0\n")
    fill(cluster, "t")
    cluster.until(lambda: cleaner(cluster, 1).dropped_records > 0)


def test_a_checkpoint_that_cannot_be_read_makes_all_dirty() -> None:
    cluster = Cluster(nodes=1, config=QUICK)
    path = f"/data/{CLEANER_OFFSET_CHECKPOINT}"
    cluster.host(1).disk.view(Process("before")).write_file(path, b"0\n7\nt 0\n")
    cluster.create_topic("t", factor=1, config=COMPACT)
    fill(cluster, "t")
    cluster.until(lambda: cleaner(cluster, 1).dropped_records > 0)
    assert any("taken for dirty" in line for line in cluster.log)


def test_a_coordinator_that_takes_over_reads_little() -> None:
    cluster = groups_cluster(partitions=1, config=QUICK)
    cluster.create_topic("t")
    client = Client(cluster)
    assert client.commit(0) == 0
    quick = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
    cluster.configure(TOPIC_RESOURCE, "__consumer_offsets", quick)
    for offset in range(1, 121):
        assert client.commit(offset) == 0
        if offset % 30 == 0:
            cluster.run(3_000)
    assert client.commit(121) == 0
    first = client.coordinator()
    cluster.until(lambda: all(cleaner(cluster, node_id).dropped_records > 90 for node_id in (1, 2, 3)))
    cluster.host(first).kill()
    assert client.committed() == 121
    assert 0 < cluster.seen(CoordinatorLoaded)[-1].records < 40, "of 122"
    assert client.commit(122) == 0
    assert client.committed() == 122


def test_append_time_is_the_brokers_everywhere() -> None:
    cluster = Cluster()
    cluster.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
    before_ms = cluster.client.clock.wall_ms()
    stamped = []
    for number in range(3):
        answer = cluster.produce("t", [b"%d" % number], timestamp=17)
        assert answer.error_code == 0
        assert before_ms <= answer.log_append_time_ms <= before_ms + 60_000
        stamped.append(answer.log_append_time_ms)
        cluster.run(1_000)
    assert stamped == sorted(set(stamped))
    cluster.until(lambda: all(each.log.log_end_offset == 3 for each in cluster.hosted("t").values()))
    for hosted in cluster.hosted("t").values():
        times = []
        for view in batch_bytes(hosted.log, 0, 3):
            for at, header in iterate_headers(view):
                assert header.is_log_append_time
                times += [record.timestamp for record in decode_batch(view[at : at + header.size_bytes])]
        assert times == stamped
    for wanted, offset in [(0, 0), (stamped[1], 1), (stamped[1] + 1, 2), (stamped[2] + 1, -1)]:
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=(
                ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(partition_index=0, timestamp=wanted),)),
            ),
        )
        found = cluster.ask(request, 7, to=cluster.leader("t") or 1).topics[0].partitions[0]
        assert (found.error_code, found.offset) == (0, offset)
        if offset >= 0:
            assert found.timestamp == stamped[offset]


@pytest.mark.parametrize(("timestamp_from_now_ms", "error"), [(0, 0), (4_000_000, 32), (-6_000, 32)])
def test_times_that_are_too_far_away_are_refused(timestamp_from_now_ms: int, error: int) -> None:
    cluster = Cluster(nodes=1)
    limits = {"message.timestamp.before.max.ms": "5000", "message.timestamp.after.max.ms": "3600000"}
    cluster.create_topic("t", factor=1, config=limits)
    answer = cluster.produce("t", [b"v"], timestamp=cluster.client.clock.wall_ms() + timestamp_from_now_ms)
    assert answer.error_code == error
