"""Read, process, write, exactly once, while leaders, coordinators and controllers are killed; and the account.

    python -m tests.faults.transaction_rounds --minutes 30 --kill-every 10
    python -m tests.faults.transaction_rounds --minutes 30 --kill-every 10 --target apache --lose 0

Three brokers that are controllers too. A load writes to one topic; workers (`transaction_worker`, members of one group)
copy it to another in transactions, of which some are aborted on purpose. Every few seconds the leader of a partition,
the coordinator of a transaction or of the group, or the active controller gets SIGKILL; of tanist, one in five loses
its page cache besides. It is started again, and the next is killed no sooner than all replicas are in sync. At the end
the workers finish the rest. Judged by what a reader of committed records gets:

* every record of the input is in the output, once;
* every transaction is there as a whole, or not at all;
* of the input, nothing that was acknowledged is lost (`tests.faults.recorded`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients import install
from tests.faults.history import Spread
from tests.faults.load import Load, read_all, read_to_end
from tests.faults.recorded import judged
from tests.interop import target as targets
from tests.interop.cluster import (
    Cluster,
    active_controller,
    interrupt_on_sigterm,
    metadata,
    wait_in_sync,
    wait_ready,
)
from tests.interop.tanist_cluster import CommandFailed, TanistCluster, tanist
from tests.interop.waiting import NeverCame, wait_for

INPUT, OUTPUT, GROUP = "input", "output", "copiers"
PARTITIONS = 6
WORKER = Path(__file__).with_name("transaction_worker.py")
DOWN_S = 2.0
"""How long a killed node stays down."""
RECOVERY_S = 120.0
DRAIN_S = 300.0
END_S = 90.0
ABORT_SHARE = 0.1
INTERNAL = {"transactions": "__transaction_state", "group": "__consumer_offsets"}
VICTIMS = ("input", "output", *INTERNAL, "controller")
PROPERTIES = {
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "500",
}


@dataclass(slots=True)
class Account:
    """What came of it."""

    target: str
    seconds: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    """By what the victim was."""
    power_losses: int = 0
    in_sync_s: list[float] = field(default_factory=list)
    workers: Counter[str] = field(default_factory=Counter)
    input: int = 0
    copied: int = 0
    transactions: int = 0
    drained_s: float = -1.0
    violations: list[str] = field(default_factory=list)

    def judge(self, source: dict[int, list[int]], copies: Sequence[tuple[str, str]]) -> None:
        """`source`: the offsets of each partition's records. `copies`: keys and values of the output's."""
        wanted = {f"{partition}/{offset}" for partition, offsets in source.items() for offset in offsets}
        found = Counter(key for key, _ in copies)
        sizes: dict[str, int] = {}
        present: Counter[str] = Counter()
        for _, value in copies:
            tag, size = value.split()
            sizes[tag] = int(size)
            present[tag] += 1
        self.input, self.copied, self.transactions = len(wanted), len(copies), len(sizes)
        self._report("are missing", [key for key in wanted if key not in found])
        self._report("are there more than once", [key for key, count in found.items() if count > 1])
        self._report("were never written", [key for key in found if key not in wanted])
        self._report("transactions are torn", [tag for tag, size in sizes.items() if present[tag] != size])

    def _report(self, what: str, found: list[str]) -> None:
        if found:
            self.violations.append(f"{len(found)} {what}: {', '.join(sorted(found)[:10])}")

    def __str__(self) -> str:
        kills = ", ".join(f"{count} {what}" for what, count in sorted(self.kills.items()))
        lines = [
            f"{self.target}: {self.seconds / 60:.1f} minutes, {self.kills.total()} nodes killed ({kills}), "
            f"{self.power_losses} of them lost their page cache",
            f"  in sync again, s after the kill: {Spread.of(self.in_sync_s) if self.in_sync_s else '-'}",
            f"  workers: {', '.join(f'{what} {count}' for what, count in sorted(self.workers.items()))}",
            f"  {self.input} records in, {self.copied} out in {self.transactions} transactions, "
            f"the last {self.drained_s:.1f} s after the load ended; violations {len(self.violations)}",
        ]
        return "\n".join(lines + [f"  ! {violation}" for violation in self.violations])


def victim_of(cluster: Cluster, what: str, rng: random.Random) -> int:
    """The node that has this part now; -1 if none has."""
    if what == "controller":
        return active_controller(cluster)
    topic = INTERNAL.get(what, what)
    leaders = metadata(cluster, cluster.node_ids[0], (topic,)).leaders(topic)
    return rng.choice(sorted(leaders.values())) if leaders else -1


def kill(cluster: Cluster, node_id: int, *, power: bool) -> None:
    if power and isinstance(cluster, TanistCluster):
        tanist("crash", str(node_id), "--lose", "page-cache", "--data", str(cluster.directory))
    else:
        cluster.kill_node(node_id)


def strikes(cluster: Cluster, account: Account, *, seconds: float, every_s: float, lose: float, seed: int) -> None:
    """One node after the other, until the time is up."""
    rng = random.Random(seed)
    began_s = time.monotonic()
    number = 0
    while time.monotonic() - began_s < seconds:
        struck_s = time.monotonic()
        what = VICTIMS[number % len(VICTIMS)]
        node_id = victim_of(cluster, what, rng)
        number += 1
        if node_id < 0:
            continue
        power = rng.random() < lose
        kill(cluster, node_id, power=power)
        account.kills[what] += 1
        account.power_losses += power
        time.sleep(DOWN_S)
        cluster.start_node(node_id)
        wait_ready(cluster, timeout_s=RECOVERY_S)
        for topic in (INPUT, OUTPUT, *INTERNAL.values()):
            wait_in_sync(cluster, topic, timeout_s=RECOVERY_S)
        account.in_sync_s.append(time.monotonic() - struck_s)
        time.sleep(max(0.0, min(struck_s + every_s, began_s + seconds) - time.monotonic()))
    account.seconds = time.monotonic() - began_s


def create_topics(cluster: Cluster) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topics = [NewTopic(name, PARTITIONS, 3, config={"min.insync.replicas": "2"}) for name in (INPUT, OUTPUT)]
    for future in admin.create_topics(topics).values():
        future.result(30)
    for name in (INPUT, OUTPUT):
        wait_in_sync(cluster, name)


def start_worker(cluster: Cluster, number: int, log: Any) -> subprocess.Popen[str]:
    arguments = [cluster.bootstrap, f"worker-{number}", INPUT, OUTPUT, GROUP, str(ABORT_SHARE)]
    return subprocess.Popen(
        [sys.executable, str(WORKER), *arguments],
        env=os.environ | {"PYTHONPATH": str(install.install())},
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )


class Workers:
    """The worker processes, each started again when it ends, as a service manager does."""

    def __init__(self, cluster: Cluster, count: int, log: Any) -> None:
        self._cluster = cluster
        self._log = log
        self._processes = {number: start_worker(cluster, number, log) for number in range(count)}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="workers", daemon=True)
        self.counts: Counter[str] = Counter()
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopping.wait(1.0):
            for number, process in self._processes.items():
                if process.poll() is not None:
                    self.counts["processes started again"] += 1
                    self._processes[number] = start_worker(self._cluster, number, self._log)

    def end(self) -> None:
        """Let them end, and add up their counts."""
        self._stopping.set()
        self._thread.join()
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                printed, _ = process.communicate(timeout=END_S)
            except subprocess.TimeoutExpired:
                self.counts["processes that did not end"] += 1
                continue
            if not process.returncode:
                self.counts += Counter(json.loads(printed.splitlines()[-1]))

    def kill(self) -> None:
        """Whatever has happened."""
        self._stopping.set()
        self._thread.join()
        for process in self._processes.values():
            process.kill()
            process.wait()


def backlog(cluster: Cluster) -> dict[int, tuple[int, int]]:
    """What the group has not committed of the input: committed offset and end, by partition. Raises KafkaException."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP, "enable.auto.commit": False})
    found: dict[int, tuple[int, int]] = {}
    try:
        places = [TopicPartition(INPUT, partition) for partition in range(PARTITIONS)]
        for each in consumer.committed(places, timeout=10.0):
            if each.error is not None:
                raise KafkaException(each.error)
            committed, end = max(each.offset, 0), consumer.get_watermark_offsets(each, timeout=10.0)[1]
            if committed < end:
                found[each.partition] = committed, end
    finally:
        consumer.close()
    return found


