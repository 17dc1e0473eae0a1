"""The properties of the transactions' model that a state can break: X1, X2, X3 and X7 (`model`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tanist.coordinator.transactions.state import ONGOING, PREPARED
from tanist.lab.model.steps import Violation
from tanist.lab.model.transactions.state import CoordinatorState, Ghosts, Outcomes

_ENDS: Final = ("committed", "aborted")


def violation_in(known: CoordinatorState, found: Sequence[Outcomes], acknowledged: Ghosts) -> Violation | None:
    """`found`: the outcomes in each partition."""
    idle = known.values is not None and known.pending is None and not known.left
    settled = idle and known.values is not None and known.values.state not in (*PREPARED, ONGOING)
    if idle and known.values is not None and known.values.state in PREPARED:
        return Violation("X7", "a transaction is prepared, and nobody writes its markers")
    for index, outcomes in enumerate(found):
        if outcomes.wrong:
            return Violation("X3", f"in partition {index} {outcomes.wrong}")
        if settled and outcomes.open:
            return Violation("X7", f"transaction {outcomes.open[0]} is open in partition {index}, and ended")
    committed, aborted = (set[int]().union(*(getattr(each, name) for each in found)) for name in _ENDS)
    if torn := committed & aborted:
        return Violation("X1", f"transaction {min(torn)} is committed in one partition and aborted in another")
    if lost := aborted & acknowledged.committed:
        return Violation("X2", f"transaction {min(lost)} was acknowledged as committed, and is aborted")
    if shown := committed & acknowledged.aborted:
        return Violation("X2", f"transaction {min(shown)} was acknowledged as aborted, and is committed")
    if unasked := committed - acknowledged.asked:
        return Violation("X1", f"transaction {min(unasked)} is committed before its client has asked for it")
    if settled:
        for attempt in acknowledged.committed:
            if not all(attempt in each.committed for each in found):
                return Violation("X2", f"transaction {attempt} was acknowledged as committed, and is not there")
    return None
