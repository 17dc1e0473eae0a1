"""Plays: short stories of replication, acted by whole nodes in virtual time.

Owns the catalogue: each play's settings, its cluster, and its steps. A step says what is done to the cluster, and never
what comes of it: the cluster decides that, and who shows it looks (`web/simulated/findings.py`, `lab demo`). The
sentence about the ending is made from the records that a consumer reads. Some settings break a rule on purpose, to show
what the rule is for (`lab/mutations`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from tanist.client.admin import ElectionType, elect_request
from tanist.lab import last_replica_standing
from tanist.lab.mutations.patching import Breaks, replaced
from tanist.lab.mutations.rules_of_replicas import a24_looks_for_no_divergence, a25_cuts_at_the_high_watermark
from tanist.lab.stage import Ending, Setup, Stage, numbers_text
from tanist.text import counted

Settings = Mapping[str, str]
Steps = Iterator[tuple[str, str]]
"""(title, deed) of each step, before it is taken."""

TOPIC = "orders"
_CONFIG = {
    "broker.session.timeout.ms": "2500",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "1500",
    "tanist.unclean.recovery.grace.ms": "1000",
}
_ELECT_LEADERS_VERSION = 3
_EPOCHS, _HIGH_WATERMARK = "leader epochs", "the high watermark"


@dataclass(frozen=True, slots=True)
class PlayChoice:
    """A choice before the play begins; the first one is the default."""

    name: str
    choices: tuple[str, ...]
    what: str


@dataclass(frozen=True, slots=True)
class Play:
    """One story."""

    title: str
    about: str
    setup: Callable[[Settings], Setup]
    steps: Callable[[Stage, Settings], Steps]
    settings: tuple[PlayChoice, ...] = ()
    seed: int = 1
    breaks: Callable[[Settings], Breaks | None] = lambda settings: None
    goes_on: bool = False
    """It has no end: a client writes until `Stage.until_us`."""

    def chosen(self, given: Settings) -> dict[str, str]:
        """A value for each setting. `ValueError` for one that is not a choice."""
        unknown = given.keys() - {each.name for each in self.settings}
        if unknown:
            raise ValueError(f"the play has no setting {', '.join(sorted(unknown))}")
        found = {each.name: given.get(each.name, each.choices[0]) for each in self.settings}
        for each in self.settings:
            if found[each.name] not in each.choices:
                raise ValueError(f"{each.name} is one of {', '.join(each.choices)}, not {found[each.name]}")
        return found

    def broken(self, settings: Settings) -> AbstractContextManager[None]:
        """The rules that the settings break are broken while the block runs."""
        breaks = self.breaks(settings)
        return replaced((*(() if breaks is None else breaks()), *self.setup(settings).breaking))


@dataclass(slots=True)
class Acting:
    """A play under way."""

    play: Play
    settings: dict[str, str]
    stage: Stage
    ending: Ending | None = field(default=None)

    @classmethod
    def of(cls, name: str, given: Settings, seed: int | None) -> Acting:
        play = PLAYS[name]
        settings = play.chosen(given)
        return cls(play, settings, Stage(play.setup(settings), play.seed if seed is None else seed))

    def steps(self) -> Steps:
        """Act it. The last step says how it ended. `ScriptError` if the cluster takes another way."""
        yield "", "the cluster starts, and the topic is created"
        self.stage.begin()
        yield from self.play.steps(self.stage, self.settings)
        if not self.play.goes_on:
            self.ending = self.stage.ending()
            yield "the end", ending_text(self.ending)


def ending_text(ending: Ending) -> str:
    """The fate of the records, as a sentence."""
    said = f"{counted(ending.acknowledged, 'record')} acknowledged"
    if ending.refused:
        said += f", {ending.refused} not"
    said += f"; a consumer reads {ending.consumed}: "
    if not ending.lost:
        return said + "nothing is lost"
    said += f"{len(ending.lost)} lost ({numbers_text(ending.lost)})"
    return said + (f", {ending.salvaged} of them in the salvage" if ending.salvaged else "")


def _none(settings: Settings) -> None:
    return None


# -- the Last Replica Standing


def _last_replica(stage: Stage, settings: Settings) -> Steps:
    yield from last_replica_standing.steps(stage)


# -- high watermark and leader epochs (KIP-101)


def _three(settings: Settings) -> Setup:
    return Setup(TOPIC, (3, 2, 1), 3, _CONFIG | {"min.insync.replicas": "2"}, {})


def _truncation(stage: Stage, settings: Settings) -> Steps:
    yield "", "10 records are written"
    stage.write(1, 10)
    stage.run(500)
    yield (
        "record 11",
        "record 11 is written; as soon as broker 3 has it below its high watermark, and broker 1 does not yet, broker "
        "3 loses its power",
    )
    with stage.when(lambda: _stands(stage, 3, 11, 11) and _stands(stage, 1, 11, 10), stage.host(3).lose_power):
        stage.write(11, 11)
    yield "broker 2 fails", "as soon as broker 1 follows broker 2, broker 2 is killed"
    end = 11 if settings["truncation"] == _EPOCHS else 10
    with stage.when(lambda: _follows(stage, 1, 2, end), stage.host(2).kill):
        pass
    stage.until_state(lambda state: state.leader == 1)
    stage.run(500)
    yield "all return", "brokers 2 and 3 start again"
    stage.host(2).start()
    stage.host(3).start()
    stage.until_state(lambda state: len(state.isr) == 3)
    stage.run(500)


def _stands(stage: Stage, broker: int, end: int, high_watermark: int) -> bool:
    hosted = stage.replica(broker)
    return hosted is not None and (hosted.log.log_end_offset, hosted.replica.high_watermark) == (end, high_watermark)


def _follows(stage: Stage, broker: int, leader: int, end: int) -> bool:
    hosted = stage.replica(broker)
    follower = None if hosted is None else hosted.follower
    return follower is not None and follower.leader == leader and follower.log.log_end_offset == end


def _two(settings: Settings) -> Setup:
    return Setup(TOPIC, (2, 1), 2, _CONFIG | {"min.insync.replicas": "1"}, {"flush.messages": "10"})


def _divergence(stage: Stage, settings: Settings) -> Steps:
    yield "", "10 records are written, and flush.messages is 10"
    stage.write(1, 10)
    stage.run(500)
    yield "both fail", "record 11 is written; then broker 1 is killed, and broker 2 loses its power"
    stage.write(11, 11)
    stage.host(1).kill()
    stage.until_state(lambda state: state.isr == (2,))
    stage.host(2).lose_power()
    stage.until_state(lambda state: not state.has_leader)
    yield "broker 2 returns", "broker 2 starts again, and record 12 is written"
    stage.host(2).start()
    stage.until_state(lambda state: state.leader == 2)
    stage.until_led(2)
    stage.persist(12)
    yield "broker 1 returns", "broker 1 starts again; then records 13 and 14 are written"
    stage.host(1).start()
    stage.until_state(lambda state: len(state.isr) == 2)
    stage.write(13, 14)
    stage.run(500)
    yield "broker 2 fails", "broker 2 is killed"
    stage.host(2).kill()
    stage.until_state(lambda state: state.leader == 1)
    stage.until_led(1)


# -- Unclean Recovery


def _recovery_setup(settings: Settings) -> Setup:
    topic = {"flush.messages": "100", "unclean.recovery.strategy": settings["strategy"]}
    return Setup(TOPIC, (1, 2, 3), 3, _CONFIG | {"min.insync.replicas": "2"}, topic)


def _recovery(stage: Stage, settings: Settings) -> Steps:
    strategy = settings["strategy"]
    yield "", "100 records are written; then broker 3 shuts down, and 50 more are written"
    stage.write(1, 100)
    stage.host(3).stop(lambda: None)
    stage.until_state(lambda state: state.isr == (1, 2))
    stage.write(101, 150)
    yield "", "broker 2 is killed; its machine and the page cache stay"
    stage.host(2).kill()
    stage.until_state(lambda state: state.isr == (1,))
    yield "", "broker 1 loses its power"
    stage.host(1).lose_power()
    stage.until_state(lambda state: not state.has_leader)
    if strategy == "Aggressive":
        yield "Aggressive", "broker 3, which was away for the last 50 records, is the first to start again"
        stage.host(3).start()
        stage.until_state(lambda state: state.leader == 3)
        yield "the others", "brokers 1 and 2 start again"
        stage.host(1).start()
        stage.host(2).start()
    elif strategy == "Balanced":
        yield "Balanced", "brokers 3 and 1 start again, and broker 2 does not yet"
        stage.host(3).start()
        stage.host(1).start()
        stage.run(6_000)
        yield "all are back", "broker 2 starts again"
        stage.host(2).start()
    else:
        yield "None", "all three start again"
        for broker in (1, 2, 3):
            stage.host(broker).start()
        stage.run(6_000)
        yield "an operator", "an operator knows that broker 2 was only killed, and designates it"
        request = elect_request(ElectionType.DESIGNATION, TOPIC, desired=(2,), timeout_ms=10_000)
        stage.insist(request, _ELECT_LEADERS_VERSION)
    stage.until_state(lambda state: len(state.isr) == 3)
    stage.until_led()


# -- Jepsen, 2013


_JEPSEN = {
    "Kafka of 2013": ({"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}, False),
    "with KIP-966": ({"min.insync.replicas": "2"}, True),
}


def _jepsen_setup(settings: Settings) -> Setup:
    config, elr = _JEPSEN[settings["cluster"]]
    return Setup("jepsen", (1, 2, 3, 4, 5), 5, _CONFIG, config, elr)


def _jepsen(stage: Stage, settings: Settings) -> Steps:
    yield "", "five replicas; 50 numbers are written with acks=all, one at a time"
    stage.write(1, 50)
    yield (
        "isolated",
        "broker 1 is cut off from the other brokers, not from its client and the controller, and number 51 is written",
    )
    stage.cut(1, 2, 3, 4, 5)
    first = stage.offer(51)
    stage.until_state(lambda state: state.isr == (1,))
    stage.until(lambda: bool(first))
    yield "alone", "39 more are written"
    stage.write(52, 90)
    yield "killed", "broker 1 is killed, and the network is whole again"
    stage.host(1).kill()
    stage.heal()
    stage.run(5_000)
    stage.until_led()
    yield "the end of the test", "the last 10 are written; then broker 1 starts again"
    stage.write(91, 100)
    stage.host(1).start()
    stage.until_state(lambda state: len(state.isr) == 5)
    stage.until_led()


# -- a cluster of your own


def _own_setup(settings: Settings) -> Setup:
    topic = {
        "min.insync.replicas": settings["min.insync.replicas"],
        "unclean.recovery.strategy": settings["strategy"],
        "flush.messages": "50",
    }
    return Setup(TOPIC, (1, 2, 3), 3, _CONFIG, topic, settings["elr"] == "on")


def _own(stage: Stage, settings: Settings) -> Steps:
    yield "", "a client writes a record ten times a second, with acks=all; break what you like"
    while stage.world.now_us < stage.until_us:
        stage.write(stage.asked + 1, stage.asked + 1)
        stage.run(100)


_STRATEGY = PlayChoice("strategy", ("Balanced", "Aggressive", "None"), "unclean.recovery.strategy")
_ELR = PlayChoice("elr", ("on", "off"), "eligible leader replicas")
_KIP = PlayChoice("elr", ("on", "off"), "KIP-966: eligible leader replicas, and a high watermark that waits")

PLAYS: Mapping[str, Play] = {
    "last-replica-standing": Play(
        "The Last Replica Standing",
        "KIP-966's motivation: the last replica of the ISR loses power, and with it records that were acknowledged.",
        lambda settings: last_replica_standing.setup(elr=settings["elr"] == "on"),
        _last_replica,
        (_KIP,),
        seed=last_replica_standing.SEED,
    ),
    "high-watermark": Play(
        "High watermark and leader epoch",
        "A follower learns late that a record is committed. Since KIP-101 it asks its new leader where its last leader "
        "epoch ends, and truncates there. Before, it truncated to its own high watermark, and the record was lost.",
        _three,
        _truncation,
        (PlayChoice("truncation", (_EPOCHS, _HIGH_WATERMARK), "a new follower truncates by"),),
        breaks=lambda settings: a25_cuts_at_the_high_watermark if settings["truncation"] == _HIGH_WATERMARK else None,
    ),
    "divergence": Play(
        "Logs that diverge",
        "With min.insync.replicas 1 no loss is survived: both replicas fail, and one returns, perhaps without the last "
        "record, and writes another at its offset. The other finds out by the leader epochs, truncates, and keeps the "
        "old record in its salvage; where nobody compares epochs the two logs differ from then on.",
        _two,
        _divergence,
        (PlayChoice("divergence", ("found", "not found"), "divergence of leader epochs is"),),
        breaks=lambda settings: a24_looks_for_no_divergence if settings["divergence"] == "not found" else None,
    ),
    "unclean-recovery": Play(
        "Unclean Recovery",
        "One unclean shutdown too many: no replica is known to have everything. Balanced waits for all of LastKnownElr "
        "and elects the longest log, Aggressive waits for nobody, and None leaves it to an operator.",
        _recovery_setup,
        _recovery,
        (_STRATEGY,),
        seed=3,
    ),
    "jepsen": Play(
        "Jepsen's test of 2013",
        "A leader is cut off, its client goes on with it, and it is killed: half of the acknowledged writes were lost.",
        _jepsen_setup,
        _jepsen,
        (PlayChoice("cluster", tuple(_JEPSEN), "the cluster is"),),
    ),
    "your-own": Play(
        "A cluster of your own",
        "Three brokers, one partition, a client that writes without end: the faults are yours.",
        _own_setup,
        _own,
        (PlayChoice("min.insync.replicas", ("2", "1", "3"), "min.insync.replicas"), _STRATEGY, _ELR),
        goes_on=True,
    ),
}
