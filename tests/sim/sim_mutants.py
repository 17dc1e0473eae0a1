"""Rules of safety, each switched off by a patch of one function, for the simulator to notice.

The numbers are those of the catalogue in docs/simulator.md. Rules of a replica are the classes of
`tests/replica/replica_mutants.py`; those of the other rooms are patched here. Nothing in the product knows of any of
them. A mutation may ask for a profile that makes its moment likelier: a configuration, never a script.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tanist.broker import node
from tanist.broker.api import produce
from tanist.broker.api.produce import ProduceWait
from tanist.broker.controller_host import ControllerHost
from tanist.broker.lifecycle import Lifecycle
from tanist.broker.replicas import Replicas
from tanist.controller import configs, controller, elections, image, partition_change, unclean_recovery
from tanist.controller.alter_partition import _IsrChange
from tanist.controller.brokers import Brokers
from tanist.controller.features import Bootstrap
from tanist.controller.partition_context import ChangeMaker
from tanist.controller.recovery_strategy import Strategy
from tanist.log.checkpoints import CLEAN_SHUTDOWN, encode_clean_shutdown
from tanist.log.epochs import LeaderEpochCache
from tanist.log.producers import ProducerStates
from tanist.log.recovery import LogLoader
from tanist.quorum.rules import QuorumRules
from tanist.replica import reads
from tanist.replica.partition import Partition
from tanist.sim.disk import SimDisk
from tanist.sim.operations import Topic
from tanist.sim.profiles import ChaosConfig
from tanist.sim.world import COMBINED

sys.path.insert(0, str(Path(__file__).parents[1] / "replica"))
from replica_mutants import MUTANTS as REPLICA_MUTANTS  # type: ignore[import-not-found]

Patch = pytest.MonkeyPatch
Break = Callable[[Patch], None]
Profile = Callable[[int], ChaosConfig]


@dataclass(frozen=True)
class Mutation:
    """One rule, switched off."""

    broken: str
    """What is so instead."""
    apply: Break
    profile: Profile = ChaosConfig.drawn
    equivalent: str = ""
    """Why no behaviour can tell it from the real rule, if that is so."""


# -- profiles


def _with(**changes: Any) -> Profile:
    """As drawn, but for this."""
    return lambda seed: replace(ChaosConfig.drawn(seed), **changes)


def _recovering(strategy: str, **changes: Any) -> Profile:
    """Three brokers that leave again and again, with the recovery manager on."""

    def profile(seed: int) -> ChaosConfig:
        drawn = ChaosConfig.drawn(seed)
        return replace(
            drawn,
            roles=dict.fromkeys((1, 2, 3), COMBINED),
            topics=(Topic("events", 3, 3, (("unclean.recovery.strategy", strategy),)),),
            min_insync_replicas=2,
            down_max=3,
            operations=(),
            properties={
                **drawn.properties,
                "unclean.recovery.manager.enabled": "true",
                "tanist.unclean.recovery.grace.ms": "5000",
                "broker.session.timeout.ms": "1500",
                "broker.heartbeat.interval.ms": "300",
                "replica.lag.time.max.ms": "1000",
            },
            **{"fault_pause_ms": (50, 800), **changes},
        )

    return profile


_LEAVING = ("stop", "partition", "leader", "kill", "power", "blackout", "freeze")
_BUSY_CONFIGS = _with(operations=("min_isr", "cluster_min_isr"), operation_pause_ms=(50, 300))
_MOVING = _with(operations=("reassign", "cancel"), operation_pause_ms=(50, 400))


def _one_replica_too_few(seed: int) -> ChaosConfig:
    return replace(ChaosConfig.drawn(seed), topics=(Topic("events", 1, 2, (("min.insync.replicas", "3"),)),))


def _held_back(*kinds: str, session_ms: int) -> Profile:
    """Requests are held back while brokers come and go; the high watermark goes on with one replica."""

    def profile(seed: int) -> ChaosConfig:
        drawn = ChaosConfig.drawn(seed)
        return replace(
            drawn,
            roles=dict.fromkeys((1, 2, 3), COMBINED),
            topics=(Topic("events", 3, 3, (("min.insync.replicas", "1"),)),),
            fault_time_ms=20_000,
            kinds=kinds,
            fault_pause_ms=(20, 150),
            down_max=1,
            operations=(),
            pause_ms=60,
            properties={
                **drawn.properties,
                "broker.session.timeout.ms": str(session_ms),
                "broker.heartbeat.interval.ms": str(session_ms // 6),
                "replica.lag.time.max.ms": "1000",
            },
        )

    return profile


def _small_fetches(seed: int) -> ChaosConfig:
    """Followers come along batch by batch, far behind a busy leader's high watermark, and leaders die."""
    drawn = ChaosConfig.drawn(seed)
    return replace(
        drawn,
        roles=dict.fromkeys((1, 2, 3), COMBINED),
        topics=(Topic("events", 1, 3),),
        min_insync_replicas=2,
        producers=3,
        pause_ms=2,
        kinds=("leader", "kill", "stop"),
        fault_pause_ms=(100, 700),
        down_max=2,
        operations=(),
        latency_us=(3_000, 15_000),
        properties={**drawn.properties, "replica.fetch.max.bytes": "1024", "replica.fetch.response.max.bytes": "1024"},
    )


