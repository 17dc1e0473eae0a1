"""Words for numbers, so that no message says "1 kinds". Every layer may use it; it imports nothing."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None, *, separator: str = "") -> str:
    """A number with its noun: `1 kind`, `2 kinds`, `0 entries`; `separator` between thousands: `1,200 records`."""
    noun = one if number == 1 else many if many is not None else _plural(one)
    return f"{number:{separator}} {noun}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")
