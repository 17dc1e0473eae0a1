"""The next step of a sequence: random, among those that fit the cluster at that moment.

Owns the odds. Most of what is chosen is what brokers and operators would do; some of it is stale, or wrong, as requests
are that were long under way.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from uuid import UUID

from tanist.client.admin import BROKER_RESOURCE, TOPIC_RESOURCE, ElectionType
from tanist.controller.image.image import PartitionState
from tests.interop.controllers.settings_steps import SettingsChoices
from tests.interop.controllers.side import Side
from tests.interop.controllers.steps import (
    AlterPartition,
    AssignDirectories,
    CreateTopic,
    DeleteTopic,
    Elect,
    Epoch,
    Heartbeat,
    Reassign,
    Register,
    SetConfig,
    Step,
    Unregister,
)

BROKERS = 5
_SEEDS = 1_000_000
"""More than anybody plays."""
TOPICS_MAX = 4
MIN_ISR, UNCLEAN_ELECTION = "min.insync.replicas", "unclean.leader.election.enable"


class Choices:
    """The random choices of one sequence. `side` is the controller that is looked at: any, for both are in one state.

    `apart`: topics that are not in one state any more, and are left alone.
    """

    def __init__(self, seed: int, attempt: int, side: Side, apart: Collection[str]) -> None:
        first = BROKERS * (seed + attempt * _SEEDS) + 1
        self.brokers = range(first, first + BROKERS)
        """Ids that no other sequence uses."""
        self._random = random.Random(seed)
        self._side = side
        self._apart = apart
        self._topics = 0
        self.settings = SettingsChoices(self._random, side, f"s{first}")

    def incarnation(self) -> UUID:
        return UUID(int=self._random.getrandbits(128) | 1 << 64)

    def _here(self) -> list[tuple[str, int, PartitionState]]:
        return [
            (topic, number, state)
            for (topic, number), state in sorted(self._side.partitions().items())
            if topic not in self._apart
        ]

    def next(self) -> Step:
        partitions = self._here()
        if not partitions:
            return self.create_topic()
        kinds = (
            (22, self._alter_partition),
            (14, self._unfence),
            (12, self._fence),
            (8, self._shut_down),
            (6, self._register),
            (3, self._unregister),
            (9, self._elect),
            (12, self._reassign),
            (7, self._configure),
            (4, self.create_topic),
            (1, self._delete_topic),
            (3, self._lose_directory),
            (6, self._assign_directories),
            (8, self.settings.features),
            (14, self._configure_anything),
        )
        (choose,) = self._random.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])
        return choose()

    def _percent(self, percent: float) -> bool:
        return self._random.random() * 100 < percent

    def _some(self, values: Sequence[int], least: int, most: int) -> tuple[int, ...]:
        return tuple(self._random.sample(list(values), self._random.randint(least, min(most, len(values)))))

    # -- brokers

    def _broker(self, *, fenced: bool | None = None) -> int:
        """One of the brokers, of the wanted kind if there is one."""
        known = self._side.image.brokers
        fitting = [each for each in self.brokers if each in known and (fenced is None or known[each].fenced == fenced)]
        return self._random.choice(fitting or self.brokers)

    def _unfence(self) -> Step:
        if self._percent(5):
            return Heartbeat(self._broker(), offset=0)
        broker_id = self._broker(fenced=True)
        broker = self._side.image.brokers.get(broker_id)
        if broker is not None and broker.in_controlled_shutdown and not self._percent(3):
            return self._register()  # it has stopped for good, and comes back as another incarnation
        return Heartbeat(broker_id, stale=self._percent(3))

    def _fence(self) -> Step:
        return Heartbeat(self._broker(fenced=False), want_fence=True, stale=self._percent(3))

    def _shut_down(self) -> Step:
        return Heartbeat(
            self._broker(fenced=None if self._percent(10) else False), want_fence=self._percent(10), want_shut_down=True
        )

    def _register(self) -> Step:
        """Of a broker that has stopped, or just so: sequences let the session of the former run out first."""
        return Register(
            self._broker(fenced=None if self._percent(35) else True),
            self._percent(55),
            self.incarnation(),
            self.settings.broker_features(),
        )

    def hasty(self) -> bool:
        """Whether a broker comes back before its former session is over."""
        return self._percent(15)

    def _unregister(self) -> Step:
        return Unregister(self._broker(fenced=None if self._percent(25) else True))

    def _lose_directory(self) -> Step:
        return Heartbeat(self._broker(fenced=None if self._percent(10) else False), directory_lost=True)

    def _assign_directories(self) -> Step:
        """Mostly to the directory that may fail: a broker has more of it to lose then."""
        broker_id = self._broker(fenced=False)
        own = [(topic, number) for topic, number, state in self._here() if broker_id in state.replicas]
        if self._percent(5):
            own = [(topic, number) for topic, number, _ in self._here()]
        return AssignDirectories(
            broker_id, tuple((topic, number, int(self._percent(35))) for topic, number in own if self._percent(80))
        )

    # -- topics

    def create_topic(self) -> Step:
        topics = {topic for topic, _, _ in self._here()}
        if len(topics) >= TOPICS_MAX:
            return self._alter_partition()
        self._topics += 1
        factor = self._random.choice((1, 2, 3, 3, 3, 3, 4))
        assignments = tuple(self._some(self.brokers, factor, factor) for _ in range(self._random.choice((1, 1, 2))))
        config = [(MIN_ISR, str(self._random.choice((1, 2, 2, 2, 3))))] if self._percent(85) else []
        if self._percent(12):
            config.append((UNCLEAN_ELECTION, "true"))
        return CreateTopic(f"s{self.brokers[0]}-{self._topics}", assignments, tuple(config))

    def _delete_topic(self) -> Step:
        topic, _, _ = self._random.choice(self._here())
        return DeleteTopic(topic)

    def _configure(self) -> Step:
        topic, _, _ = self._random.choice(self._here())
        where = (TOPIC_RESOURCE, topic)
        if self._percent(15):
            where = (BROKER_RESOURCE, "")
        elif self._percent(6):
            where = (BROKER_RESOURCE, str(self._broker()))
        if self._percent(30):
            return SetConfig(*where, UNCLEAN_ELECTION, self._random.choice(("true", "false", None)))
        return SetConfig(*where, MIN_ISR, self._random.choice(("1", "2", "2", "3", "4", None)))

    def _configure_anything(self) -> Step:
        return self.settings.configure(sorted({topic for topic, _, _ in self._here()}), self.brokers)

    # -- partitions

    def _alter_partition(self) -> Step:
        partitions = self._here()
        led = [each for each in partitions if each[2].has_leader]
        topic, number, state = self._random.choice(led if led and not self._percent(5) else partitions)
        sender = state.leader if state.has_leader and not self._percent(4) else self._broker()
        return AlterPartition(
            topic,
            number,
            sender,
            tuple((member, self._belief()) for member in self._next_isr(state, sender)),
            stale_sender=self._percent(3),
            leader_epoch_by=self._off(),
            partition_epoch_by=self._off(),
            recovering=self._percent(4),
        )

    def _belief(self) -> Epoch:
        if self._percent(10):
            return "unknown"
        return "stale" if self._percent(3) else "present"

    def _off(self) -> int:
        return self._random.choice((-1, 1)) if self._percent(3) else 0

    def _next_isr(self, state: PartitionState, sender: int) -> tuple[int, ...]:
        """Mostly an expansion by who is there, sometimes a shrink, rarely nonsense."""
        if self._percent(4):
            return self._some(self.brokers, 0, 4)
        known = self._side.image.brokers
        joining = [each for each in state.replicas if each not in state.isr and each in known and known[each].active]
        if joining and self._percent(70):
            return (*state.isr, *self._some(joining, 1, len(joining)))
        leaving = self._random.choice(state.isr) if state.isr else None
        kept = tuple(each for each in state.isr if each != leaving or each == sender)
        return kept if self._percent(75) else tuple(sorted(state.replicas))

    def _elect(self) -> Step:
        kind = self._random.choice((ElectionType.PREFERRED, ElectionType.PREFERRED, ElectionType.UNCLEAN))
        if self._percent(10):
            return Elect(kind)
        topic, number, _ = self._random.choice(self._here())
        return Elect(kind, topic, number if not self._percent(3) else 9)

    def _reassign(self) -> Step:
        partitions = self._here()
        moving = [each for each in partitions if each[2].reassigning]
        if moving and self._percent(45):
            topic, number, _ = self._random.choice(moving)
            return Reassign(topic, number, None)
        topic, number, state = self._random.choice(partitions)
        if self._percent(5):
            return Reassign(topic, number, None)
        wanted = self._some(self.brokers, 1, 4)
        if self._percent(50):
            # As operators do: one replica for another.
            others = [each for each in self.brokers if each not in state.replicas]
            wanted = tuple(state.replicas)
            if others:
                place = self._random.randrange(len(wanted))
                wanted = (*wanted[:place], self._random.choice(others), *wanted[place + 1 :])
        if self._percent(3):
            wanted = (*wanted, wanted[0])
        return Reassign(topic, number, wanted, allow_rf_change=not self._percent(10))
