"""Jepsen's test of Kafka ("Call me maybe: Kafka", 2013) on a live cluster, before KIP-966 and with it.

    python -m tests.stories.jepsen --writes 1000

Five brokers, one partition with five replicas. Numbers are written one at a time with acks=all. After half of them the
leader is isolated: the other four are paused, so that it is alone with its clients, and goes on. Then it is killed, and
the four are back. A tenth of the numbers is written after that. In the end the old leader returns, everything is read,
and what was acknowledged is compared with what is there.

Twice: with min.insync.replicas=1, without ELR and with unclean elections, which is what Jepsen met; and with
min.insync.replicas=2 and ELR, as a cluster of tanist is when nothing is said. What the old leader had alone is in its
salvage, and is put back.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field

from tanist.client.positions import EARLIEST, LATEST
from tanist.lab.history import Anomaly
from tanist.runtime.client import admin
from tanist.runtime.client.account import Account, compare, ranges
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.records import Producer, list_offset, read
from tanist.runtime.client.salvaged import by_partition, find_entries
from tanist.wire.batch import NewRecord
from tests.faults.history import Ack, Stored
from tests.faults.recorded import LOST, counted, judged
from tests.interop.cluster import interrupt_on_sigterm
from tests.stories.live import WAIT_S, Live

CONSEQUENCES = {LOST, Anomaly.LOST_WRITE, Anomaly.INCONSISTENT_OFFSETS, Anomaly.NONMONOTONIC_SEND}
"""What the history of a loss has: where the lost records stood, others stand that were sent later."""

TOPIC = "jepsen"
BROKERS = 5
LEADER = 1
FOLLOWERS = range(2, BROKERS + 1)
WRITES = 1000
REQUEST_TIMEOUT_MS = 3_000


@dataclass(frozen=True, slots=True)
class Setting:
    """How the cluster is set up."""

    name: str
    topic_config: Mapping[str, str]
    features: Mapping[str, int]


SETTINGS = {
    "before": Setting(
        "min.insync.replicas=1, unclean.leader.election.enable=true, without ELR",
        {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
        {"eligible.leader.replicas.version": 0},
    ),
    "kip966": Setting("min.insync.replicas=2, with ELR", {"min.insync.replicas": "2"}, {}),
}

CONFIG = {
    # The leader or the controller misses the four within two seconds.
    "replica.lag.time.max.ms": "1500",
    "broker.session.timeout.ms": "2500",
    "broker.heartbeat.interval.ms": "500",
}


@dataclass(slots=True)
class Outcome:
    """The numbers of one run."""

    setting: str
    writes: int
    seconds: float = 0.0
    acks: list[Ack] = field(default_factory=list)
    refused: int = 0
    """Writes that are known not to be in the log."""
    unknown: int = 0
    """Writes without an acknowledgement that may be there."""
    alone: int = 0
    """Writes that the isolated leader acknowledged."""
    before: Account[int] | None = None
    """The drain."""
    unacknowledged_found: int = 0
    salvaged: tuple[int, ...] = ()
    """Lost numbers that are in the salvage."""
    restored: Account[int] | None = None
    """After the merge-back."""
    violations: list[str] = field(default_factory=list)
    """Anomalies other than lost records and what follows from those."""

    @property
    def lost(self) -> int:
        return 0 if self.before is None else len(self.before.lost)

    def as_json(self) -> dict[str, object]:
        """All but the single acknowledgements."""
        return {key: value for key, value in asdict(self).items() if key != "acks"} | {"acknowledged": len(self.acks)}

    def __str__(self) -> str:
        if self.before is None or self.restored is None:
            raise ValueError("the run is not over")
        acknowledged = len(self.acks)
        lines = [
            f"{self.setting}",
            f"  {self.writes} writes in {self.seconds:.1f} s: {acknowledged} acknowledged, {self.alone} of them by the "
            f"isolated leader; {self.refused} refused, {self.unknown} without an answer",
            f"  {acknowledged - self.lost} survivors, {self.lost} acknowledged writes lost"
            + (f" ({ranges(self.before.lost)})" if self.lost else ""),
            f"  {self.unacknowledged_found} unacknowledged writes found",
            f"  {acknowledged / self.writes:.3f} ack rate, {self.lost / max(acknowledged, 1):.3f} loss rate",
            f"  in the salvage: {len(self.salvaged)} of the {self.lost}",
            f"  after the merge-back: {self.restored}",
        ]
        return "\n".join(lines + [f"  ! {violation}" for violation in self.violations])


def run(setting: Setting, writes: int) -> Outcome:
    outcome = Outcome(setting.name, writes)
    with Live(brokers=BROKERS, config=CONFIG, features=setting.features) as live:
        with closing(Client(live.addresses(), timeout_s=WAIT_S)) as client:
            admin.create_topic(
                client,
                TOPIC,
                partitions=-1,
                replication_factor=-1,
                assignment=[(LEADER, *FOLLOWERS)],
                config=setting.topic_config,
            )
        live.wait(TOPIC, lambda found: len(found[0].isr) == BROKERS, "all five in sync")
        began_s = time.monotonic()
        isolated_at, healed_at = writes // 2, writes - writes // 10
        with closing(Client(live.addresses([LEADER]), timeout_s=WAIT_S)) as client:
            _write(client, range(isolated_at), outcome)
            live.pause(FOLLOWERS)
            together = len(outcome.acks)
            _write(client, range(isolated_at, healed_at), outcome)
            outcome.alone = len(outcome.acks) - together
        live.cluster.crash(LEADER)
        live.resume(FOLLOWERS)
        live.wait(
            TOPIC,
            lambda found: found[0].leader in FOLLOWERS and len(found[0].isr) == BROKERS - 1,
            "another leader, and the rest in sync",
            asked=FOLLOWERS,
        )
        with closing(Client(live.addresses(FOLLOWERS), timeout_s=WAIT_S)) as client:
            _write(client, range(healed_at, writes), outcome)
        outcome.seconds = time.monotonic() - began_s
        live.cluster.start(LEADER)
        live.wait(TOPIC, lambda found: len(found[0].isr) == BROKERS, "the old leader in sync again")
        _settle(live, outcome)
    return outcome


def _write(client: Client, numbers: Sequence[int], outcome: Outcome) -> None:
    """One at a time, each tried once: as far as it was in doubt, it stays so."""
    producer = Producer(client, request_timeout_ms=REQUEST_TIMEOUT_MS)
    for number in numbers:
        record = NewRecord(time.time_ns() // 1_000_000, None, b"%d" % number)
        try:
            offset = producer.send(TOPIC, 0, [record], timeout_s=0.0)
        except KafkaError as error:
            if error.name == "NOT_ENOUGH_REPLICAS":
                outcome.refused += 1
            else:
                outcome.unknown += 1
        except Unreachable:
            outcome.unknown += 1
        else:
            outcome.acks.append(Ack(0, number, offset, time.monotonic()))


def _drain(live: Live) -> list[Stored]:
    with closing(Client(live.addresses(), timeout_s=WAIT_S)) as client:
        start, end = (list_offset(client, TOPIC, 0, where) for where in (EARLIEST, LATEST))
        return [Stored(record.offset, int(record.value or b"-1")) for record in read(client, TOPIC, 0, start, end)]


def _settle(live: Live, outcome: Outcome) -> None:
    """Drain, compare, look into the salvage, merge back, compare again."""
    acknowledged = [ack.number for ack in outcome.acks]
    log = _drain(live)
    outcome.before = compare(acknowledged, [stored.number for stored in log])
    verdict, printed = judged(TOPIC, outcome.acks, {0: log}, {0: outcome.writes})
    lost = counted(verdict, LOST)
    if lost != len(outcome.before.lost):
        outcome.violations.append(f"the checker finds {lost} lost records, the account {len(outcome.before.lost)}")
    allowed = CONSEQUENCES if lost else set()
    outcome.violations += [
        words for found, words in zip(verdict.findings, printed, strict=True) if found.anomaly not in allowed
    ]
    outcome.unacknowledged_found = len({stored.number for stored in log} - set(acknowledged))
    entries, complaints = find_entries(live.folder)
    outcome.violations += complaints
    saved = {int(each.record.value or b"-1") for partition in by_partition(entries) for each in partition.records()}
    outcome.salvaged = tuple(sorted(saved & set(outcome.before.lost)))
    if entries:
        command = [sys.executable, "-m", "tanist.cli.main", "salvage", "export", "--topic", TOPIC, "--to", "topic"]
        subprocess.run([*command, "--data", str(live.folder)], check=True, stdout=subprocess.DEVNULL)
    outcome.restored = compare(acknowledged, [stored.number for stored in _drain(live)])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stories.jepsen", description=__doc__.split("\n\n")[0])
    parser.add_argument("--writes", type=int, default=WRITES)
    parser.add_argument("--setting", action="append", choices=tuple(SETTINGS), help="may be given twice; default both")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    if chosen.writes < 20:
        parser.error("--writes: 20 at least")
    interrupt_on_sigterm()
    good = True
    for name in chosen.setting or SETTINGS:
        outcome = run(SETTINGS[name], chosen.writes)
        print(json.dumps(outcome.as_json()) if chosen.json else outcome, flush=True)
        restored = outcome.restored
        good = good and not outcome.violations and restored is not None and not restored.lost
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
