"""On a terminal of 80 columns no line of any command is longer, but for a word (a path, an address) that is."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios

import pytest

from tests.cli import forked
from tests.cli.command_cases import ALL, CASES, invoke, words_of

COLUMNS = 80
SLOW = ("demo", "incident", "jepsen", "lab report")
KAFKA_S = {
    "topics describe": "the lines of `kafka-topics --describe`, which scripts read",
    "events": "the fields of an event have no bound",
    "logs": "the nodes' own lines",
    "reassign plan": "JSON, for a file",
}
"""Their lines are as long as they are elsewhere."""
LATE = ("transactions find-hanging", "transactions abort")
"""The transaction may have ended by itself when a slow machine comes to them: then it is for their errors to fit."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shown(words: list[str], *, stdin: bytes = b"") -> tuple[int, list[str]]:
    """The exit code, and the lines of a terminal that has 80 columns, without what was overwritten (progress)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    source, sink = os.pipe()
    os.write(sink, stdin)
    os.close(sink)
    pid = forked.begin(words, source, slave, slave)
    os.close(slave)
    os.close(source)
    found = b""
    try:
        while part := os.read(master, 65536):
            found += part
    except OSError:  # the last one at the other end has gone
        pass
    os.close(master)
    text = _CONTROL.sub("", found.decode(errors="replace")).replace("\r\n", "\n")
    return forked.ended(pid), [line.rpartition("\r")[2].rstrip() for line in text.split("\n")]


def too_long(lines: list[str]) -> list[str]:
    """Lines that could be broken: no word of theirs is to blame."""
    return [
        line
        for line in lines
        if len(line.expandtabs()) > COLUMNS and max(len(word) for word in line.split()) <= COLUMNS // 2
    ]


def case(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.long) if name in SLOW else name


@pytest.mark.parametrize("name", [case(name) for name in CASES if name in ALL and name not in KAFKA_S])
def test_a_command_s_output(names: dict[str, str], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    one = CASES[name]
    for line in one.before:
        assert invoke(line, names).exit_code == 0, line
    try:
        code, lines = shown(words_of(f"{name} {one.arguments}", names, one.data), stdin=one.stdin.encode())
    finally:
        for line in one.after:
            invoke(line, names)
    assert code == one.code or name in LATE, "\n".join(lines)
    assert not too_long(lines), "\n".join(too_long(lines))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("lab run --seeds 1..3 --situations", 0),
        ("lab run --seeds 1 --mutate A1 --shrink 3 --out {report}", 1),
        ("lab run --seeds 1..1 --mutate A2 --shrink 0 --out {report}", None),
        ("lab check --list", 0),
        ("lab check --mutate A2", 1),
        ("lab mutants A1 A38 --by model", 0),
        ("lab mutants A1 --by simulator", 0),
        ("lab replay 3 --all", 0),
        ("what-if --states 300", 0),
        ("groups describe {group}", 0),
        ("configs describe --broker all --all", 0),
    ],
)
def test_what_is_long_elsewhere(names: dict[str, str], arguments: str, code: int | None) -> None:
    ended, lines = shown(words_of(arguments, names))
    assert code in (None, ended), "\n".join(lines)
    assert not too_long(lines), "\n".join(too_long(lines))


@pytest.mark.parametrize("name", list(ALL))
def test_help(name: str) -> None:
    _, lines = shown([*name.split(), "--help"])
    assert not too_long(lines), "\n".join(too_long(lines))
