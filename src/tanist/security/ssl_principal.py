"""The principal of a client with a certificate: its subject as text, and `ssl.principal.mapping.rules`.

Owns the text of a distinguished name, which is what Java's `X500Principal.getName()` gives (RFC 2253): ACLs and
`super.users` of an Apache Kafka cluster name it. And the rules that shorten it (KIP-371), as SslPrincipalMapper applies
them. It reads bytes that a certificate authority has signed, and must still take any bytes: `ValueError`, never more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tanist.security.principal import ANONYMOUS, USER, Principal

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""Those that RFC 2253 names. All others are written as numbers, with their values in hexadecimal."""

_STRINGS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
"""Tags: UTF8, Printable, T61, IA5, General, BMP. Others are written in hexadecimal, UniversalString too."""

_ESCAPED: Final = frozenset(',=+<>#;"\\')
_SEQUENCE, _SET, _OBJECT_ID, _VERSION = 0x30, 0x31, 0x06, 0xA0


# -- a subject as text


def subject_name(certificate: bytes) -> str:
    """The subject of a certificate in DER. `ValueError` if these bytes are none."""
    tag, whole = _only(certificate)
    parts = [part for part, _ in _values(whole)] if tag == _SEQUENCE else []
    fields = list(_values(parts[0])) if parts else []
    if fields and fields[0][1][0] == _VERSION:
        del fields[0]
    if len(fields) < 5:  # serial number, algorithm, issuer, validity, subject
        raise ValueError("not a certificate")
    return distinguished_name(fields[4][1])


def distinguished_name(name: bytes) -> str:
    """A name in DER, its most special part first. `ValueError` if these bytes are none."""
    tag, content = _only(name)
    if tag != _SEQUENCE:
        raise ValueError("a name is no sequence")
    parts = []
    for attributes, _ in _values(content):
        part = "+".join(_attribute(attribute) for attribute, _ in _values(attributes))
        parts.append(part)
    return ",".join(reversed(parts))


def _attribute(content: bytes) -> str:
    values = list(_values(content))
    if len(values) != 2 or values[0][1][0] != _OBJECT_ID:
        raise ValueError("an attribute is no pair of type and value")
    number = _dotted(values[0][0])
    data, whole = values[1]
    keyword = _KEYWORDS.get(number)
    if keyword is None or whole[0] not in _STRINGS:
        return f"{keyword or number}=#{whole.hex()}"
    return f"{keyword}={_escaped(data.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    characters = [f"\\{each}" if each in _ESCAPED else "\\00" if each == "\0" else each for each in text]
    joined = "".join(characters)
    lead = len(joined) - len(joined.lstrip(" \r"))
    if lead == len(joined):
        return "\\".join(["", *joined]) if joined else ""
    trail = len(joined.rstrip(" \r"))
    return (
        "".join(f"\\{each}" for each in joined[:lead])
        + joined[lead:trail]
        + "".join(f"\\{each}" for each in joined[trail:])
    )


def _dotted(content: bytes) -> str:
    if not content or content[-1] & 0x80:
        raise ValueError("an object id that ends early")
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - first * 40, *numbers[1:])))


def _values(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(content, the whole value) of each value in DER."""
    at = 0
    while at < len(content):
        start, length = _header(content, at)
        if start + length > len(content):
            raise ValueError("a value that ends early")
        yield content[start : start + length], content[at : start + length]
        at = start + length


def _only(data: bytes) -> tuple[int, bytes]:
    start, length = _header(data, 0)
    if start + length != len(data):
        raise ValueError("not one value")
    return data[0], data[start:]


def _header(data: bytes, at: int) -> tuple[int, int]:
    """Where the content begins, and its length."""
    if at + 2 > len(data):
        raise ValueError("a value that ends early")
    length = data[at + 1]
    if length < 0x80:
        return at + 2, length
    count = length & 0x7F
    if not 1 <= count <= 4 or at + 2 + count > len(data):
        raise ValueError("a value of no length that DER has")
    return at + 2 + count, int.from_bytes(data[at + 2 : at + 2 + count], "big")


# -- `ssl.principal.mapping.rules`

_RULE: Final = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER: Final = re.compile(_RULE)
_JAVA_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")


class NoMatchingRule(ValueError):
    """A certificate whose name no rule takes: its owner does not get in."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str] | None
    """None: DEFAULT."""
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        # Java replaces all that it finds, and finds the empty end of a name behind it as Python does.
        mapped = self.pattern.sub(lambda match: _expanded(self.replacement, match), name)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped


class PrincipalMapping:
    """The rules of a node. `ValueError` if they cannot be read."""

    def __init__(self, rules: str = "DEFAULT") -> None:
        self._text = rules.strip()
        self._rules: list[_Rule] = []
        for each in _SPLITTER.finditer(self._text):
            rule = each[1]
            parsed = _PARSER.match(rule)
            if parsed is None or parsed.end() != len(rule):
                left = rule[parsed.end() :] if parsed is not None else rule
                raise ValueError(f"Invalid rule: `{rule}`, unmatched substring: `{left}`")
            if parsed[1] is not None:
                self._rules.append(_Rule(None, "", ""))
            elif parsed[2] is not None:
                try:
                    pattern = re.compile(_JAVA_GROUP.sub("(?P<", parsed[2]))
                except re.error as error:
                    raise ValueError(f"Invalid rule: `{rule}`: {error}") from None
                self._rules.append(_Rule(pattern, parsed[4], parsed[6]))

    def name_of(self, distinguished_name: str) -> str:
        """What the first rule that takes it makes of a name. `NoMatchingRule` if none does."""
        for rule in self._rules:
            mapped = rule.apply(distinguished_name)
            if mapped is not None:
                return mapped
        raise NoMatchingRule(f"No rules apply to {distinguished_name}, rules {self._text}")

    def principal_of(self, peer_identity: str | None) -> Principal:
        """Whose certificate it is; anonymous without one."""
        return ANONYMOUS if peer_identity is None else Principal(USER, self.name_of(peer_identity))


def _expanded(replacement: str, match: re.Match[str]) -> str:
    """The replacement in Java's notation: $1, ${name}, and a backslash before what is meant literally.

    A group that the pattern does not have is literal, if the pattern has any (as in Apache Kafka).
    """
    groups = match.re.groups
    made, at = [], 0
    while at < len(replacement):
        character = replacement[at]
        at += 1
        if character == "\\" and at < len(replacement):
            made.append(replacement[at])
            at += 1
        elif character == "$" and at < len(replacement) and replacement[at].isdigit() and replacement[at].isascii():
            group = int(replacement[at])
            at += 1
            if group > groups:
                made.append(f"${group}")
                continue
            while at < len(replacement) and replacement[at].isdigit() and group * 10 + int(replacement[at]) <= groups:
                group = group * 10 + int(replacement[at])
                at += 1
            made.append(match[group] or "")
        elif character == "$" and (named := re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}").match(replacement, at)):
            if named[1] not in match.re.groupindex:
                raise NoMatchingRule(f"the replacement names a group {named[1]}, which its pattern does not have")
            made.append(match[named[1]] or "")
            at = named.end()
        else:
            made.append(character)
    return "".join(made)