def _breaking_links(seed: int) -> ChaosConfig:
    """Requests are answered, and the answers lost."""
    return replace(
        ChaosConfig.drawn(seed),
        kinds=("reset", "reset", "reset", "freeze", "kill"),
        fault_pause_ms=(10, 100),
        operations=(),
        latency_us=(5_000, 40_000),
    )


def _wandering(seed: int) -> ChaosConfig:
    """Leaders change all the time, over slow links, and logs diverge."""
    drawn = ChaosConfig.drawn(seed)
    return replace(
        drawn,
        roles=dict.fromkeys((1, 2, 3), COMBINED),
        topics=(Topic("events", 3, 3),),
        careless_producers=2,
        pause_ms=20,
        kinds=("slow", "slow", "leader", "freeze", "partition"),
        fault_pause_ms=(20, 300),
        down_max=2,
        operations=("preferred", "preferred", "reassign"),
        operation_pause_ms=(10, 80),
    )


# -- replicas


def _replica(name: str) -> Break:
    """Partitions are made with the leader's or the follower's class of a mutant."""
    mutant = REPLICA_MUTANTS[name]

    def break_it(patch: Patch) -> None:
        patch.setattr(Partition, "leader_class", mutant.leader_class)
        patch.setattr(Partition, "follower_class", mutant.follower_class)
        patch.setattr(Partition, "_recovered_high_watermark", mutant._recovered_high_watermark)

    return break_it


def _patched(owner: Any, name: str, replacement: Any) -> Break:
    return lambda patch: patch.setattr(owner, name, replacement)


def _all(*breaks: Break) -> Break:
    def break_it(patch: Patch) -> None:
        for each in breaks:
            each(patch)

    return break_it


def _acks_early(patch: Patch) -> None:
    add = ProduceWait.add
    patch.setattr(ProduceWait, "add", lambda self, hosted, required_offset, results: add(self, hosted, 0, results))


def _acks_when_deposed(hosted: Any, error: int = 0) -> None:
    produce.leadership_lost(hosted, 0)


# -- brokers


def _stays_in_elr(patch: Patch) -> None:
    new_incarnation = elections.broker_new_incarnation

    def believes_all(image: Any, broker_id: int, settings: Any, clean: bool) -> Any:
        return new_incarnation(image, broker_id, settings, True)

    patch.setattr(elections, "broker_new_incarnation", believes_all)


def _marked_early(patch: Patch) -> None:
    """As soon as the broker has its epoch, and until it ends, however it ends."""
    activate = Replicas.activate

    def marks(self: Replicas) -> None:
        activate(self)
        mark = encode_clean_shutdown(self._node.lifecycle.broker_epoch)
        for directory in self.directories:
            self._node.disk.write_file(f"{directory.path}/{CLEAN_SHUTDOWN}", mark, sync=True)

    patch.setattr(Replicas, "activate", marks)


def _same_epoch_again(patch: Patch) -> None:
    register = Brokers.register

    def reuses(self: Brokers, image: Any, request: Any, now_ms: int, *, next_offset: int, api_version: int) -> Any:
        stored = image.brokers.get(request.broker_id)
        decision = register(self, image, request, now_ms, next_offset=next_offset, api_version=api_version)
        if stored is None or not decision.records:
            return decision
        answer: Any = decision.response
        registration: Any = decision.records[-1]
        registration.broker_epoch = answer.broker_epoch = stored.epoch
        return decision

    patch.setattr(Brokers, "register", reuses)


# -- AlterPartition


def _any_life_may_join(patch: Patch) -> None:
    """Neither the leader nor the controller asks which life of a broker it was that fetched."""
    eligible = _IsrChange._eligible
    patch.setattr(_IsrChange, "_eligible", lambda self, member: eligible(self, replace(member, broker_epoch=-1)))


