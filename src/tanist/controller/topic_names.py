"""Valid names of topics.

Owns Kafka's rules for names: length, characters, and that no two topics have names whose metrics would be the same.
Knows names only.
"""

from __future__ import annotations

from collections.abc import Iterable

MAX_NAME_LENGTH = 249
_LEGAL_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def name_error(name: str) -> str | None:
    """The reason why a string cannot be a topic's name, in Kafka's words, or None."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL_CHARACTERS.issuperset(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'"
        )
    return None


def _metric_name(name: str) -> str:
    """Names that differ only in '.' and '_' would share their metrics, so Kafka refuses the second."""
    return name.replace(".", "_")


class TakenNames:
    """The names taken so far, by the name under which their metrics go. Filled only when a name could collide."""

    __slots__ = ("_existing", "_new", "_taken")

    def __init__(self, existing: Iterable[str]) -> None:
        self._existing = existing
        self._taken: dict[str, str] | None = None
        self._new: dict[str, str] = {}

    def collision(self, name: str) -> str | None:
        metric_name = _metric_name(name)
        if name == metric_name and "_" not in name:
            return None
        if self._taken is None:
            self._taken = {_metric_name(each): each for each in self._existing if "." in each or "_" in each}
        return self._taken.get(metric_name) or self._new.get(metric_name)

    def add(self, name: str) -> None:
        self._new[_metric_name(name)] = name
