"""`sasl.jaas.config`: a login module and its options, in the notation of JAAS, by the rules of Apache Kafka's parser.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b" user_a="b";

Kafka reads it by Java's StreamTokenizer, and so does this: `//` and `/* */` comments, quotes of both kinds with
escapes, words without quotes only of letters, digits, `-`, `_`, `$` and `.`, and beginning with none of the digits.
Must never show a value or an option's name in an error: they may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tanist.security.sasl.outcome import OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LOGIN_MODULES: Final = {
    PLAIN: PLAIN_MODULE,
    SCRAM_SHA_256: SCRAM_MODULE,
    SCRAM_SHA_512: SCRAM_MODULE,
    OAUTHBEARER: OAUTH_MODULE,
}
"""By mechanism."""
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_USER: Final = "user_"

_PIECE = re.compile(
    r"""(?P<space>[\x00-\x20]+|//[^\r\n]*|/\*.*?\*/|/[^\r\n]*)
    |(?P<word>[A-Za-z_$\u00a0-\U0010ffff][-A-Za-z0-9_$.\u00a0-\U0010ffff]*)
    |(?P<number>[-.0-9][-A-Za-z0-9_$.\u00a0-\U0010ffff]*)
    |(?P<quoted>"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
    |(?P<open>["'])
    |(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_NAMED_ESCAPES: Final = {"a": "\x07", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\x0b"}


class JaasError(ValueError):
    """A text that is no JAAS entry. The message says what to write, and no value."""


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """One login module."""

    module: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def passwords(self) -> dict[str, str]:
        """The users of PLAIN: `user_NAME=password`."""
        return {name.removeprefix(_USER): value for name, value in self.options.items() if name.startswith(_USER)}


def parse_jaas(text: str) -> JaasEntry:
    """The one entry of a `sasl.jaas.config`. JaasError."""
    tokens = _tokens(text)
    entries = []
    for kind, module in tokens:
        entries.append(_entry(module if kind == "text" else None, tokens))
    if not entries:
        raise JaasError('no login module is specified; write MODULE required OPTION="VALUE";')
    if len(entries) > 1:
        raise JaasError(f"it contains {len(entries)} login modules, should be 1 module")
    return entries[0]


def _entry(module: str | None, tokens: Iterator[tuple[str, str]]) -> JaasEntry:
    if not module:
        raise JaasError("it does not begin with the class of a login module")
    kind, flag = next(tokens, ("end", ""))
    if kind == "end":
        raise JaasError("the login module's control flag is missing; write `required` behind the class")
    if kind != "text" or flag.lower() not in _FLAGS:
        raise JaasError("the login module's control flag is none of required, requisite, sufficient, optional")
    options: dict[str, str] = {}
    for number, (kind, name) in enumerate(tokens, 1):
        if (kind, name) == ("sign", ";"):
            return JaasEntry(module, options)
        # An option's name is not shown: where quotes are missing, it is a part of a password.
        if kind != "text":
            raise JaasError(f'option {number} has no name; write NAME="VALUE", and one `;` at the end')
        if next(tokens, None) != ("sign", "="):
            raise JaasError(f'the value of option {number} is missing; write NAME="VALUE"')
        kind, value = next(tokens, ("end", ""))
        if kind != "text":
            raise JaasError(f"the value of option {number} cannot be read; write it in quotes")
        options[name] = value
    raise JaasError("it does not end with a semicolon")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """("text", a word or what is in quotes), ("sign", one character), ("number", a word that begins as one)."""
    for found in _PIECE.finditer(text):
        match found.lastgroup:
            case "word":
                yield "text", found[0]
            case "quoted":
                yield "text", _ESCAPE.sub(_unescaped, found[0][1:-1])
            case "open":
                raise JaasError(f"a quote ({found[0]}) is not closed")
            case "space":
                pass
            case kind:
                yield str(kind), found[0]


def _unescaped(found: re.Match[str]) -> str:
    text = found[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _NAMED_ESCAPES.get(text, text)