def _any_partition_epoch(patch: Patch) -> None:
    error = _IsrChange._error

    def forgives(self: _IsrChange, before: Any, wanted: Any, members: Any) -> Any:
        newest = replace(wanted, partition_epoch=max(wanted.partition_epoch, before.partition_epoch))
        return error(self, before, newest, members)

    patch.setattr(_IsrChange, "_error", forgives)


def _the_fenced_may_join(patch: Patch) -> None:
    def eligible(self: _IsrChange, member: Any) -> bool:
        registration = self._image.brokers.get(member.broker_id)
        return registration is not None and member.broker_epoch in (-1, registration.epoch)

    patch.setattr(_IsrChange, "_eligible", eligible)


# -- what becomes of a partition


def _keeps_elr(patch: Patch) -> None:
    populate = partition_change._populate_elr

    def keeps(before: Any, target: Any, intent: Any, context: Any) -> Any:
        # As if no ISR were ever large enough.
        found = populate(before, replace(target, min_isr=99), intent, context)
        return replace(found, min_isr=target.min_isr)

    patch.setattr(partition_change, "_populate_elr", keeps)


def _leavers_into_elr(patch: Patch) -> None:
    populate = partition_change._populate_elr

    def keeps(before: Any, target: Any, intent: Any, context: Any) -> Any:
        found = populate(before, target, intent, context)
        left = set(before.isr) - set(found.isr) - intent.unclean_shutdown
        return replace(found, elr=tuple(sorted({*found.elr, *left} & set(found.replicas))))

    patch.setattr(partition_change, "_populate_elr", keeps)


def _forgets_the_lost(patch: Patch) -> None:
    populate = partition_change._populate_elr
    patch.setattr(partition_change, "_populate_elr", lambda *arguments: replace(populate(*arguments), lost=()))


def _elected_stays_outside(patch: Patch) -> None:
    after = partition_change._after

    def outside(before: Any, target: Any, elected: Any, intent: Any, context: Any) -> Any:
        made = after(before, target, elected, intent, context)
        return replace(made, isr=(), elr=target.elr) if elected.leader in target.elr else made

    patch.setattr(partition_change, "_after", outside)


def _same_leader_epoch(patch: Patch) -> None:
    merge = partition_change.merge

    def merged(before: Any, record: Any) -> Any:
        made = merge(before, record)
        return replace(made, leader_epoch=before.leader_epoch) if made.leader in before.elr else made

    patch.setattr(partition_change, "merge", merged)
    patch.setattr(image, "merge", merged)


def _the_last_stays(patch: Patch) -> None:
    without = elections._without
    patch.setattr(elections, "_without", lambda isr, broker_id: without(isr, broker_id) or isr)


def _completes_at_once(patch: Patch) -> None:
    complete = partition_change._complete_reassignment
    patch.setattr(
        partition_change,
        "_complete_reassignment",
        lambda target, context: complete(target, replace(context, elr_enabled=False)),
    )


def _elects_who_leaves(patch: Patch) -> None:
    def acceptable(self: ChangeMaker, state: Any) -> Callable[[int], bool]:
        def test(broker_id: int) -> bool:
            registration = self._image.brokers.get(broker_id)
            return registration is not None and (not registration.fenced or broker_id == self._arriving)

        return test

    patch.setattr(ChangeMaker, "acceptable", acceptable)


def _without_elr(patch: Patch) -> None:
    """The cluster is formatted without the feature."""
    patch.setattr(controller, "Bootstrap", lambda: Bootstrap(features={}))
    patch.setattr("tanist.broker.assembly.read_bootstrap", lambda *_: None)


# -- unclean recovery


def _always_aggressive(patch: Patch) -> None:
    patch.setattr(unclean_recovery, "recovery_strategy", lambda *_: Strategy.AGGRESSIVE)


def _some_will_do(patch: Patch) -> None:
    phase = unclean_recovery._phase
    enough = unclean_recovery._enough

    def sooner(strategy: Strategy, state: Any, live: Any, needed: Any) -> Any:
        there = set(needed) & set(live)
        return phase(strategy, state, live, there) if there else phase(strategy, state, live, needed)

    def less(recovery: Any, live: Any, needed: Any, state: Any, now_ms: int) -> bool:
        return enough(recovery, live, tuple(each for each in needed if each in live), state, now_ms)

    patch.setattr(unclean_recovery, "_phase", sooner)
    patch.setattr(unclean_recovery, "_enough", less)


def _before_the_elr(patch: Patch) -> None:
    phase = unclean_recovery._phase
    patch.setattr(
        unclean_recovery,
        "_phase",
        lambda strategy, state, live, needed: phase(strategy, replace(state, elr=()), live, needed),
    )


