"""The script of `tanist incident`: the Last Replica Standing, step by step, without KIP-966 and with it.

Owns the words, the commands and what each step waits for. `incident` decides who types the commands, and where.
(The KIP's brokers 0, 1 and 2 are 1, 2 and 3.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tanist.runtime.client.admin import PartitionDescription

TOPIC = "orders"
CONFIG = {
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
}
"""A broker that says nothing is missed after 5 seconds. A busy machine does not fence one that runs."""
TOPIC_CONFIG = {"min.insync.replicas": "2", "flush.messages": "100"}
"""To disk a hundred at a time: a loss of power takes what came since."""
ASSIGNMENT = ((1, 2, 3),)


@dataclass(frozen=True, slots=True)
class Now:
    """The state of the incident."""

    partition: PartitionDescription | None
    """None while no broker can be asked."""
    brokers: frozenset[int]
    """Those that run and are not paused."""
    acknowledged: int
    """Records in the ledger."""
    lost: int | None = None
    """By the account; None while nobody can be asked."""


@dataclass(frozen=True, slots=True)
class Command:
    """The command that the operator types. `$ACKED` is the ledger."""

    words: str
    numbers: tuple[int, int] | None = None
    """Lines for its standard input: `seq` prints them."""

    def __str__(self) -> str:
        typed = f"tanist {self.words}"
        return typed if self.numbers is None else f"seq {self.numbers[0]} {self.numbers[1]} | {typed}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what happens in the story, what the operator does, what it is waited for, and what it means."""

    name: str
    story: str
    commands: tuple[Command, ...]
    until: Callable[[Now], bool]
    means: str
    refused: bool = False
    """Show that a write with acks=all is refused now."""
    counted: bool = False
    """Show the account."""


def _isr(*brokers: int) -> Callable[[Now], bool]:
    return lambda now: now.partition is not None and sorted(now.partition.isr) == sorted(brokers)


EVERYBODY_IN_SYNC = _isr(1, 2, 3)


def _leader(broker: int, *isr: int) -> Callable[[Now], bool]:
    return lambda now: now.partition is not None and now.partition.leader == broker and _isr(*isr)(now)


def _leaderless(now: Now) -> bool:
    return now.partition is not None and now.partition.leader < 0 and set(now.partition.offline) == {3}


def _produce(first: int, last: int) -> Command:
    return Command(f"produce {TOPIC} --ledger $ACKED", (first, last))


def steps(*, elr: bool) -> list[Step]:
    """The steps of one act."""
    return [
        Step(
            "",
            "All three replicas are in sync. A producer writes a hundred records with acks=all.",
            (_produce(1, 100),),
            lambda now: now.acknowledged >= 100,
            "The cluster has acknowledged them: the ledger $ACKED has each one.",
        ),
        Step(
            "T0",
            "The network loses broker 1. A paused broker acts the same: it sends nothing and keeps its records.",
            (Command("pause 1"),),
            _leader(2, 2, 3),
            "Two replicas are left, which is min.insync.replicas. Writes go on.",
        ),
        Step(
            "T0",
            "Fifty more records. Brokers 2 and 3 get them, broker 1 does not. They are not on any disk yet.",
            (_produce(101, 150),),
            lambda now: now.acknowledged >= 150,
            "150 records are acknowledged.",
        ),
        Step(
            "T1",
            "The network loses broker 2 as well. Broker 3 is the last replica standing.",
            (Command("pause 2"),),
            _leader(3, 3),
            "From here on nothing is committed, so broker 2 still has every committed record. The controller "
            "records that: broker 2 is an eligible leader replica (ELR)."
            if elr
            else "From here on nothing is committed, so broker 2 still has every committed record. The controller "
            "does not record that: it knows only the ISR, and that is broker 3.",
            refused=True,
        ),
        Step(
            "T2",
            "Broker 3 loses power: its process dies, and the bytes that were not synced to disk are lost.",
            (Command("crash 3 --lose page-cache"),),
            lambda now: not now.brokers,
            "There is no leader, and no broker answers. The ISR will become empty: the ELR shows which replica has "
            "the records."
            if elr
            else "There is no leader, and no broker answers. The ISR must not become empty, so it is still broker 3.",
        ),
        Step(
            "T3",
            "The network is back, and with it brokers 1 and 2.",
            (Command("resume 1"), Command("resume 2")),
            _leader(2, 1, 2) if elr else _leaderless,
            "Broker 2 is eligible and leads at once. Broker 1 lacks records, so it is not eligible, and follows."
            if elr
            else "Broker 2 has all 150 records, but is not elected: it is not in the ISR. The partition waits for "
            "broker 3, which has lost fifty of them.",
        ),
        Step(
            "T4",
            "The power is back, and broker 3 starts.",
            (Command("start 3"),),
            _leader(2, 1, 2, 3) if elr else _leader(3, 1, 2, 3),
            "Broker 3 reports an unclean shutdown. It follows broker 2 and copies the records that it lost."
            if elr
            else "Broker 3 is in the ISR, so it leads, and that counts as a clean election. Broker 2 truncates the "
            "fifty records that its new leader does not have.",
        ),
        Step(
            "",
            "Compare the acknowledged records with the topic.",
            (Command("account $ACKED"),),
            lambda now: now.lost is not None,
            "No acknowledged record is lost."
            if elr
            else "Fifty acknowledged records are lost, and no producer got an error. But a broker keeps a copy of "
            "records before it truncates them: that is the salvage.",
            counted=True,
        ),
        *(
            []
            if elr
            else [
                Step(
                    "",
                    "Restore the records that the topic lacks.",
                    (Command("salvage list"), Command(f"salvage export --topic {TOPIC} --to topic")),
                    lambda now: now.lost == 0,
                    "Every acknowledged record is there again, once. The restored ones have new, later offsets: "
                    "consumers that had read them read them again.",
                    counted=True,
                )
            ]
        ),
    ]


WITHOUT = "WITHOUT ELR: elections as before KIP-966 (eligible.leader.replicas.version=0)"
WITH = "WITH ELR: KIP-966, as `tanist up` makes it"
