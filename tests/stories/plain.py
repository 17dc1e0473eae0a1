"""What is different each time a story is played, made the same: ports, folders, ids, times, who is the controller.

Pure. Only what cannot be the story's point is replaced: who leads, who is in sync and how many records there are is
kept as printed.
"""

from __future__ import annotations

import re

_REPLACED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^\[[-0-9]+ [:,0-9]+\] ", re.MULTILINE), ""),
    (re.compile(r"127\.0\.0\.1:\d+(,127\.0\.0\.1:\d+)*"), "HOST:PORT"),
    (re.compile(r"^port \d+ is taken: using \d+\n", re.MULTILINE), ""),
    (re.compile(r"^waiting for node \d+: .*\n", re.MULTILINE), ""),  # said where it takes longer than usual
    (re.compile(r"ready in [.\d]+ s"), "ready in T s"),
    (re.compile(r", controller \d+, data in \S+"), ", controller N, data in ./tanist-data"),
    (re.compile(r"\bTopicId: \S+"), "TopicId: ID"),
    (re.compile(r"\bepoch \d+"), "epoch E"),
    (re.compile(r", at least \d+ of them committed"), ""),  # as old as the high watermark that a replica knows
    (re.compile(r"'tanist-recovery-\S+'"), "'tanist-recovery-USER'"),
    (re.compile(r"\d+ bytes in \d+ files? (were|was) not synced"), r"N bytes in N files \1 not synced"),
    (re.compile(r"\b\d{13}-(\d+)-(\d+)\b"), r"ENTRY-\1-\2"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?"), "TIME"),
)

_IN_ANY_ORDER = re.compile(r"\b(Isr|Elr|LastKnownElr): (\d+(?:,\d+)+)")


def plain(printed: str) -> str:
    """The text as a story has it."""
    for pattern, instead in _REPLACED:
        printed = pattern.sub(instead, printed)
    printed = _IN_ANY_ORDER.sub(lambda found: f"{found[1]}: {_sorted(found[2])}", printed)
    return "\n".join(line.replace("\t", "  ").rstrip() for line in printed.splitlines() if line.strip())


def _sorted(brokers: str) -> str:
    return ",".join(sorted(brokers.split(","), key=int))
