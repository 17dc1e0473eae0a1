"""The state of the model as far as the mapping has to know it: to place a step, and to tell what stays the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tanist.lab.trace.recording import LifeEnded
from tanist.lab.trace.steps import Step

Isr = frozenset[int]


@dataclass(frozen=True, slots=True)
class Committed:
    """The partition as of one partition epoch."""

    leader: int
    leader_epoch: int
    isr: Isr
    elr: Isr
    last_known_elr: Isr | None = None
    """None where it is the last leader: the first part of KIP-966 uses the field for that."""

    def reported(self, partition_epoch: int) -> dict[str, Any]:
        last_known = {} if self.last_known_elr is None else {"last_known_elr": self.last_known_elr}
        return {
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "partition_epoch": partition_epoch,
            "isr": self.isr,
            "elr": self.elr,
            **last_known,
        }


@dataclass(slots=True)
class Span:
    """Steps during which a follower would ask the same."""

    leader: int
    leader_epoch: int
    leo: int
    end: Step | None = None
    """The step that ends it."""


@dataclass(slots=True)
class Replica:
    """A broker and its replica, as the model has them."""

    isr: Isr
    leader: int = 1
    leader_epoch: int = 1
    partition_epoch: int = 1
    hwm: int = 1
    epochs: list[int] = field(default_factory=list)
    """Of each record."""
    fenced: bool = False
    ended: LifeEnded | None = None
    """Its process has ended, and the model's has not yet: there it ends when it starts again."""
    starting: bool = False
    """It runs in the model, and has not got its answer to the registration."""
    least_epoch: int = 1
    """The first partition epoch that it may learn of."""
    proposed: Isr | None = None
    open: set[int] = field(default_factory=set)
    """The leaders to which it has a fetch under way, or answered and not used."""
    spans: list[Span] = field(default_factory=list)

    @property
    def leo(self) -> int:
        return len(self.epochs) + 1
