"""Shrinking: the fewest faults and operations, and the smallest cluster, that still break the same property.

Delta debugging (Zeller and Hildebrandt: leave out halves, then quarters, then single events, as long as it fails) over
the list of faults and operations, then simpler configurations, then shorter pauses; repeated until nothing more can go.
A candidate counts only if it violates the *same* property; a violation of another one is another failure, and is
dropped.

Owns the search and its bounds. It plays candidates unchanged, so its result is a plan that fails by itself. The clock
is an argument, as everywhere: the bound in seconds is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tanist.sim.checkers.violation import Violation
from tanist.sim.run.chaos_run import Plan
from tanist.sim.run.config import GROUPS, SHARES, STREAMS, TRANSACTIONS, ChaosConfig
from tanist.sim.world.scheduler import MICROSECONDS

_PAUSE_US = 200_000
"""Pause between two events; longer ones are shortened to this if possible."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the search."""

    tries: int = 300
    seconds: float = 60.0
    later_ms: int = 3_000
    """A candidate is dropped if it has not failed this long, in virtual time, after the plan did."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest plan that was found, and its violation."""

    plan: Plan
    violation: Violation
    tries: int
    complete: bool
    """Nothing more can be left out; otherwise a limit was reached."""


Progress = Callable[[int, Plan], None]
"""Called with the tries so far, and the smallest plan."""


class _Interrupted(BaseException):
    """The candidate has run long enough. Not an `Exception`, which the run would treat as an error of a node."""


class _Spent(Exception):
    """A limit is reached."""


def violation_of(plan: Plan, until_ms: int | None = None) -> Violation | None:
    """The plan's violation, if it comes within this virtual time."""
    run = plan.begin()
    if until_ms is not None:
        run.world.scheduler.at(until_ms * MICROSECONDS, _give_up)
    try:
        return run.run().violation
    except _Interrupted:
        return None


def _give_up() -> None:
    raise _Interrupted


def shrink(
    plan: Plan,
    violation: Violation,
    now_s: Callable[[], float],
    limits: Limits = Limits(),
    progress: Progress | None = None,
) -> Shrunk:
    """Shrink the plan with this violation as far as the limits allow."""
    search = _Search(plan, violation, now_s, limits, progress)
    complete = True
    try:
        while search.round():
            pass
    except _Spent:
        complete = False
    return Shrunk(search.plan, search.violation, search.tries, complete)


