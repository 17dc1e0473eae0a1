"""The liveness phase after the faults: conditions that must hold within a time limit, and their excuses (L1-L17).

Some brokers may be *left out* at first: they stay down while all others (the *core*) are healed. A partition may then
have no leader only if its strategy waits for a broker that is left out: a member of the ISR or the ELR; without
eligible replicas, a member of LastKnownElr (Balanced) or an operator (None). Then they come back, an operator decides
the remaining elections, and the cluster must be whole: every replica in sync and equal to the byte, nothing pending,
every client done.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tanist.controller.image.partition_state import PartitionState
from tanist.sim.checkers.checkers import Checkers
from tanist.sim.checkers.violation import Said, Violation
from tanist.sim.events import Place
from tanist.sim.faults.nemesis import Nemesis
from tanist.sim.promise import AGGRESSIVE, BALANCED, FIRST_PHASE, NONE
from tanist.sim.workload.access_admin import AccessAdmin
from tanist.sim.workload.operations import Admin
from tanist.sim.workload.producer import Producer
from tanist.sim.workload.quota_admin import QuotaAdmin
from tanist.sim.workload.quota_clients import Dialer, QuotaClient
from tanist.sim.workload.readers import Consumer, Observer
from tanist.sim.workload.subjects import Subject
from tanist.sim.workload.trimmer import Trimmer
from tanist.sim.workload.voter_operations import VoterAdmin
from tanist.sim.world.clock import stream
from tanist.sim.world.world import World
from tanist.wire.ids import TopicIdPartition

_OPERATORS_PAUSE_MS = 3_000


LIVENESS_STREAM = "peace"
"""The random stream of the phase. Its name is part of every seed's digest, so it stays."""
VOTERS_STREAM = "voters at the end"


