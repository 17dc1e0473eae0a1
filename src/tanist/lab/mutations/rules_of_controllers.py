"""Rules of the controller, broken: joining an ISR, changes of a partition, elections by unclean recovery.

Owns patches of `tanist.controller`, each a function of the mutation's number. The model checker and the simulator break
the same rules by the same patches where both can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tanist.broker.metadata import replica_log_end, replica_log_info
from tanist.controller import alter_configs
from tanist.controller.brokers import Brokers
from tanist.controller.image import image
from tanist.controller.partitions import change, context, elections, fencing, recovery_strategy, unclean_recovery
from tanist.controller.partitions.alter_partition import _IsrChange
from tanist.controller.partitions.change import Election
from tanist.controller.partitions.context import PartitionContexts
from tanist.controller.partitions.log_info import LogInfo
from tanist.controller.partitions.recovery_strategy import Strategy
from tanist.lab.mutations.patching import Patch, always, fixed, no_records
from tanist.replica.leader import LeaderState
from tanist.wire.metadata import RegisterBrokerRecord

# -- registrations


def a2_without_elr() -> tuple[Patch, ...]:
    """The controller as it was before KIP-966, whatever the feature's level says."""
    return (
        Patch(context, "elr_in_force", always(False)),
        Patch(recovery_strategy, "elr_in_force", always(False)),
    )


def a2_without_elr_and_commits_alone() -> tuple[Patch, ...]:
    """Replication as it was before KIP-966: the leader, too, commits with fewer than min.insync.replicas."""
    return (*a2_without_elr(), Patch(LeaderState, "_may_advance", always(True)))


def a3_all_restarts_are_clean() -> tuple[Patch, ...]:
    new_incarnation = elections.broker_new_incarnation

    def believes_all(image: Any, broker_id: int, settings: Any, _clean: bool) -> Any:
        return new_incarnation(image, broker_id, settings, True)

    return (Patch(elections, "broker_new_incarnation", believes_all),)


def a6_reuses_broker_epochs() -> tuple[Patch, ...]:
    register = Brokers.register

    def registers_as_before(self: Brokers, image: Any, request: Any, now_ms: int, **more: Any) -> Any:
        stored = image.brokers.get(request.broker_id)
        if stored is not None:
            more["next_offset"] = stored.epoch
        return register(self, image, request, now_ms, **more)

    return (Patch(Brokers, "register", registers_as_before),)


def a28_ignores_incarnations() -> tuple[Patch, ...]:
    """A broker that registers under a known id gets the epoch and the state of the process that had it."""
    register = Brokers.register

    def takes_for_the_same(self: Brokers, image: Any, request: Any, now_ms: int, **more: Any) -> Any:
        stored = image.brokers.get(request.broker_id)
        if stored is None:
            return register(self, image, request, now_ms, **more)
        incarnation_id, request.incarnation_id = request.incarnation_id, stored.incarnation_id
        decision = register(self, image, request, now_ms, **more)
        for record in decision.records:
            if isinstance(record, RegisterBrokerRecord):
                record.incarnation_id = incarnation_id
        return decision

    return (Patch(Brokers, "register", takes_for_the_same),)


a21_fenced_stay_in_isr = fixed(fencing, "leave_isr", no_records)

# -- AlterPartition


def a5_any_life_may_join() -> tuple[Patch, ...]:
    eligible = _IsrChange._eligible
    return (Patch(_IsrChange, "_eligible", lambda change, member: eligible(change, replace(member, broker_epoch=-1))),)


def a7_any_partition_epoch() -> tuple[Patch, ...]:
    error = _IsrChange._error

    def judge(change: Any, before: Any, wanted: Any, members: Any) -> Any:
        newest = max(wanted.partition_epoch, before.partition_epoch)
        return error(change, before, replace(wanted, partition_epoch=newest), members)

    return (Patch(_IsrChange, "_error", judge),)


