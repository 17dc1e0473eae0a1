"""Many members of many groups, while the brokers that coordinate them are killed and started again; and the account.

    python -m tests.faults.group_rounds --minutes 5 --members 200 --groups 20 --kill-every 10

Three brokers, a topic of as many partitions as twice a group has members. Half of the groups are of the classic
protocol, half of the consumer protocol (KIP-848); their members are those of the simulator
(`tanist.sim.workload.group_members`) on real sockets, all in this process, and commit all the time. Every few seconds
a broker that leads a partition of `__consumer_offsets` gets SIGKILL, and is started again. Judged, as members hear of
it:

* an acknowledged commit, or a newer one, is returned afterwards: committed offsets never go back;
* no two members have a partition in one generation, or member epoch;
* in the end every partition has one owner, whose commits succeed.

There is nobody here who could read the log at each moment, as in the simulator, so what is late is judged with care: a
commit whose answer never came may overtake a later one of the same member, over another connection.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tanist.client.topic_partition import TopicPartition
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.network import SocketNetwork
from tanist.sim.workload.group_client import ClientContext, GroupPartition, Offsets, OffsetWatcher, Witness
from tanist.sim.workload.group_members import SimGroupMember
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tests.interop.cluster import Cluster, interrupt_on_sigterm, metadata, wait_in_sync, wait_ready
from tests.interop.raw import RawClient
from tests.interop.tanist_cluster import TanistCluster

TOPIC = "shared"
SETTLE_S = 120.0
DOWN_S = 2.0
"""How long a killed broker stays down."""
SESSION_MS = 10_000
COMMIT_PAUSE_MS = 1_000
WATCH_PAUSE_MS = 1_000
"""Of those who ask from outside, again and again, what each group has committed."""
PROPERTIES = {
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "500",
    "offsets.topic.num.partitions": "6",
    "min.insync.replicas": "2",
}


@dataclass(slots=True)
class ReportedCommit:
    """The newest reported commit of one partition."""

    offset: int
    tag: str


@dataclass(slots=True)
class Account(Witness):
    """The `Witness` of all members, and what it has to say in the end."""

    members: dict[str, SimGroupMember] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    victims: Counter[int] = field(default_factory=Counter)
    """How often each broker was killed."""
    settled_s: float = -1.0
    unsettled: list[str] = field(default_factory=list)
    _reported: dict[GroupPartition, ReportedCommit] = field(default_factory=dict)
    _authors: dict[str, str] = field(default_factory=dict)
    _succeeded: set[str] = field(default_factory=set)
    _generations: dict[tuple[GroupPartition, int], str] = field(default_factory=dict)

    # -- Witness

    def assigned(
        self,
        client: str,
        group: str,
        member_id: str,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        classic: bool,
    ) -> None:
        self.counts["assignments received"] += 1
        for partition in partitions:
            group_partition = (group, *partition)
            for other in self.members.values():
                if other.group == group and other.name != client and partition in other.owned and other.epoch == epoch:
                    self.violations.append(f"{group_partition} is {client}'s and {other.name}'s in epoch {epoch}")
            if classic:
                owner = self._generations.setdefault((group_partition, epoch), member_id)
                if owner != member_id:
                    self.violations.append(f"{group_partition} is {owner}'s and {member_id}'s in generation {epoch}")

    def revoked(self, client: str, group: str, partitions: Iterable[TopicPartition]) -> None:
        self.counts["partitions given up"] += len(list(partitions))

    def asks(self, group: str) -> Mapping[GroupPartition, ReportedCommit]:
        return {
            group_partition: ReportedCommit(known.offset, known.tag)
            for group_partition, known in self._reported.items()
            if group_partition[0] == group
        }

    def fetched(
        self, client: str, group: str, asked: Mapping[GroupPartition, ReportedCommit], offsets: Offsets
    ) -> None:
        self.counts["offsets returned"] += 1
        for partition, (offset, tag) in offsets.items():
            group_partition = (group, *partition)
            least = asked.get(group_partition)
            if least is not None and offset < least.offset and not self._overtaken(tag, least.tag):
                self.violations.append(
                    f"{group_partition}: {client} got {offset} ({tag or 'nothing'}) after {least.offset} ({least.tag})"
                )
            elif offset >= 0:
                self._hears(group_partition, offset, tag)

    def commits(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        self._authors[tag] = client

    def committed(self, client: str, group_partition: GroupPartition, offset: int, tag: str) -> None:
        self.counts["commits acknowledged"] += 1
        self._succeeded.add(tag)
        self._hears(group_partition, offset, tag)

    def _overtaken(self, tag: str, newer: str) -> bool:
        """Whether the commit may have come behind a later one of the same member: its answer was never heard."""
        return tag not in self._succeeded and tag != "" and self._authors.get(tag) == self._authors.get(newer)

    def _hears(self, group_partition: GroupPartition, offset: int, tag: str) -> None:
        known = self._reported.get(group_partition)
        if known is None or offset > known.offset:
            self._reported[group_partition] = ReportedCommit(offset, tag)

    # -- at the end

    def read(self, groups: Sequence[str], partitions: int) -> bool:
        """Whether every partition has one owner with acknowledged commits; the others are in `unsettled`."""
        self.unsettled = []
        for group in groups:
            members = [member for member in self.members.values() if member.group == group]
            for index in range(partitions):
                owners = [member for member in members if (TOPIC, index) in member.owned]
                if len(owners) != 1 or not owners[0].reported_commits.get((TOPIC, index)):
                    names = ", ".join(owner.name for owner in owners) or "nobody"
                    self.unsettled.append(f"{TOPIC}-{index} of {group} is {names}'s")
        return not self.unsettled

    @property
    def passed(self) -> bool:
        return not self.violations and not self.unsettled

    def __str__(self) -> str:
        refused: Counter[str] = Counter()
        for member in self.members.values():
            refused.update({ErrorCode(error).name: count for error, count in member.errors.items()})
        counted = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        lines = [
            f"{len(self.members)} members, {self.kills} coordinators killed: {counted}",
            f"  refused: {', '.join(f'{name} {count}' for name, count in refused.most_common()) or 'nothing'}",
            f"  violations {len(self.violations)}; settled {self.settled_s:.1f} s after the last broker was back"
            if not self.unsettled
            else f"  violations {len(self.violations)}; NOT SETTLED: {'; '.join(self.unsettled[:5])}",
        ]
        return "\n".join(lines + [f"  ! {violation}" for violation in self.violations[:20]])


class Killer(threading.Thread):
    """Kills coordinators and starts them again, one at a time: no sooner than the one before is back and in sync."""

    def __init__(self, cluster: Cluster, every_s: float, seed: int, done: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._every_s = every_s
        self._rng = random.Random(seed)
        self._done = done
        self._ended = threading.Event()
        self.victims: Counter[int] = Counter()
        self.failure: BaseException | None = None

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        try:
            killed_s = time.monotonic()
            while not self._ended.wait(max(0.0, killed_s + self._every_s - time.monotonic())):
                killed_s = time.monotonic()
                self._kill_one()
        except BaseException as failure:
            self.failure = failure
        finally:
            self._done()

    def _kill_one(self) -> None:
        cluster = self._cluster
        leaders = metadata(cluster, cluster.node_ids[0], (OFFSETS_TOPIC,)).leaders(OFFSETS_TOPIC)
        coordinators = sorted({leader for leader in leaders.values() if leader >= 0})
        # Each of them in turn, as far as they coordinate: a short run leaves none out.
        seldom = min(self.victims[each] for each in coordinators)
        victim = self._rng.choice([each for each in coordinators if self.victims[each] == seldom])
        cluster.kill_node(victim)
        self.victims[victim] += 1
        self._ended.wait(DOWN_S)
        cluster.start_node(victim)
        wait_ready(cluster, timeout_s=90)
        # Two at once would be more than the topic promises to survive.
        wait_in_sync(cluster, OFFSETS_TOPIC, timeout_s=90)


def run(cluster: Cluster, *, seconds: float, members: int, groups: int, kill_every_s: float, seed: int = 1) -> Account:
    """All of it, on a cluster that is up."""
    per_group = members // groups
    partitions = 2 * per_group
    with RawClient(*cluster.address(cluster.node_ids[0])) as client:
        client.create_topic(TOPIC, partitions, 3, {})
    wait_in_sync(cluster, TOPIC)
    account = Account()
    loop = Loop(on_failure=lambda where, error: account.violations.append(f"{where}: {error!r}"))
    network = SocketNetwork(loop)
    bootstrap = [cluster.address(node_id) for node_id in cluster.node_ids]
    names = [f"g{n}" for n in range(groups)]

    def ground_of(name: str) -> ClientContext[Witness]:
        return ClientContext(loop, network, bootstrap, random.Random(f"{seed}/{name}"), account)

    watchers = [
        OffsetWatcher(ground_of(f"{name}/watcher"), f"{name}/watcher", name, pause_ms=WATCH_PAUSE_MS) for name in names
    ]
    for n in range(per_group * groups):
        group = n % groups
        name = f"{names[group]}/member{n // groups}"
        account.members[name] = SimGroupMember(
            ground_of(name),
            name,
            names[group],
            (TOPIC,),
            is_classic=group % 2 == 1,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            pause_ms=COMMIT_PAUSE_MS,
        )
    killer = Killer(cluster, kill_every_s, seed, lambda: loop.post_from_thread(calm))
    began_s = time.monotonic()

    def calm() -> None:
        nonlocal began_s
        began_s = time.monotonic()
        for member in account.members.values():
            member.reported_commits.clear()
        settle()

    def settle() -> None:
        waited_s = time.monotonic() - began_s
        if account.read(names, partitions) or waited_s > SETTLE_S:
            account.settled_s = waited_s
            loop.stop()
        else:
            loop.call_at(loop.now_ms() + 200, settle)

    for each in (*account.members.values(), *watchers):
        loop.call_soon(each.start)
    loop.call_at(loop.now_ms() + round(seconds * 1000), killer.end)
    killer.start()
    try:
        loop.run()
    finally:
        killer.end()
        killer.join(120)
        network.close()
        loop.close()
    account.kills = killer.victims.total()
    account.victims = killer.victims
    if killer.failure is not None:
        raise killer.failure
    return account


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.group_rounds", description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--members", type=int, default=200)
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--kill-every", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    if chosen.groups < 1 or chosen.members < chosen.groups:
        parser.error("each group has a member at least")
    interrupt_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="group-rounds-") as folder:
        cluster = TanistCluster(Path(folder), properties=PROPERTIES)
        try:
            cluster.start()
            account = run(
                cluster,
                seconds=chosen.minutes * 60,
                members=chosen.members,
                groups=chosen.groups,
                kill_every_s=chosen.kill_every,
                seed=chosen.seed,
            )
        finally:
            cluster.stop()
    print(account, flush=True)
    return 0 if account.passed else 1


if __name__ == "__main__":
    sys.exit(main())