class LivenessPhase:
    """The liveness phase of one run."""

    def __init__(
        self,
        world: World,
        checkers: Checkers,
        nemesis: Nemesis,
        admin: Admin,
        settle_time_ms: int,
        *,
        voter_admin: VoterAdmin | None = None,
        trimmer: Trimmer | None = None,
        access_admin: AccessAdmin | None = None,
        subjects: Sequence[Subject] = (),
        quota_admin: QuotaAdmin | None = None,
        quota_clients: Sequence[QuotaClient] = (),
        dialers: Sequence[Dialer] = (),
    ) -> None:
        self._world = world
        self._checkers = checkers
        self._nemesis = nemesis
        self._admin = admin
        self._voter_admin = voter_admin
        self._trimmer = trimmer
        self._access_admin = access_admin
        self._subjects = subjects
        self._quota_admin = quota_admin
        self._quota_clients = quota_clients
        self._dialers = dialers
        self._settle_time_ms = settle_time_ms

    def run(
        self,
        rng: random.Random,
        left_out_max: int = 0,
        producers: Sequence[Producer] = (),
        consumers: Sequence[Consumer] = (),
        observers: Sequence[Observer] = (),
    ) -> None:
        """Heal the cluster and check that it recovers."""
        left_out = self._leave_out(rng, left_out_max)
        self._nemesis.end(left_out)
        self._must_be_up(left_out)
        if left_out:
            self._world.counts["left out at the healing"] += len(left_out)
            self._do_without(left_out)
            self._nemesis.let_back_in()
            self._must_be_up(frozenset())
        self.must(lambda: self._admin.idle, "L3", lambda: "an operator is not answered")
        if self._voter_admin is not None:
            self._check_voter_changes(self._voter_admin, stream(self._world.seed, VOTERS_STREAM))
        self._checkers.healed()
        self._must_be_led(frozenset())
        self._admin.run(self._attend)
        if self._access_admin is not None:
            self._check_access(self._access_admin)
        if self._quota_admin is not None:
            self._check_quotas(self._quota_admin)
        goals = {producer: producer.finished + 2 for producer in producers}
        self.must(lambda: _all_stopped(goals), "L5", lambda: "writes are not accepted again")
        for observer in observers:
            observer.stop()
        self.must(lambda: all(producer.idle for producer in producers), "L3", lambda: "a produce is never answered")
        self.must(self._is_whole, "L6", self._who_is_not_whole)
        if self._trimmer is not None:
            self._trim(self._trimmer)
        self.must(
            lambda: all(self._has_read_all(consumer) for consumer in consumers),
            "L12",
            lambda: f"not all is read: {[consumer.positions for consumer in consumers]}",
        )
        for consumer in consumers:
            consumer.stop()
        self.must(self._checkers.metadata.all_applied, "L2", lambda: "not all have the newest metadata")
        self.must(lambda: not self._pending(), "L8", lambda: ["AlterPartition pending: ", *_and(self._pending())])
        self._world.run_for(1_000)
        # A coordinator may still write: the session of a member that died late expires only now.
        self.must(self._is_whole, "L7", self._who_is_not_whole)
        self._checkers.check_converged()
        self._checkers.check_clients()
        self._checkers.check_calm()

    def must(
        self, condition: Callable[[], bool], property_id: str, message: Callable[[], str | Said], *, more_ms: int = 0
    ) -> None:
        """The condition must hold within the time limit, `more_ms` later at most."""
        if not self._world.run_until(condition, within_ms=self._settle_time_ms + more_ms):
            said = message()
            raise Violation(property_id, self._world.now_us, *((said,) if isinstance(said, str) else said))

    # -- voters

    def _check_voter_changes(self, admin: VoterAdmin, rng: random.Random) -> None:
        """L14: the voters can be changed until they are the ones that an operator wants."""
        controllers = [host.node_id for host in self._world.hosts.values() if host.votes]
        count = len(controllers) if admin.joins_by_itself else rng.randint(1, len(controllers))
        wanted = frozenset(rng.sample(controllers, count))
        self.must(lambda: admin.idle, "L14", lambda: "a change of the voters is not answered")
        admin.change_to(wanted)
        self.must(
            admin.has_changed, "L14", lambda: f"the voters are {admin.described()}, and are to be {sorted(wanted)}"
        )
        self._must_be_up(frozenset())

    # -- access

    def _check_access(self, admin: AccessAdmin) -> None:
        """L16: who is allowed something gets it, and who is not is denied it, everywhere."""
        self.must(lambda: admin.idle, "L3", lambda: "the operator of access is not answered")
        admin.put_in_order()
        self.must(lambda: admin.in_order, "L16", lambda: "access cannot be put in order")
        for subject in self._subjects:
            subject.ask_for_everything()
        self.must(
            lambda: not any(subject.left for subject in self._subjects),
            "L16",
            lambda: f"not as the entries say: {[(each.name, *each.left[:3]) for each in self._subjects if each.left]}",
        )
        for subject in self._subjects:
            subject.stop()
        admin.stop()

    # -- quotas

    def _check_quotas(self, admin: QuotaAdmin) -> None:
        """L17: a client that is throttled goes on; every broker obeys the quotas that are committed."""
        clients = self._quota_clients
        everybody: list[QuotaClient | Dialer] = [*clients, *self._dialers]
        for each in everybody:
            each.stop()
        self.must(
            lambda: all(each.idle for each in everybody),
            "L17",
            lambda: f"not answered: {[each.name for each in everybody if not each.idle]}",
        )
        self.must(lambda: admin.idle, "L3", lambda: "the operator of quotas is not answered")
        admin.put_in_order(with_quotas=True)
        self.must(lambda: admin.in_order, "L17", lambda: "quotas cannot be put in order")
        for client in clients:
            client.write_everywhere()
        self.must(
            lambda: not any(client.left for client in clients),
            "L17",
            lambda: f"not as the quotas say: {[(each.name, *each.left) for each in clients if each.left]}",
        )
        self.must(lambda: all(client.idle for client in clients), "L17", lambda: "a write is never answered")
        for client in clients:
            client.stop()
        admin.stop()

    # -- log starts

    def _trim(self, trimmer: Trimmer) -> None:
        """L15: records can be deleted, and every replica's log begins where its leader's does, or above it."""
        trimmer.delete_older_halves()
        self.must(
            lambda: trimmer.all_acknowledged and trimmer.idle,
            "L15",
            lambda: f"DeleteRecords is not acknowledged: {trimmer.described()}",
        )
        self.must(lambda: not self._begin_too_early(), "L15", lambda: ["not trimmed: ", *_and(self._begin_too_early())])

    def _begin_too_early(self) -> list[Said]:
        """Replicas whose log begins below their leader's."""
        replicas = self._checkers.replicas
        early: list[Said] = []
        for key, state in self._states().items():
            leader = replicas.acting_leader(key, state)
            least = 0 if leader is None else leader.log.log_start_offset
            early += [
                (
                    replicas.oracle_of(key).place,
                    f" on {node.node_id} begins at {hosted.log.log_start_offset}, its leader at {least}",
                )
                for node in self._world.nodes()
                for hosted in [node.replicas.get(*key)]
                if hosted is not None and hosted.log.log_start_offset < least
            ]
        return early

    # -- brokers that are left out

    def _leave_out(self, rng: random.Random, count: int) -> frozenset[int]:
        """Brokers whose absence the promise allows, and that leave the quorum its majority."""
        chosen: set[int] = set()
        brokers = self._world.brokers
        for host in rng.sample(brokers, len(brokers)):
            leaves_a_quorum = self._nemesis.leaves_a_quorum(frozenset((*chosen, host.node_id)))
            if len(chosen) < count and leaves_a_quorum and self._nemesis.may_leave_out(host):
                chosen.add(host.node_id)
        return frozenset(chosen)

    def _do_without(self, left_out: frozenset[int]) -> None:
        """The core recovers as far as it can: L4, L6, L10, L11 with their excuses."""
        self._must_be_led(left_out)
        self.must(
            lambda: all(
                set(state.isr) >= set(state.replicas) - left_out
                for state in self._states().values()
                if state.leader >= 0 and not state.reassigning
            ),
            "L6",
            self._who_is_not_whole,
        )
        for key, state in self._states().items():
            if state.leader < 0 and self._is_excused(key, state, left_out):
                self._world.counts["excused: no leader possible"] += 1

    def _is_excused(self, key: TopicIdPartition, state: PartitionState, left_out: frozenset[int]) -> bool:
        """Whether no replica of the core may lead the partition."""
        promise = self._checkers.replicas.elections.promise
        oracle = self._checkers.replicas.oracle_of(key)
        strategy = promise.strategy(oracle)
        replicas, eligible = set(state.replicas), {*state.isr, *state.elr}
        if replicas <= left_out:
            return True
        if strategy == AGGRESSIVE or (strategy == FIRST_PHASE and promise.anybody_will_do(oracle)):
            return False
        if eligible:
            return eligible <= left_out
        if self._is_operators(key, state):
            return True
        known = set(state.last_known_elr) or (replicas if strategy == BALANCED else set())
        return bool(known & left_out)

    # -- operators

    def _attend(self) -> None:
        """An operator elects leaders for partitions that no replica may lead and that wait for none."""
        for key, state in self._states().items():
            if state.leader < 0 and self._is_operators(key, state):
                self._admin.elect_uncleanly(key)
        self._admin.later(_OPERATORS_PAUSE_MS, self._attend)

    def _is_operators(self, key: TopicIdPartition, state: PartitionState) -> bool:
        """The strategy None, or the KIP's first phase if the last leader is not a replica any more."""
        promise, oracle = self._checkers.replicas.elections.promise, self._checkers.replicas.oracle_of(key)
        if state.isr or state.elr:
            return False
        if not self._checkers.metadata.image.elr_enabled:
            return not promise.anybody_will_do(oracle)  # the last known leaders are not used any more
        strategy = promise.strategy(oracle)
        if strategy == FIRST_PHASE:
            return not state.last_known_elr and not promise.anybody_will_do(oracle)
        return strategy == NONE

    # -- conditions

    def _must_be_up(self, left_out: frozenset[int]) -> None:
        self.must(
            lambda: len(self._world.nodes()) == len(self._world.hosts) - len(left_out) and self._world.ready(),
            "L1",
            lambda: self._who_is_not_up(left_out),
        )

    def _must_be_led(self, left_out: frozenset[int]) -> None:
        self.must(
            lambda: all(
                state.leader >= 0 or self._is_excused(key, state, left_out) for key, state in self._states().items()
            ),
            "L4",
            lambda: ["no leader: ", *_and(self._leaderless())],
            more_ms=self._unclean_sweep_ms(),
        )

    def _unclean_sweep_ms(self) -> int:
        """The pause of the sweep that elects where an unclean election was allowed after the leader had gone.

        The configuration elects nothing by itself (rule 100).
        """
        promise = self._checkers.replicas.elections.promise
        oracles = (self._checkers.replicas.oracle_of(key) for key, state in self._states().items() if state.leader < 0)
        if any(promise.strategy(oracle) == FIRST_PHASE and promise.anybody_will_do(oracle) for oracle in oracles):
            return max(node.context.config.unclean_leader_election_interval_ms for node in self._world.nodes())
        return 0

    def _who_is_not_up(self, left_out: frozenset[int]) -> str:
        missing: list[str] = []
        for host in self._world.hosts.values():
            if host.node_id in left_out:
                continue
            if not host.up or host.node is None:
                missing.append(f"{host.name} is down ({host.fatal or 'not started'})")
            elif host.node.is_broker and host.node.lifecycle.state.value != "RUNNING":
                missing.append(f"{host.name} is {host.node.lifecycle.state.value}")
        return f"not every node is back: {', '.join(missing) or 'no controller'}"

    def _states(self) -> dict[TopicIdPartition, PartitionState]:
        return self._checkers.replicas.states

    def _leaderless(self) -> Iterator[Said]:
        replicas = self._checkers.replicas
        for key, state in self._states().items():
            if state.leader < 0:
                oracle = replicas.oracle_of(key)
                yield oracle.place, f" ({replicas.elections.promise.strategy(oracle)}): ", state

    def _is_whole(self) -> bool:
        """L6, L7, L9: every replica is in its ISR, has all records and the high watermark; no reassignment is open, and
        no move to another log directory.
        """
        if any(set(state.isr) != set(state.replicas) or state.reassigning for state in self._states().values()):
            return False
        return not self._behind() and not self._misplaced()

    def _misplaced(self) -> list[Said]:
        """Replicas that are on their way to another log directory, or not in the one that the metadata says."""
        return [
            (f"{hosted.name} on {node.node_id} is in {hosted.directory.path}, and moves, or the metadata errs",)
            for node in self._world.nodes()
            for hosted in node.replicas
            if hosted in node.replicas.moves
            or (
                len(node.replicas.directories) > 1
                and hosted.replica.metadata is not None
                and hosted.replica.metadata.directory_of(node.node_id) not in (None, hosted.directory.directory_id)
            )
        ]

    def _behind(self) -> list[Said]:
        replicas = self._checkers.replicas
        return [
            (
                oracle.place,
                f" on {node.node_id} at {hosted.log.log_end_offset} (high watermark "
                f"{hosted.replica.high_watermark}) of {oracle.high_watermark}",
            )
            for node in self._world.nodes()
            for hosted in node.replicas
            for oracle in [replicas.oracles[(hosted.topic_id, hosted.index)]]
            if not oracle.high_watermark == hosted.replica.high_watermark == hosted.log.log_end_offset
        ]

    def _who_is_not_whole(self) -> Said:
        unsettled: Iterator[Said] = (
            (self._checkers.replicas.oracle_of(key).place, ": ", state)
            for key, state in self._states().items()
            if set(state.isr) != set(state.replicas) or state.reassigning
        )
        return "not all replicas are in sync again: ", *_and([*unsettled, *self._behind(), *self._misplaced()])

    def _has_read_all(self, consumer: Consumer) -> bool:
        return all(
            consumer.positions[key[1]] >= oracle.high_watermark
            for key, oracle in self._checkers.replicas.oracles.items()
            if oracle.name == f"{consumer.topic}-{key[1]}"
        )

    def _pending(self) -> list[Said]:
        return [
            (Place(f"{hosted.topic}-{hosted.index}", node.node_id),)
            for node in self._world.nodes()
            for hosted in node.replicas
            if hosted.leader is not None and hosted.leader.pending is not None
        ]


def _all_stopped(goals: Mapping[Producer, int]) -> bool:
    """Each producer stops when so many of its batches were answered.

    With acks=1 that is soon, for min ISR does not hold it up. It would go on ahead of followers that are throttled.
    """
    for producer, goal in goals.items():
        if not producer.stopped and producer.finished >= goal:
            producer.stop()
    return all(producer.stopped for producer in goals)


def _and(each: Iterable[Said]) -> Iterator[object]:
    for number, said in enumerate(each):
        yield from ("; ", *said) if number else said
