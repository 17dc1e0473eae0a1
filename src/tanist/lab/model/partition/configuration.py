"""The configuration of a search: number of brokers, settings, budget of events, and the start."""

from __future__ import annotations

from dataclasses import dataclass, field

from tanist.controller.partitions.recovery_strategy import Strategy
from tanist.lab.model.partition.components import Budget

ACKS_ALL = -1


@dataclass(frozen=True, slots=True)
class Configuration:
    """A search over one partition. `start` are steps that are taken before the search begins, as
    `steps.Label` writes them; their costs are not taken from the budget.
    """

    name: str
    about: str
    budget: Budget
    brokers: int = 3
    replication_factor: int = 3
    min_isr: int = 2
    strategy: Strategy = Strategy.NONE
    recovery_manager: bool = True
    elr: bool = True
    acks: int = ACKS_ALL
    """Of all produce requests."""
    split_fetches: bool = False
    """Whether a fetch and its answer are messages that may be late or lost. One step otherwise (`model`)."""
    records_a_fetch: int | None = None
    """None: all records."""
    checkpoints: bool = False
    """Whether a restarted replica may find its newest high watermark, and not only an old one."""
    start: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not 1 <= self.replication_factor <= self.brokers <= 5:
            raise ValueError(f"{self.replication_factor} replicas on {self.brokers} brokers")
        if not self.min_isr >= 1:
            raise ValueError(f"min.insync.replicas is {self.min_isr}")
