"""The same step to both controllers, and what came of it on each side.

Owns the comparison after a step: answers, partitions, brokers. What Apache's controller makes otherwise by a rule of
`docs/rules.md` is kept apart from a difference that no rule explains. A topic that has parted ways is left alone from
then on; once the brokers have, the sequence is over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from tanist.client.admin import BROKER_RESOURCE
from tanist.controller.configs.settings import MIN_INSYNC_REPLICAS
from tanist.controller.image.partition_state import PartitionState
from tanist.lab.scenarios.deviations import Deviation, Explained, Step, deviations
from tests.interop.controllers.settings_steps import DELETE, SET, Configure, Replace, Resource, resets
from tests.interop.controllers.side import FEATURES, LATEST, Key, Side, View, broker_view, partition_view
from tests.interop.controllers.steps import (
    Answer,
    AssignDirectories,
    DeleteTopic,
    Heartbeat,
    Reassign,
    Register,
    SetConfig,
    Unregister,
    directories,
)
from tests.interop.controllers.steps import Step as Asked

CRASH = Deviation("55", "nothing of a deleted topic is left in the broker -> ELR index")
TWICE = Deviation(
    "55", "a broker that enters an ELR again is in the broker -> ELR index once, and leaves by one change"
)
STOPPED = Deviation("81, 94", "a broker that was asked to stop has no session any more")
FINAL = Deviation("76, 90", "a controlled shutdown ends with a new registration only")
DIRECTORIES_FIRST = Deviation("48", "a broker whose directories have failed is unfenced afterwards")
BROKER_VALUES = Deviation("", "the configurations of brokers are judged by the controller too")


CLUSTER: Resource = (BROKER_RESOURCE, "")
DUPLICATE = "DUPLICATE_BROKER_REGISTRATION"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the controllers do not agree about. `deviation`: the rule by which that is as it should be."""

    step: Asked
    what: str
    apache: object
    tanist: object
    before: PartitionState | None = None
    deviation: Deviation | None = None

    def __str__(self) -> str:
        lines = [f"{self.what} after {self.step}", f"  apache: {self.apache}", f"  tanist: {self.tanist}"]
        if self.before is not None:
            lines.append(f"  before: {self.before}")
        return "\n".join(lines)


class _Moment:
    """What both sides were when a step came."""

    def __init__(self, step: Asked, apache: Side, tanist: Side) -> None:
        self.step = step
        self.partitions = tanist.partitions()
        self.elr = tanist.image.elr_enabled
        self.minima = {key: tanist.image.min_insync_replicas(key[0]) for key in self.partitions}
        self.eligible = {key: set(state.elr) for key, state in apache.partitions().items()}
        self.min_isr_of = _min_isr_of(step, tanist)
        broker_id = getattr(step, "broker_id", None)
        self.broker = None if broker_id is None else tanist.image.brokers.get(broker_id)
        self.leads_alike = broker_id is None or apache.leads_any(broker_id) == tanist.leads_any(broker_id)

    def broker_rule(self, theirs: Answer, ours: Answer, stopped: Collection[int]) -> Deviation | None:
        """The rule by which the controllers treat a broker differently from here on. `stopped`: asked to stop."""
        step, broker = self.step, self.broker
        if broker is None or not broker.fenced:
            return None
        if isinstance(step, Register) and theirs["error"] == DUPLICATE != ours["error"]:
            return STOPPED if step.broker_id in stopped else None
        if isinstance(step, Heartbeat) and not step.want_fence:
            return FINAL if broker.in_controlled_shutdown else DIRECTORIES_FIRST if step.directory_lost else None
        return None

    def rule(self, key: Key, after: PartitionState | None, ours: Answer, differing: frozenset[str]) -> Deviation | None:
        """The rule by which a partition differs in these fields."""
        before = self.partitions.get(key)
        if before is None or after is None:
            return None
        step = self.step
        reassigns = isinstance(step, Reassign) and (step.topic, step.partition) == key
        cancels = isinstance(step, Reassign) and step.replicas is None
        event = Step(
            before=before,
            after=after,
            elr=self.elr,
            min_isr=self.minima[key],
            first_replicas=len(self.partitions.get((key[0], 0), before).replicas),
            unregistered=step.broker_id if isinstance(step, Unregister) else None,
            min_isr_written=self.min_isr_of is not None,
            reassigned=reassigns and not cancels,
            cancelled=reassigns and cancels,
            refused=ours.get("error") == "INVALID_REPLICA_ASSIGNMENT",
            in_failed_directory=self._is_in_failed_directory(key),
        )
        return next((each.by for each in deviations(event) if _covers(each, differing)), None)

    def _is_in_failed_directory(self, key: Key) -> bool:
        step = self.step
        if not isinstance(step, AssignDirectories) or self.broker is None:
            return False
        where = {directories(step.broker_id)[which] for *replica, which in step.replicas if tuple(replica) == key}
        return not where <= set(self.broker.directories)