def drained(cluster: Cluster) -> bool:
    """Whether the group has committed all of the input."""
    from confluent_kafka import KafkaException

    try:
        return not backlog(cluster)
    except KafkaException:
        return False


def stuck(cluster: Cluster) -> str:
    """Why the copy does not end: what is not committed, and the transactions that are open."""
    from confluent_kafka import KafkaException

    try:
        left = ", ".join(f"{partition} at {at} of {end}" for partition, (at, end) in backlog(cluster).items())
    except KafkaException as error:
        left = f"the group's offsets cannot be read: {error}"
    try:
        ids = tanist("transactions", "list", "--bootstrap", cluster.bootstrap)
        hanging = tanist("transactions", "find-hanging", "--bootstrap", cluster.bootstrap, "--topic", OUTPUT)
    except CommandFailed as error:
        ids, hanging = str(error), ""
    return f"not copied to the end within {DRAIN_S:g} s: {left}\n{ids}{hanging}"


def run(
    cluster: Cluster,
    *,
    seconds: float,
    workers: int = 3,
    rate: float = 200.0,
    kill_every_s: float = 10.0,
    lose: float = 0.2,
    seed: int = 1,
) -> Account:
    """All of it, on a cluster that is up."""
    account = Account(cluster.name)
    create_topics(cluster)
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        copiers = Workers(cluster, workers, log)
        stack.callback(copiers.kill)
        load = Load(cluster, INPUT, PARTITIONS, rate)
        load.start()
        try:
            for topic in INTERNAL.values():
                wait_in_sync(cluster, topic)
            strikes(cluster, account, seconds=seconds, every_s=kill_every_s, lose=lose, seed=seed)
        except BaseException:
            load.abandon()
            raise
        load.stop()
        ended_s = time.monotonic()
        try:
            wait_for(lambda: drained(cluster), "the workers have copied everything", timeout_s=DRAIN_S)
        except NeverCame:
            account.violations.append(stuck(cluster))
        account.drained_s = time.monotonic() - ended_s
        copiers.end()
        account.workers = copiers.counts
    for topic in (INPUT, OUTPUT):
        wait_in_sync(cluster, topic)
    source = read_all(cluster, INPUT, PARTITIONS)
    _, anomalies = judged(INPUT, load.acks, source, load.sent)
    account.violations += anomalies
    offsets = {partition: [each.offset for each in stored] for partition, stored in source.items()}
    copies = read_to_end(cluster, OUTPUT, PARTITIONS)
    account.judge(offsets, [(each.key().decode(), each.value().decode()) for each in copies])
    return account


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.transaction_rounds", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--target", choices=targets.TARGETS, default="tanist")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--rate", type=float, default=200.0, help="records a second")
    parser.add_argument("--kill-every", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--lose", type=float, default=0.2, metavar="SHARE", help="of the kills: a loss of power")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    chosen = parser.parse_args(arguments)
    interrupt_on_sigterm()
    install.activate()
    print(f"seed {chosen.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="transaction-rounds-") as folder:
        cluster = targets.make(chosen.target, Path(folder), properties=PROPERTIES)
        try:
            cluster.start()
            account = run(
                cluster,
                seconds=chosen.minutes * 60,
                workers=chosen.workers,
                rate=chosen.rate,
                kill_every_s=chosen.kill_every,
                lose=chosen.lose,
                seed=chosen.seed,
            )
        finally:
            cluster.stop()
    print(account, flush=True)
    return 1 if account.violations else 0


if __name__ == "__main__":
    sys.exit(main())