def _fenced_may_join(change: Any, member: Any) -> bool:
    registration = change._image.brokers.get(member.broker_id)
    return registration is not None and member.broker_epoch in (-1, registration.epoch)


a20_the_fenced_may_join = fixed(_IsrChange, "_eligible", _fenced_may_join)

# -- changes of a partition


def a14_elr_stays() -> tuple[Patch, ...]:
    populate = change._populate_elr

    def keeps(before: Any, target: Any, intent: Any, context: Any) -> Any:
        found = populate(before, target, intent, context)
        if len(target.isr) < target.min_isr:
            return found
        return replace(found, elr=tuple(member for member in before.elr if member not in target.isr))

    return (Patch(change, "_populate_elr", keeps),)


def a15_leavers_are_eligible() -> tuple[Patch, ...]:
    populate = change._populate_elr

    def adds(before: Any, target: Any, intent: Any, context: Any) -> Any:
        found = populate(before, target, intent, context)
        left = set(before.isr) - set(found.isr) - intent.unclean_shutdown
        return replace(found, elr=tuple(sorted({*found.elr, *left} & set(found.replicas))))

    return (Patch(change, "_populate_elr", adds),)


a27_forgets_the_lost = fixed(change, "_last_known_elr", always(()))


_UNCHECKED = Patch(change, "_check", always(None))
"""An assertion that says the same as a rule goes with it: what is looked for are the consequences."""


def a30_elected_stays_outside() -> tuple[Patch, ...]:
    settle = change._after

    def after(before: Any, target: Any, elected: Any, intent: Any, context: Any) -> Any:
        found = settle(before, target, elected, intent, context)
        if elected.leader in target.elr and not elected.unclean:
            return replace(found, isr=target.isr, elr=target.elr)
        return found

    return (Patch(change, "_after", after), _UNCHECKED)


def a30b_same_leader_epoch() -> tuple[Patch, ...]:
    merge = change.merge

    def merged(before: Any, record: Any) -> Any:
        made = merge(before, record)
        return replace(made, leader_epoch=before.leader_epoch) if made.leader in before.elr else made

    return (Patch(change, "merge", merged), Patch(image, "merge", merged))


def a31_last_member_stays() -> tuple[Patch, ...]:
    settle = change._after

    def after(before: Any, target: Any, elected: Any, intent: Any, context: Any) -> Any:
        found = settle(before, target, elected, intent, context)
        return found if found.isr else replace(found, isr=before.isr)

    return (Patch(change, "_after", after), _UNCHECKED)


a32_elr_outlives_min_isr = fixed(elections, "min_isr_changed", no_records)
a32_lower_min_isr_keeps_elr = fixed(alter_configs, "_emptied_elrs", no_records)


def a42_forgets_nothing() -> tuple[Patch, ...]:
    settle = change._after

    def after(before: Any, target: Any, elected: Any, intent: Any, context: Any) -> Any:
        found = settle(before, target, elected, intent, context)
        return replace(found, last_known_elr=target.lost or before.last_known_elr) if elected.unclean else found

    return (Patch(change, "_after", after),)


def a46_completes_too_early() -> tuple[Patch, ...]:
    complete = change._complete_reassignment
    return (
        Patch(
            change,
            "_complete_reassignment",
            lambda target, context: complete(target, replace(context, min_isr=1)),
        ),
    )


def a46_completes_at_once() -> tuple[Patch, ...]:
    complete = change._complete_reassignment
    return (
        Patch(
            change,
            "_complete_reassignment",
            lambda target, context: complete(target, replace(context, elr_enabled=False)),
        ),
    )


# -- elections


def a29_elects_who_leaves() -> tuple[Patch, ...]:
    def acceptable(contexts: Any, _state: Any) -> Callable[[int], bool]:
        def test(broker_id: int) -> bool:
            registration = contexts._image.brokers.get(broker_id)
            return registration is not None and (not registration.fenced or broker_id == contexts._arriving)

        return test

    return (Patch(PartitionContexts, "acceptable", acceptable),)