def _min_isr_of(step: Asked, side: Side) -> Resource | None:
    """The resource whose min.insync.replicas the step writes, if it does."""
    if isinstance(step, SetConfig):
        return (step.resource_type, step.resource) if step.is_min_isr else None
    if isinstance(step, Configure | Replace) and MIN_INSYNC_REPLICAS in step.names(side):
        return step.resource
    return None


def _names_a_bound(theirs: Answer, ours: Answer) -> bool:
    """4.3.1 says which property bounds a group's configuration; 4.4.0 and ours say the bounds."""
    there, here = str(theirs["message"]), str(ours["message"])
    name, must, _ = here.partition(" must be ")
    return bool(must) and there.startswith(f"{name} must be ") and there.rpartition(" ")[2].startswith("group.")


def _names_itself(theirs: Answer, ours: Answer) -> bool:
    """A controller that has not got a version says so of itself; ours has it, and names a broker that has not."""
    there, here = (str(each["message"]).partition(" only supports ") for each in (theirs, ours))
    (says, of_itself, _), (_, of_broker, broker) = (
        there[0].rpartition(" Local controller "),
        here[0].rpartition(" Broker "),
    )
    return bool(of_itself and of_broker) and broker.isdigit() and here[0].startswith(says) and there[2] == here[2]


def _covers(explained: Explained, differing: frozenset[str]) -> bool:
    # Where there are other replicas there are other directories.
    return differing <= explained.fields | ({"directories"} if "replicas" in explained.fields else set())