def _longest_first(answers: Any, replicas: Sequence[int]) -> int:
    there = [replica for replica in replicas if replica in answers]
    return max(there, key=lambda replica: (answers[replica].log_end_offset, answers[replica].last_epoch))


def _old_answers_count(answer: Any, broker_id: int, state: Any, image: Any) -> bool:
    return bool(answer.leader_epoch == state.leader_epoch)


def _elr_is_passed_over(patch: Patch) -> None:
    """Nobody is elected from the ELR, whoever of it is there."""
    elect = partition_change._elect

    def without(before: Any, target: Any, intent: Any, context: Any) -> Any:
        return elect(before, replace(target, elr=()), intent, context)

    patch.setattr(partition_change, "_elect", without)


def _keeps_who_was_known(patch: Patch) -> None:
    after = partition_change._after

    def keeps(before: Any, target: Any, elected: Any, intent: Any, context: Any) -> Any:
        made = after(before, target, elected, intent, context)
        return replace(made, last_known_elr=before.last_known_elr) if elected.unclean else made

    patch.setattr(partition_change, "_after", keeps)


# -- logs


def _lying_disks(patch: Patch) -> None:
    make = SimDisk.__init__

    def lies(self: SimDisk, *arguments: Any) -> None:
        make(self, *arguments)
        self.lying = True

    patch.setattr(SimDisk, "__init__", lies)


def _forgets_producers(patch: Patch) -> None:
    patch.setattr(LogLoader, "_load_producers", lambda self, up_to, count: None)
    patch.setattr(LogLoader, "_finish_producers", lambda self, start, end: None)
    finish = LogLoader.load

    def load(self: LogLoader) -> Any:
        loaded = finish(self)
        loaded.producers.clear()
        return loaded

    patch.setattr(LogLoader, "load", load)


# -- the quorum


def _commits_what_it_has_itself(self: QuorumRules, ends: Sequence[int], epoch_start_offset: int) -> int | None:
    return ends[0] if ends[0] > epoch_start_offset else None


def _answers_before_the_commit(self: ControllerHost, call: Any, response: Any, request: Any) -> None:
    call.reply(response)