class _Search:
    """The smallest plan so far, and the tried candidates."""

    def __init__(
        self,
        plan: Plan,
        violation: Violation,
        now_s: Callable[[], float],
        limits: Limits,
        progress: Progress | None,
    ) -> None:
        self.plan = plan
        self.violation = violation
        self.tries = 0
        self._limits = limits
        self._now_s = now_s
        self._deadline_s = now_s() + limits.seconds
        self._progress = progress
        self._tried: set[str] = set()

    def round(self) -> bool:
        """Try each reduction once. Returns whether one succeeded."""
        before = self.plan
        self._leave_out_what_comes_later()
        self._leave_out_events()
        for simpler in _SIMPLER:
            for config in simpler(self.plan.config):
                if self._fails(replace(self.plan, config=config)):
                    break
        self._draw_together()
        return self.plan != before

    def _leave_out_what_comes_later(self) -> None:
        """Leave out events after the failure (the load begins after the world does)."""
        end_us = self.violation.now_us
        self._fails(self.plan.with_events([each for each in self.plan.events if each.at_us < end_us]))

    def _leave_out_events(self) -> None:
        """Delta debugging: smaller and smaller pieces of the list are left out."""
        pieces = 2
        while self.plan.length:
            events = self.plan.events
            size = max(1, -(-len(events) // pieces))
            for start in range(0, len(events), size):
                if self._fails(self.plan.with_events(events[:start] + events[start + size :])):
                    pieces = max(2, pieces - 1)
                    break
            else:
                if size == 1:
                    return
                pieces = min(2 * pieces, len(events))

    def _draw_together(self) -> None:
        """Shorten the pauses between events, one after the other."""
        for number in range(self.plan.length):
            events = self.plan.events
            before_us = events[number - 1].at_us if number else 0
            too_long_us = events[number].at_us - before_us - _PAUSE_US
            if too_long_us > 0:
                later = [replace(each, at_us=each.at_us - too_long_us) for each in events[number:]]
                self._fails(self.plan.with_events(events[:number] + later))

    def _fails(self, candidate: Plan) -> bool:
        """Whether the candidate is new and violates the same property. Then it is the smallest."""
        key = repr(candidate)
        if candidate == self.plan or key in self._tried:
            return False
        if self.tries >= self._limits.tries or self._now_s() >= self._deadline_s:
            raise _Spent
        self._tried.add(key)
        self.tries += 1
        found = violation_of(candidate, self.violation.now_us // MICROSECONDS + self._limits.later_ms)
        if found is None or _kind(found) != _kind(self.violation):
            return False
        self.plan, self.violation = candidate, found
        if self._progress is not None:
            self._progress(self.tries, candidate)
        return True


def _kind(violation: Violation) -> str:
    """The kind that must stay the same: the property, or for a node's own error, the error."""
    return violation.property_id if violation.error is None else f"{violation.property_id} {violation.error}"


# -- simpler configurations, the simplest first


def _fewer_groups(config: ChaosConfig) -> Iterator[ChaosConfig]:
    """One group; then less churn of its members, and fewer members."""
    if config.workload != GROUPS:
        return
    plans, churn = config.groups.plans, config.groups.churn
    if len(plans) > 1:
        for plan in plans:
            yield config.with_settings(plans=(plan,))
    if config.groups.grows:
        yield config.with_settings(grows=False)
    for kind in churn:
        yield config.with_settings(churn=tuple(each for each in churn if each != kind))
    for count in range(1, max(plan.members for plan in plans)):
        yield config.with_settings(plans=tuple(replace(plan, members=min(plan.members, count)) for plan in plans))


def _fewer_share_groups(config: ChaosConfig) -> Iterator[ChaosConfig]:
    """One group; then fewer members, less churn, and members that do less of what they may do."""
    if config.workload != SHARES:
        return
    settings = config.shares
    if len(settings.plans) > 1:
        for plan in settings.plans:
            yield config.with_settings(plans=(plan,))
    for count in range(1, max(plan.members for plan in settings.plans)):
        yield config.with_settings(
            plans=tuple(replace(plan, members=min(plan.members, count)) for plan in settings.plans)
        )
    for kind in settings.churn:
        yield config.with_settings(churn=tuple(each for each in settings.churn if each != kind))
    if settings.applications:
        yield config.with_settings(applications=0)
    if any(plan.read_committed for plan in settings.plans):
        yield config.with_settings(plans=tuple(replace(plan, read_committed=False) for plan in settings.plans))
    if any(plan.dead_letters for plan in settings.plans):
        yield config.with_settings(plans=tuple(replace(plan, dead_letters=False) for plan in settings.plans))
    for name in ("renew_share", "late_share", "silent_share", "reject_share", "release_share", "explicit_share"):
        if getattr(settings, name):
            yield config.with_settings(**{name: 0.0})


def _fewer_streams_groups(config: ChaosConfig) -> Iterator[ChaosConfig]:
    """One group with one topology; then fewer processes and members, and less churn."""
    if config.workload != STREAMS:
        return
    settings = config.streams
    if len(settings.plans) > 1:
        for plan in settings.plans:
            yield config.with_settings(plans=(plan,))
    for fewer in (
        tuple(replace(plan, shapes=plan.shapes[:1]) for plan in settings.plans),
        tuple(replace(plan, threads=1) for plan in settings.plans),
        tuple(replace(plan, processes=max(1, plan.processes - 1)) for plan in settings.plans),
    ):
        if fewer != settings.plans:
            yield config.with_settings(plans=fewer)
    for kind in settings.churn:
        yield config.with_settings(churn=tuple(each for each in settings.churn if each != kind))
    if settings.slow_share:
        yield config.with_settings(slow_share=0.0)


def _fewer_applications(config: ChaosConfig) -> Iterator[ChaosConfig]:
    """One application with one instance, and no pauses."""
    if config.workload != TRANSACTIONS:
        return
    settings = config.transactions
    if settings.applications > 1:
        yield config.with_settings(applications=settings.applications - 1)
    if settings.instances > 1:
        yield config.with_settings(instances=settings.instances - 1)
    if settings.freezes:
        yield config.with_settings(freezes=False)


def _fewer_topics(config: ChaosConfig) -> Iterator[ChaosConfig]:
    if config.plans:
        read = {name for plan in config.plans for name in plan.topics}
        # The first one grows, so it stays.
        topics = tuple(topic for n, topic in enumerate(config.topics) if n == 0 or topic.name in read)
        if topics != config.topics:
            yield replace(config, topics=topics)
    elif len(config.topics) > 1:
        for topic in config.topics:
            yield replace(config, topics=(topic,))


def _fewer_partitions(config: ChaosConfig) -> Iterator[ChaosConfig]:
    for count in range(1, max(topic.partitions for topic in config.topics)):
        yield replace(
            config, topics=tuple(replace(topic, partitions=min(topic.partitions, count)) for topic in config.topics)
        )


def _fewer_clients(config: ChaosConfig) -> Iterator[ChaosConfig]:
    for fewer in (
        {"observers": 0, "careless_producers": 0, "producers": 1},
        {"observers": 0},
        {"careless_producers": 0},
        {"producers": 1},
    ):
        yield replace(config, **{name: min(count, getattr(config, name)) for name, count in fewer.items()})


def _slower_clients(config: ChaosConfig) -> Iterator[ChaosConfig]:
    for pause_ms in (500, 250, 150):
        if pause_ms > config.pause_ms:
            yield replace(config, pause_ms=pause_ms)


_USUAL = (
    "left_out",
    "may_lose",
    "inquirers",
    "quotas",
    "secured",
    "late_consumers",
    "plain",
    "slices",
    "skews_ms",
    "large_write_bytes",
    "stall_ms",
    "receive_bytes",
    "window_bytes",
    "value_bytes",
    "event_age_ms",
    "latency_us",
    "directories",
    "min_insync_replicas",
)
"""Drawn values that a run may do without."""


def _as_usual(config: ChaosConfig) -> Iterator[ChaosConfig]:
    """Set the drawn values to their defaults one by one. Kinds stay: the events are already drawn from them."""
    usual = ChaosConfig(roles=config.roles, topics=config.topics)
    for name in _USUAL:
        if getattr(config, name) != getattr(usual, name):
            yield replace(config, **{name: getattr(usual, name)})
    for node in config.roles:
        ordinary = config.without_conditions_of(node)
        if ordinary != config:
            yield ordinary
    for topic_number, topic in enumerate(config.topics):
        for entry in topic.configs:
            fewer = replace(topic, configs=tuple(each for each in topic.configs if each != entry))
            topics = (*config.topics[:topic_number], fewer, *config.topics[topic_number + 1 :])
            yield replace(config, topics=topics)
    for name in config.properties:
        yield replace(config, properties={key: value for key, value in config.properties.items() if key != name})


def _fewer_nodes(config: ChaosConfig) -> Iterator[ChaosConfig]:
    """Three nodes; events of others must have been left out before."""
    for node in sorted(config.roles, reverse=True):
        roles = {each: role for each, role in config.roles.items() if each != node}
        brokers = sum("broker" in role for role in roles.values())
        voters = tuple(each for each in config.voters if each != node)
        if config.voters and not voters:
            continue
        if any("controller" in role for role in roles.values()) and all(
            topic.replication_factor <= brokers for topic in config.topics
        ):
            yield replace(config.without_conditions_of(node), roles=roles, voters=voters)


_SIMPLER: tuple[Callable[[ChaosConfig], Iterator[ChaosConfig]], ...] = (
    _fewer_groups,
    _fewer_share_groups,
    _fewer_streams_groups,
    _fewer_applications,
    _fewer_topics,
    _fewer_partitions,
    _fewer_clients,
    _slower_clients,
    _as_usual,
    _fewer_nodes,
)