@dataclass(slots=True)
class Comparison:
    """One sequence, a step at a time. `differences` are those that nothing explains."""

    apache: Side
    tanist: Side
    brokers: Collection[int] = ()
    metadata_version: int = LATEST
    """The level that every sequence starts with."""
    steps: Counter[str] = field(default_factory=Counter)
    deviations: Counter[Deviation] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    apart: dict[str, Deviation | None] = field(default_factory=dict)
    """Topics that have parted ways, and why."""
    over: bool = False
    _cleared: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """By topic, who was in an ELR that Apache's controller has cleared: its index still has them (rule 55)."""
    _stopped: set[int] = field(default_factory=set)
    _ghosts: set[int] = field(default_factory=set)
    """Those of topics that are no more."""

    def prepare(self, step: Asked) -> None:
        """A step before or after the sequence, whose outcome on either side does not matter."""
        for side in (self.apache, self.tanist):
            step.act(side)

    def reset_settings(self) -> None:
        """Features and the cluster's configurations as every sequence finds them."""
        for side in (self.apache, self.tanist):
            for step in resets(side, self.metadata_version):
                step.act(side)
            self._set(side, CLUSTER, dict.fromkeys(side.image.configs.get(CLUSTER, {}), None))

    def register_all_features(self, broker_id: int) -> None:
        """A broker that lacked features would hold up the sequences to come."""
        for side in (self.apache, self.tanist):
            broker = side.image.brokers.get(broker_id)
            if broker is not None and dict(broker.features) != dict(FEATURES):
                Register(broker_id, clean=True, incarnation=broker.incarnation_id).act(side)

    @staticmethod
    def _set(side: Side, resource: Resource, values: Mapping[str, str | None]) -> None:
        changes = [(name, DELETE if value is None else SET, value) for name, value in values.items()]
        if changes:
            Configure(resource, tuple(changes)).act(side)

    def topics(self) -> list[str]:
        return sorted({topic for side in (self.apache, self.tanist) for topic, _ in side.partitions()})

    def play(self, step: Asked) -> None:
        moment = _Moment(step, self.apache, self.tanist)
        theirs, ours = step.act(self.apache), step.act(self.tanist)
        self.steps[type(step).__name__] += 1
        parted = CRASH if self._has_crashed(step, theirs) else moment.broker_rule(theirs, ours, self._stopped)
        if parted is not None and theirs != ours:
            self._note(Difference(step, "the answer", theirs, ours, deviation=parted))
            self.over = True
            return
        if self._is_judged_here(step, theirs, ours):
            self._note(Difference(step, "the answer", theirs, ours, deviation=BROKER_VALUES))
            kept = self.tanist.image.configs.get(step.resource, {})
            self._set(self.apache, step.resource, {name: kept.get(name) for name, *_ in step.changes})
            return
        rules = self._compare_partitions(moment, ours)
        self._compare_answers(moment, theirs, ours, rules)
        if not self.over:
            self._compare_brokers(step)
            self._compare_settings(step)
        self._remember(moment, ours)

    def _note(self, difference: Difference) -> None:
        if difference.deviation is None:
            self.differences.append(difference)
            self.over = True
        else:
            self.deviations[difference.deviation] += 1

    # -- partitions

    def _compare_partitions(self, moment: _Moment, ours: Answer) -> dict[Key, Deviation]:
        """The rules by which partitions differ now."""
        rules: dict[Key, Deviation] = {}
        for key, there, here in list(self._pairs()):
            if there == here:
                continue
            differing = frozenset(name for name in there.keys() | here.keys() if there.get(name) != here.get(name))
            rule = moment.rule(key, self.tanist.partition(*key), ours, differing)
            if rule is None and differing == {"partition_epoch"} and self._is_listed_twice(moment.step, key[0]):
                rule = TWICE
            if rule is not None:
                rules[key] = rule
            self.apart.setdefault(key[0], rule)
            self._note(
                Difference(
                    moment.step,
                    f"{key[0]}-{key[1]}",
                    {name: there.get(name) for name in sorted(differing)},
                    {name: here.get(name) for name in sorted(differing)},
                    moment.partitions.get(key),
                    rule,
                )
            )
        return rules

    def _pairs(self) -> Iterator[tuple[Key, View, View]]:
        """Both views of each partition that has not parted ways before; an empty one where it does not exist."""
        there, here = self.apache.partitions(), self.tanist.partitions()
        for key in sorted(there.keys() | here.keys()):
            if key[0] not in self.apart:
                yield (
                    key,
                    partition_view(there[key]) if key in there else {},
                    partition_view(here[key]) if key in here else {},
                )

    # -- answers

    def _compare_answers(self, moment: _Moment, theirs: Answer, ours: Answer, rules: dict[Key, Deviation]) -> None:
        step = moment.step
        differing = sorted(
            name
            for name in theirs.keys() | ours.keys()
            if theirs.get(name) != ours.get(name) and name.rpartition("-")[0] not in self.apart
        )
        if not differing:
            return
        if differing == ["message"] and (_names_a_bound(theirs, ours) or _names_itself(theirs, ours)):
            return
        rule = None
        if isinstance(step, Reassign) or hasattr(step, "topic"):
            rule = rules.get((str(getattr(step, "topic", "")), int(getattr(step, "partition", 0))))
        if rule is None and not moment.leads_alike:
            # Whether a broker may go depends on what it leads, and that is another thing on each side by now.
            rule = next((each for each in self.apart.values() if each is not None), None)
            self.over = True
        self._note(
            Difference(
                step,
                "the answer",
                {name: theirs.get(name) for name in differing},
                {name: ours.get(name) for name in differing},
                deviation=rule,
            )
        )

    # -- brokers

    def _compare_brokers(self, step: Asked) -> None:
        for broker_id in self.brokers:
            there, here = broker_view(self.apache, broker_id), broker_view(self.tanist, broker_id)
            if there != here:
                self._note(Difference(step, f"broker {broker_id}", there, here))

    # -- features and configurations

    @staticmethod
    def _is_judged_here(step: Asked, theirs: Answer, ours: Answer) -> TypeGuard[Configure]:
        """Apache's brokers judge their configurations before they forward them, its controller does not.

        Ours does, and before it looks for the broker, as in that order.
        """
        if not isinstance(step, Configure) or step.resource[0] != BROKER_RESOURCE:
            return False
        asked_anyhow = theirs["error"] in ("NONE", "BROKER_ID_NOT_REGISTERED")
        return asked_anyhow and ours["error"] in ("INVALID_CONFIG", "INVALID_REQUEST")

    def _compare_settings(self, step: Asked) -> None:
        there, here = self.apache.image, self.tanist.image
        if there.features != here.features:
            self._note(Difference(step, "the features", there.features, here.features))
        for resource in sorted(there.configs.keys() | here.configs.keys()):
            if resource[1] in self.apart or not self._is_of_this_sequence(resource):
                continue
            theirs, ours = there.configs.get(resource, {}), here.configs.get(resource, {})
            if theirs != ours:
                self._note(Difference(step, f"the configurations of {resource}", theirs, ours))

    def _is_of_this_sequence(self, resource: Resource) -> bool:
        kind, name = resource
        if kind == BROKER_RESOURCE:
            return not name or int(name) in self.brokers
        return name.startswith(f"s{min(self.brokers)}-")

    # -- the defect of rule 55

    def _has_crashed(self, step: Asked, theirs: Answer) -> bool:
        if not isinstance(step, Unregister | Register) or (isinstance(step, Register) and step.clean):
            return False
        return theirs["error"] == "UNKNOWN_SERVER_ERROR" and step.broker_id in self._ghosts

    def _is_listed_twice(self, step: Asked, topic: str) -> bool:
        """A broker that is in an ELR again, out of which a ClearElrRecord took it: Apache's index has it twice."""
        if not isinstance(step, Unregister | Register) or (isinstance(step, Register) and step.clean):
            return False
        return step.broker_id in self._cleared[topic]

    def _remember(self, moment: _Moment, ours: Answer) -> None:
        step = moment.step
        if isinstance(step, Heartbeat) and ours.get("should_shut_down"):
            self._stopped.add(step.broker_id)
        elif isinstance(step, Register) and ours["error"] == "NONE":
            self._stopped.discard(step.broker_id)
        if moment.min_isr_of is not None:
            for (topic, _), members in moment.eligible.items():
                if moment.min_isr_of[0] == BROKER_RESOURCE or moment.min_isr_of[1] == topic:
                    self._cleared[topic] |= members
        elif isinstance(step, DeleteTopic):
            self._ghosts |= self._cleared.pop(step.topic, set())
