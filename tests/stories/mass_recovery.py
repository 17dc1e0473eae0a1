"""A thousand partitions without a leader: how long their recovery takes once it can begin.

    python -m tests.stories.mass_recovery --runs 3

Three brokers, three controllers; each partition has three replicas and min.insync.replicas=2. All brokers lose power,
one after the other, and every record with it that was not on disk. Two return, and nobody is elected: the third may
have more. Then that one returns, ISR and ELR are empty, and every log is compared (Balanced).

The clock of the metadata log counts: from the record that unfences the last broker to the last record that names a
leader. Besides: when the brokers tell their clients of all leaders, by this program's clock.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tanist.runtime.client import admin
from tanist.runtime.client.admin import PartitionDescription
from tanist.runtime.client.client import Client
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.layout import node_folder
from tanist.wire.batch import NewRecord, decode_batch, iterate_batches
from tanist.wire.ids import METADATA_TOPIC
from tanist.wire.metadata import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    UnfenceBrokerRecord,
    decode_record,
)
from tests.interop.cluster import interrupt_on_sigterm
from tests.stories.live import WAIT_S, Live

TOPIC = "many"
PARTITIONS = 1000
BROKERS = (1, 2, 3)
RUNS = 3
MOST_S = 5.0
"""What is promised."""

_UNFENCED = -1


@dataclass(frozen=True, slots=True)
class Recovery:
    """One recovery, as measured."""

    partitions: int
    unclean: int
    """Elected by an unclean recovery: all that lost records need one."""
    first_s: float
    last_s: float
    """From the unfencing of the last broker to the records of the first and the last election."""
    reported_s: float
    """To the moment at which all brokers were found to tell of leaders for all."""

    def __str__(self) -> str:
        return (
            f"{self.partitions} partitions, {self.unclean} of them recovered uncleanly: the first has a leader after "
            f"{self.first_s:.3f} s, the last after {self.last_s:.3f} s; brokers know all after {self.reported_s:.3f} s"
        )


def run(partitions: int = PARTITIONS) -> Recovery:
    with Live(brokers=len(BROKERS)) as live:
        with closing(Client(live.addresses(), timeout_s=WAIT_S)) as client:
            admin.create_topic(
                client, TOPIC, partitions=partitions, replication_factor=3, config={"min.insync.replicas": "2"}
            )
        live.wait(TOPIC, lambda found: all(len(each.isr) == 3 for each in found), "all partitions in sync")
        with closing(Client(live.addresses(), timeout_s=WAIT_S)) as client:
            producer = Producer(client)
            for partition in range(partitions):
                producer.send(TOPIC, partition, [NewRecord(time.time_ns() // 1_000_000, None, b"%d" % partition)])
        *others, last = BROKERS
        for broker_id in others:
            live.cluster.crash(broker_id, lose_page_cache=True)
            staying = [broker for broker in BROKERS if broker > broker_id]
            live.wait(TOPIC, partial(_led_without, broker_id), f"broker {broker_id} out of all ISRs", asked=staying)
        live.cluster.crash(last, lose_page_cache=True)
        for broker_id in others:
            live.cluster.start(broker_id)
        live.wait(TOPIC, lambda found: all(each.leader < 0 for each in found), "nobody leads", asked=others)
        live.cluster.start(last)
        live.wait(TOPIC, lambda found: all(each.leader >= 0 for each in found), "all have leaders")
        reported_ms = time.time_ns() // 1_000_000
        return _measured(live, last, partitions, reported_ms)


def _led_without(broker_id: int, found: Sequence[PartitionDescription]) -> bool:
    return all(broker_id not in each.isr and each.leader >= 0 for each in found)


def _measured(live: Live, last: int, partitions: int, reported_ms: int) -> Recovery:
    history = list(_metadata(live))
    unfenced = max(at for at, (_, record) in enumerate(history) if _unfences(record, last))
    began_ms = history[unfenced][0]
    elections: dict[int, tuple[int, bool]] = {}
    for at_ms, record in history[unfenced + 1 :]:
        if isinstance(record, PartitionChangeRecord) and record.leader >= 0:
            elections.setdefault(record.partition_id, (at_ms, record.leader_recovery_state == 1))
    if len(elections) != partitions:
        raise RuntimeError(
            f"{len(elections)} of {partitions} partitions were given a leader after the last broker came"
        )
    times_s = [(at_ms - began_ms) / 1000 for at_ms, _ in elections.values()]
    return Recovery(
        partitions=partitions,
        unclean=sum(unclean for _, unclean in elections.values()),
        first_s=min(times_s),
        last_s=max(times_s),
        reported_s=(reported_ms - began_ms) / 1000,
    )


def _metadata(live: Live) -> Iterator[tuple[int, MetadataRecord]]:
    """Every record of the metadata log and when it was appended, as the controller that has most of it has them."""
    folders = [node_folder(live.folder, node.node_id) for node in load_existing(live.folder).controllers]
    logs = [sorted(folder.glob(f"data/{METADATA_TOPIC}-0/*.log")) for folder in folders]
    for path in max(logs, key=lambda paths: sum(path.stat().st_size for path in paths)):
        yield from _records(path)


def _records(path: Path) -> Iterator[tuple[int, MetadataRecord]]:
    for header, batch in iterate_batches(path.read_bytes()):
        if header.is_control:
            continue
        for record in decode_batch(batch):
            yield record.timestamp, decode_record(record.value or b"")


def _unfences(record: MetadataRecord, broker_id: int) -> bool:
    if isinstance(record, UnfenceBrokerRecord):
        return record.id == broker_id
    if isinstance(record, BrokerRegistrationChangeRecord):
        return record.broker_id == broker_id and record.fenced == _UNFENCED
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stories.mass_recovery", description=__doc__.split("\n\n")[0])
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--runs", type=int, default=RUNS)
    chosen = parser.parse_args(arguments)
    interrupt_on_sigterm()
    good = True
    for _ in range(chosen.runs):
        recovery = run(chosen.partitions)
        print(recovery, flush=True)
        good = good and max(recovery.last_s, recovery.reported_s) < MOST_S
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
