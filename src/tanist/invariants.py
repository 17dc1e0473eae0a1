"""What must hold whenever a node's state has changed, in production as in the simulator.

Owns `InvariantError`. Each invariant is an `if ... raise` where the state changes, and has a row in docs/replication.md
with what it costs. A request, an answer or a record of another node that cannot be right is *refused*; that is no
invariant: nothing that comes from outside may raise an `InvariantError`.
"""

from __future__ import annotations


class InvariantError(Exception):
    """State that no input brings about: this program is wrong, or its memory is. The state must not be used again."""

    def __init__(self, invariant: str, **values: object) -> None:
        super().__init__(invariant)
        self.invariant = invariant
        """What should have held, as a sentence."""
        self.values = values
        """What was found instead."""

    def __str__(self) -> str:
        found = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"broken invariant: {self.invariant} ({found})"
