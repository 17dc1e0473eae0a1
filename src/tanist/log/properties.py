"""The text of a properties file, as `java.util.Properties` reads and writes it.

Owns only the syntax: comments, continuation lines, separators, escapes. `config` gives the keys their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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


def _escaped(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\f", "\\f")
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
