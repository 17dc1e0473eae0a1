"""Rules of share groups, broken: early answers, forgotten states, leaders that are not fenced, counts and locks.

Owns the patches, and `SHARE_MUTANTS`, each with the runs that show it, which have share groups (`sim.run.shares`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.share import fetching
from tanist.broker.share.dead_letters import DeadLetters
from tanist.broker.share.fetching import ShareFetching
from tanist.broker.share.partitions import LedShare, LedShares
from tanist.coordinator.effects import NEVER_MS, Answer
from tanist.coordinator.share import state_shard
from tanist.coordinator.share.partition import Change, Limits, SharePartition
from tanist.coordinator.share.records import UNINITIALIZED
from tanist.coordinator.share.runs import RecordState
from tanist.coordinator.share.state_shard import Outcome, ShareStateShard, StateAppend
from tanist.lab.mutations.patching import Breaks, Patch, always, fixed
from tanist.lab.mutations.simulator import Mutation, drawn
from tanist.lab.mutations.situations import Changed, of_workload
from tanist.sim.run.config import SHARES, ChaosConfig

# -- what is stored


def answers_before_it_is_stored() -> tuple[Patch, ...]:
    store = LedShares.store

    def at_once(shares: LedShares, share: LedShare, change: Change, then: Any = None) -> None:
        store(shares, share, change)
        if then is not None:
            then(0)

    return (Patch(LedShares, "store", at_once),)


def stores_before_the_commit() -> tuple[Patch, ...]:
    decide = ShareStateShard._decide

    def answered(shard: ShareStateShard, records: Any, ticket: object, outcome: Outcome) -> Sequence[Any]:
        effects = [Answer(ticket, outcome)] if ticket is not None else []
        return [*effects, *decide(shard, records, None, outcome)]

    return (Patch(ShareStateShard, "_decide", answered),)


def refused_decisions_stand() -> tuple[Patch, ...]:
    written = ShareStateShard.written

    def kept(shard: ShareStateShard, append: StateAppend, error: int, now_ms: int) -> Sequence[Any]:
        return written(shard, replace(append, undo=()), error, now_ms)

    return (Patch(ShareStateShard, "written", kept),)


def snapshots_forget_the_start() -> tuple[Patch, ...]:
    snapshot = vars(state_shard)["_snapshot"]

    def from_the_beginning(where: Any, state: Any, wall_ms: int) -> Any:
        return snapshot(where, replace(state, start_offset=min(state.start_offset, 0)), wall_ms)

    return (Patch(state_shard, "_snapshot", from_the_beginning),)


old_leaders_write = fixed(ShareStateShard, "_fenced", always(0))


# -- what a leader reads


def _reads(change: Callable[[Any], Any]) -> tuple[Patch, ...]:
    is_read = LedShares._is_read

    def changed(shares: LedShares, share: LedShare, outcome: Outcome) -> None:
        state = None if outcome.state is None else change(outcome.state)
        is_read(shares, share, outcome._replace(state=state))

    return (Patch(LedShares, "_is_read", changed),)


def reads_the_start_alone() -> tuple[Patch, ...]:
    return _reads(lambda state: replace(state, batches=()))


def reads_no_start() -> tuple[Patch, ...]:
    return _reads(lambda state: replace(state, start_offset=min(state.start_offset, 0)))


def reads_no_counts() -> tuple[Patch, ...]:
    return _reads(
        lambda state: replace(state, batches=tuple(each._replace(delivery_count=0) for each in state.batches))
    )


# -- delivery


def _lock_without_a_count(share: SharePartition, run: Any, member_id: str, limits: Limits, now_ms: int) -> None:
    run.state, run.member_id = RecordState.ACQUIRED, member_id
    run.delivery_count = max(run.delivery_count, 1)
    run.lock_until_ms = now_ms + limits.lock_ms


def delivers_without_a_limit() -> tuple[Patch, ...]:
    def pend(share: SharePartition, run: Any, state: RecordState, limits: Limits) -> None:
        run.pending = state

    def let_go(share: SharePartition, run: Any, limits: Limits) -> None:
        run.state, run.member_id, run.lock_until_ms = RecordState.AVAILABLE, "", NEVER_MS

    return Patch(SharePartition, "_pend", pend), Patch(SharePartition, "_let_go", let_go)


def releases_for_good() -> tuple[Patch, ...]:
    def pend(share: SharePartition, run: Any, state: RecordState, limits: Limits) -> None:
        run.pending = RecordState.ARCHIVED if state is RecordState.AVAILABLE else state

    return (Patch(SharePartition, "_pend", pend),)


def one_lock_ends_all() -> tuple[Patch, ...]:
    expire = SharePartition.expire

    def at_once(share: SharePartition, limits: Limits, now_ms: int) -> Change:
        return expire(share, limits, now_ms + limits.lock_ms)

    return (Patch(SharePartition, "expire", at_once),)


def _upper(fetching: ShareFetching, hosted: HostedPartition) -> int:
    return hosted.log.log_end_offset


counts_nothing = fixed(SharePartition, "_lock", _lock_without_a_count)
locks_never_expire = fixed(LedShares, "arm", always(None))
gives_what_is_not_committed = fixed(ShareFetching, "_upper", _upper)


# -- transactions, the log's start, and operators


def gives_what_is_aborted() -> tuple[Patch, ...]:
    fetched = fetching.fetched

    def unmarked(read: Any, aborted: Any) -> Any:
        return fetched(read, {})

    return (Patch(fetching, "fetched", unmarked),)


def _up_to_the_high_watermark(fetching: ShareFetching, hosted: HostedPartition) -> int:
    return hosted.replica.high_watermark


def keeps_a_state_that_is_altered() -> tuple[Patch, ...]:
    initialize = ShareStateShard.initialize

    def kept(shard: ShareStateShard, where: Any, state_epoch: int, start_offset: int, *rest: Any) -> Sequence[Any]:
        return initialize(shard, where, state_epoch, UNINITIALIZED if where in shard.states else start_offset, *rest)

    return (Patch(ShareStateShard, "initialize", kept),)


def keeps_a_state_that_is_deleted() -> tuple[Patch, ...]:
    def kept(shard: ShareStateShard, where: Any, ticket: object) -> Sequence[Any]:
        return [StateAppend((), ticket=ticket)]

    return (Patch(ShareStateShard, "delete", kept),)


def archives_without_a_letter() -> tuple[Patch, ...]:
    def at_once(letters: DeadLetters, group_id: str, hosted: HostedPartition, letter: Any, then: Any) -> None:
        then()

    return (Patch(DeadLetters, "write", at_once),)


def reads_no_letters_under_way() -> tuple[Patch, ...]:
    def archived(each: Any) -> Any:
        return each._replace(state=RecordState.ARCHIVED) if each.state is RecordState.ARCHIVING else each

    return _reads(lambda state: replace(state, batches=tuple(map(archived, state.batches))))


def letters_of_what_is_accepted() -> tuple[Patch, ...]:
    pend = SharePartition._pend

    def all_alike(share: SharePartition, run: Any, state: RecordState, limits: Limits) -> None:
        pend(share, run, limits.given_up if state is RecordState.ACKNOWLEDGED else state, limits)

    return (Patch(SharePartition, "_pend", all_alike),)


gives_what_is_open = fixed(ShareFetching, "_upper", _up_to_the_high_watermark)
stays_below_the_log = fixed(SharePartition, "log_start_moved", always(None))


# -- the table


def _drawn(rule: str, patches: Breaks, changed: Changed | None = None, **settings: Any) -> Mutation:
    """Shows in random runs, perhaps with changes."""
    return drawn(rule, patches, of_workload(SHARES, changed, **settings))


def _succeeded(config: ChaosConfig) -> ChaosConfig:
    """Leaders are succeeded all the time, and hear of it late; members go on with both."""
    changed = replace(
        config,
        kinds=("slow", "partition"),
        fault_pause_ms=(50, 400),
        down_max=1,
        may_lose=False,
        operations=("preferred", "reassign"),
        operation_pause_ms=(50, 300),
        latency_us=(500, 5_000),
        properties={
            **config.properties,
            "broker.session.timeout.ms": "1000",
            "broker.heartbeat.interval.ms": "200",
            "share.coordinator.state.topic.num.partitions": "3",
        },
    )
    plans = tuple(replace(plan, members=3, from_latest=False) for plan in config.shares.plans)
    return changed.with_settings(plans=plans, explicit_share=1.0, late_share=0.0, work_ms=50, churn=())


def _often_refusing(config: ChaosConfig) -> ChaosConfig:
    """The log of states takes nothing while a replica is not in sync."""
    return replace(config, properties={**config.properties, "share.coordinator.state.topic.min.isr": "3"})


def _transactional(config: ChaosConfig) -> ChaosConfig:
    """Groups read committed records of applications that abort often."""
    plans = tuple(replace(plan, read_committed=True, from_latest=False) for plan in config.shares.plans)
    return config.with_settings(plans=plans, applications=2, abort_share=0.6)


def _trimmed(config: ChaosConfig) -> ChaosConfig:
    """Records go soon, by operators and by retention."""
    short = (("segment.ms", "100"), ("retention.bytes", "300"))
    return replace(
        _soon(config),
        topics=tuple(replace(topic, configs=(*topic.configs, *short)) for topic in config.topics),
        trim_operations=("delete_records", "delete_all"),
        trim_pause_ms=(50, 500),
        may_lose=False,
        properties={**config.properties, "log.retention.check.interval.ms": "50"},
    )


def _altered(config: ChaosConfig) -> ChaosConfig:
    """An operator sets offsets all the time."""
    return replace(config, share_operations=("alter_offsets",), share_pause_ms=(500, 1_500))


def _forgotten(config: ChaosConfig) -> ChaosConfig:
    """An operator deletes offsets all the time."""
    return replace(config, share_operations=("delete_offsets",), share_pause_ms=(500, 1_500))


def _with_letters(config: ChaosConfig) -> ChaosConfig:
    """What members reject goes to a topic."""
    plans = tuple(replace(plan, dead_letters=True, from_latest=False) for plan in config.shares.plans)
    properties = {
        **config.properties,
        "errors.deadletterqueue.auto.create.topics.enable": "true",
        "default.replication.factor": "3",
    }
    changed = replace(config, operations=(), may_lose=False, properties=properties)
    return changed.with_settings(plans=plans, reject_share=0.2)


def _succeeded_with_letters(config: ChaosConfig) -> ChaosConfig:
    """And letters wait until all replicas are there: leaders go before that."""
    changed = replace(
        _with_letters(config),
        kinds=("crash-leader",),
        fault_pause_ms=(100, 800),
        down_max=1,
        min_insync_replicas=3,
    )
    return changed.with_settings(reject_share=0.5, work_ms=100, churn=())


def _soon(config: ChaosConfig) -> ChaosConfig:
    """It need not wait long in the end."""
    return replace(config, settle_time_ms=25_000)


SHARE_MUTANTS: Mapping[str, Mutation] = {
    "share-early": _drawn("a member's word is answered before it is stored", answers_before_it_is_stored),
    "share-uncommitted": _drawn("a state is answered before it is committed", stores_before_the_commit),
    "share-start-alone": _drawn("a new leader reads the start offset alone", reads_the_start_alone),
    "share-fence": _drawn("leaders that were succeeded are not fenced", old_leaders_write, _succeeded),
    "share-counts": _drawn("the delivery count does not grow", counts_nothing, release_share=0.4),
    "share-limit": _drawn("records are delivered without a limit", delivers_without_a_limit, release_share=0.6),
    "share-stored-counts": _drawn("a new leader reads no delivery counts", reads_no_counts, release_share=0.6),
    "share-locks": _drawn("the end of one lock is the end of all", one_lock_ends_all, silent_share=0.3),
    "share-start": _drawn("a new leader begins at the beginning", reads_no_start),
    "share-snapshot": _drawn("a snapshot has no start offset", snapshots_forget_the_start),
    "share-released": _drawn("what is released is archived", releases_for_good, release_share=0.4),
    "share-for-ever": _drawn("locks do not expire", locks_never_expire, _soon, silent_share=0.3, churn=()),
    "share-refused": _drawn("what the log has refused stays decided", refused_decisions_stand, _often_refusing),
    "share-ahead": _drawn("records are given before they are committed", gives_what_is_not_committed),
    "share-aborted": _drawn("records of aborted transactions are given", gives_what_is_aborted, _transactional),
    "share-open": _drawn("records of open transactions are given", gives_what_is_open, _transactional),
    "share-trimmed": _drawn("a leader does not follow the start of its log", stays_below_the_log, _trimmed),
    "share-altered": _drawn("offsets that an operator sets are not stored", keeps_a_state_that_is_altered, _altered),
    "share-no-letter": _drawn("dead letters are archived unwritten", archives_without_a_letter, _with_letters),
    "share-letter-resumed": _drawn(
        "a new leader writes no letters that were under way",
        reads_no_letters_under_way,
        _succeeded_with_letters,
    ),
    "share-letter-accepted": _drawn("accepted records are dead letters", letters_of_what_is_accepted, _with_letters),
    "share-kept": _drawn("offsets that an operator deletes are kept", keeps_a_state_that_is_deleted, _forgotten),
}