a16_unclean_elections = fixed(PartitionContexts, "election", always(Election.UNCLEAN))
a16_unclean_recoveries = fixed(unclean_recovery, "recovery_strategy", always(Strategy.AGGRESSIVE))


def a41_elr_is_not_elected_from() -> tuple[Patch, ...]:
    """No member of the ELR is elected, even if one is live."""
    elect = change._elect
    return (
        Patch(
            change,
            "_elect",
            lambda before, target, intent, context: elect(before, replace(target, elr=()), intent, context),
        ),
    )


# -- unclean recovery


def _any_answer_is_enough(recovery: Any, *_: Any) -> bool:
    return bool(recovery.answers)


def a38_waits_for_nobody() -> tuple[Patch, ...]:
    phase = unclean_recovery._phase
    return (
        Patch(
            unclean_recovery,
            "_phase",
            lambda strategy, state, live, needed: phase(strategy, replace(state, elr=()), live, ()),
        ),
        Patch(unclean_recovery, "_enough", _any_answer_is_enough),
    )


def a38_some_will_do() -> tuple[Patch, ...]:
    phase = unclean_recovery._phase
    enough = unclean_recovery._enough

    def sooner(strategy: Strategy, state: Any, live: Any, needed: Any) -> Any:
        there = set(needed) & set(live)
        return phase(strategy, state, live, there) if there else phase(strategy, state, live, needed)

    def less(recovery: Any, live: Any, needed: Any, state: Any, now_ms: int) -> bool:
        return enough(recovery, live, tuple(each for each in needed if each in live), state, now_ms)

    return (Patch(unclean_recovery, "_phase", sooner), Patch(unclean_recovery, "_enough", less))


def a38b_does_not_wait_for_the_elr() -> tuple[Patch, ...]:
    phase = unclean_recovery._phase
    return (
        Patch(
            unclean_recovery,
            "_phase",
            lambda strategy, state, live, needed: phase(strategy, replace(state, elr=()), live, needed),
        ),
    )


def _longest_log(answers: Any, replicas: Sequence[int], _last_known: Any) -> int:
    there = [replica for replica in replicas if replica in answers]
    return max(there, key=lambda replica: (answers[replica].log_end_offset, answers[replica].last_epoch))


def _latest_epoch(answers: Any, replicas: Sequence[int], _last_known: Any) -> int:
    there = [replica for replica in replicas if replica in answers]
    return max(there, key=lambda replica: answers[replica].position)


def _answers_outlive_restarts(answer: Any, _broker_id: int, state: Any, _image: Any) -> bool:
    return bool(answer.leader_epoch == state.leader_epoch)


def a40b_inferred_answers_are_of_today() -> tuple[Patch, ...]:
    ask = replica_log_info._Peer._ask_for_ends

    def tagged_when_read(peer: Any, partitions: Any, on_answer: Any) -> None:
        def handle_logs(logs: Any) -> None:
            broker_epoch = peer._image().brokers[peer._broker_id].epoch
            on_answer(
                None if logs is None else {key: replace(log, broker_epoch=broker_epoch) for key, log in logs.items()}
            )

        ask(peer, partitions, handle_logs)

    return (Patch(replica_log_info._Peer, "_ask_for_ends", tagged_when_read),)


def a39b_the_partitions_epoch_is_the_logs() -> tuple[Patch, ...]:
    """An answer to ListOffsets has the replica's leader epoch in it, which is not that of its last record."""

    def info(log: Any, broker_epoch: int) -> LogInfo:
        return LogInfo(broker_epoch, log.leader_epoch, log.leader_epoch, log.end)

    return (Patch(replica_log_end._Log, "info", info),)


a39_longest_log_wins = fixed(unclean_recovery, "_best", _longest_log)
a39c_latest_epoch_wins = fixed(unclean_recovery, "_best", _latest_epoch)
a40_answers_outlive_restarts = fixed(unclean_recovery, "_fresh", _answers_outlive_restarts)