MUTANTS: Mapping[str, Mutation] = {
    "A1": Mutation("the high watermark ignores min.insync.replicas", _replica("A1")),
    "A2": Mutation("no ELR: the last member of the ISR stays in it, whatever it lost", _without_elr),
    "A3": Mutation("an unclean restart leaves the broker in the ELR", _stays_in_elr),
    "A4": Mutation("the mark of a clean end is there while the broker runs", _marked_early),
    "A5": Mutation(
        "any life of a broker may join the ISR",
        _any_life_may_join,
        _held_back("one_way", "one_way", "kill", session_ms=9_000),
    ),
    "A6": Mutation("a broker keeps its epoch when it registers again", _same_epoch_again),
    "A7": Mutation(
        "an AlterPartition of any age is accepted",
        _any_partition_epoch,
        _held_back("one_way", "freeze", "freeze", session_ms=600),
    ),
    "A8": Mutation("an expansion is counted with the current ISR", _replica("A8")),
    "A9": Mutation("a shrink is applied before the controller has said so", _replica("A9")),
    "A10": Mutation("an unanswered proposal counts as rejected", _replica("A10"), _breaking_links),
    "A11": Mutation("a replica behind the high watermark joins the ISR", _replica("A11"), _small_fetches),
    "A12": Mutation("a replica joins before it has the epoch's start", _replica("A12"), _small_fetches),
    "A13": Mutation("what followers had is believed across elections", _replica("A13"), _wandering),
    "A14": Mutation("the ELR is kept when the ISR is large enough", _keeps_elr),
    "A15": Mutation("who leaves a large enough ISR is eligible", _leavers_into_elr),
    "A16": Mutation("unclean recoveries whatever the strategy", _always_aggressive),
    "A17": Mutation("the high watermark is the leader's end", _replica("A17")),
    "A18": Mutation("a follower counts with what it was sent", _replica("A18")),
    "A19": Mutation("enough replicas commit, whoever they are", _replica("A19")),
    "A20": Mutation(
        "a fenced broker may join the ISR",
        _the_fenced_may_join,
        _held_back("one_way", "freeze", "kill", session_ms=600),
    ),
    "A21": Mutation("a fence leaves the broker in its ISRs", _patched(elections, "_leave_isr", lambda *arguments: [])),
    "A22": Mutation("fetches of other epochs are believed", _replica("A22"), _wandering),
    "A23": Mutation("any answer to a fetch is taken", _replica("A23"), _wandering),
    "A24": Mutation("no divergence is looked for", _replica("A24")),
    "A25": Mutation("a follower cuts its log at its high watermark", _replica("A25")),
    "A26": Mutation("one look-up of an epoch is enough", _replica("A26"), _wandering),
    "A27": Mutation("LastKnownElr is not recorded", _forgets_the_lost),
    "A29": Mutation("a broker that is shutting down can be elected", _elects_who_leaves),
    "A30": Mutation("who is elected from the ELR is not in the ISR", _elected_stays_outside),
    "A30b": Mutation("an election from the ELR begins no leader epoch", _same_leader_epoch),
    "A31": Mutation("the ISR never becomes empty", _the_last_stays),
    "A32": Mutation(
        "a lower min.insync.replicas keeps the ELR", _patched(configs, "_emptied_elrs", lambda *_: []), _BUSY_CONFIGS
    ),
    "A33": Mutation("min.insync.replicas counts beyond the replicas", _replica("A33"), _one_replica_too_few),
    "A34": Mutation("a new leader says at once where the log ends", _replica("A34")),
    "A35": Mutation("a high watermark is trusted above the log's end", _replica("A35")),
    "A36": Mutation("disks lie about what is synced", _lying_disks),
    "A37": Mutation(
        "epochs outlive the records that were cut", _patched(LeaderEpochCache, "truncate_from_end", lambda *_: False)
    ),
    "A38": Mutation(
        "Balanced asks those of LastKnownElr who are there", _some_will_do, _recovering("Balanced", kinds=_LEAVING)
    ),
    "A38b": Mutation("Balanced does not wait for the ELR", _before_the_elr, _recovering("Balanced", kinds=_LEAVING)),
    "A39": Mutation(
        "the longest log wins, whatever its epoch",
        _patched(unclean_recovery, "_best", _longest_first),
        _recovering(
            "Balanced",
            kinds=("partition", "partition", "blackout", "leader", "kill"),
            fault_pause_ms=(100, 800),
            fault_time_ms=20_000,
            may_lose=True,
            producers=1,
            careless_producers=3,
            pause_ms=20,
        ),
    ),
    "A40": Mutation(
        "an answer counts after a restart of who gave it",
        _patched(unclean_recovery, "_fresh", _old_answers_count),
        _recovering(
            "Aggressive",
            kinds=("slow", "slow", "power", "blackout", "leader"),
            fault_pause_ms=(20, 150),
            may_lose=True,
            pause_ms=20,
        ),
    ),
    "A41": Mutation(
        "Aggressive passes over a member of the ELR that is there",
        _elr_is_passed_over,
        _recovering("Aggressive", kinds=_LEAVING),
    ),
    "A42": Mutation("an unclean election keeps LastKnownElr", _keeps_who_was_known),
    "A43": Mutation("producers are forgotten at a restart", _forgets_producers),
    "A45": Mutation("a follower counts beyond its own end", _replica("A45"), _small_fetches),
    "A46": Mutation("a reassignment is completed with too small an ISR", _completes_at_once, _MOVING),
    "A47": Mutation("an answer to any proposal is taken", _replica("A47"), _breaking_links),
    "A48": Mutation(
        "roles are taken before the metadata has the registration",
        _patched(Lifecycle, "caught_up", property(lambda self: True)),
    ),
    "A49": Mutation(
        "a new controller begins before it has replayed all", _patched(QuorumRules, "may_announce", lambda *_: True)
    ),
    "A49b": Mutation(
        "the controller answers before the commit",
        _patched(ControllerHost, "_reply_when_committed", _answers_before_the_commit),
    ),
    "acks": Mutation("a produce is acknowledged with the next that is committed", _acks_early),
    "deposed": Mutation(
        "a leader that is none any more acknowledges what waits", _patched(node, "leadership_lost", _acks_when_deposed)
    ),
    "reads": Mutation(
        "consumers read to the end of the log", _patched(reads, "consumer_fetch_bounds", lambda *_: 1 << 62)
    ),
    "duplicates": Mutation(
        "a batch that comes twice is appended twice",
        _patched(ProducerStates, "check", lambda self, *_, **__: type("V", (), {"error": 0, "duplicate": None})()),
    ),
    "majority": Mutation(
        "metadata is committed when the leader has it",
        _patched(QuorumRules, "commit_offset", _commits_what_it_has_itself),
    ),
    "votes": Mutation("votes are not written down", _patched(QuorumRules, "must_store", lambda *_: False)),
}
"""What is broken, and how."""
