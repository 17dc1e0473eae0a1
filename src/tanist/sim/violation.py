"""What a checker raises."""

from __future__ import annotations


class Violation(Exception):
    """A property does not hold. `property_id` is its name in the specification (S1-S22, L1-L13), or "crash"."""

    def __init__(self, property_id: str, message: str, now_us: int) -> None:
        super().__init__(property_id, message, now_us)
        self.property_id = property_id
        self.message = message
        self.now_us = now_us

    def __str__(self) -> str:
        return f"{self.property_id} at {self.now_us / 1e6:.6f} s: {self.message}"
