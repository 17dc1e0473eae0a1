"""The text of a properties file, as `java.util.Properties` reads and writes it.

Owns only the syntax: comments, continuation lines, separators, escapes; and that of a list of folders, which everybody
who looks for a node's logs has to read alike. `config` gives the keys their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

_COMMA = re.compile(r"(\\*),")
_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ValueError):
    """Text that is no properties file."""


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values; the last value of a repeated key counts. `PropertiesError` for a bad \\u escape."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        end = _key_end(line)
        rest = line[end:].lstrip(_BLANK)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANK)
        properties[_unescape(line[:end], number)] = _unescape(rest, number)
    return properties


def encode_properties(properties: Mapping[str, str]) -> str:
    """The text that gives these properties, a line for each. Names are Kafka's, and need no escape."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in properties.items())


def split_paths(text: str) -> tuple[str, ...]:
    """The folders of a list such as log.dirs; none of an empty one.

    Kafka splits at every comma, so no folder may have one in its name there. Here a backslash before a comma makes it
    part of a name, and two before one are a backslash; elsewhere a backslash is itself.
    """
    found, name, start = [], "", 0
    for match in _COMMA.finditer(text):
        name += text[start : match.start()] + "\\" * (len(match[1]) // 2)
        start = match.end()
        if len(match[1]) % 2:
            name += ","
        else:
            found.append(name.strip())
            name = ""
    found.append((name + text[start:]).strip())
    return () if found == [""] else tuple(found)


def join_paths(paths: Iterable[str]) -> str:
    """The list that `split_paths` takes apart again. As Kafka has it, if no folder has a comma in its name."""
    escaped = [_COMMA.sub(r"\1\1\\,", path) for path in paths]
    return ",".join(_doubled_at_the_end(path) for path in escaped[:-1]) + ("," if escaped[1:] else "") + escaped[-1]


def _doubled_at_the_end(path: str) -> str:
    return path + path[len(path.rstrip("\\")) :]


def log_directories(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The folders that log.dirs names, or log.dir; none if neither is there. Kafka takes both for lists."""
    return split_paths(properties.get("log.dirs") or properties.get("log.dir") or "")


def _escaped(value: str) -> str:
    """In ASCII, because Java reads the file as Latin-1."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\f", "\\f")
    if not escaped.isascii():
        units = memoryview(escaped.encode("utf-16-be")).cast("B")
        codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
        escaped = "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)
    return f"\\{escaped}" if escaped.startswith((" ", "\t")) else escaped


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, without comments and blank lines; and where each began."""
    pending: list[str] = []
    start = 0
    # Not splitlines(): it also splits at form feeds and Unicode's line separators, which are content here.
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = raw.lstrip(_BLANK)
        if not pending:
            if not line or line[0] in "#!":
                continue
            start = number
        if _continues(line):
            pending.append(line[:-1])
            continue
        yield start, "".join(pending) + line
        pending = []
    if pending:
        yield start, "".join(pending)


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _key_end(line: str) -> int:
    escaped = False
    for position, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "=: \t\f":
            return position
    return len(line)


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            if character != "\\":
                out.append(character)
            continue
        escape = text[position]
        position += 1
        if escape == "u":
            digits = text[position : position + 4]
            if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise PropertiesError(f"line {line}: \\u must be followed by four hexadecimal digits, not {digits!r}")
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(escape, escape))
    # Two \u escapes can be one character beyond the first 65,536: join the surrogates, replace a lone one.
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
