"""`subscribePattern`: a Java regular expression, as Spark's source takes it, for Python's `re`.

Owns the translation of what the two write differently: quoting, named groups, classes of characters that are nested or
cut (`[a-z&&[^b]]`), POSIX and Unicode classes, the end of input. Names of topics are ASCII: classes need no more.
What cannot be said in Python is refused, never guessed at.
"""

from __future__ import annotations

import re
from typing import Final

_ALPHA: Final = "a-zA-Z"
_PUNCTUATION: Final = r"!-/:-@\[-`{-~"
_CLASSES: Final = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": _ALPHA, "Digit": "0-9", "Alnum": "a-zA-Z0-9", "Punct": _PUNCTUATION,
    "Graph": "!-~", "Print": " -~", "Blank": " \\t", "Cntrl": r"\x00-\x1f\x7f", "XDigit": "0-9a-fA-F",
    "Space": r"\s", "ASCII": r"\x00-\x7f", "L": _ALPHA, "Lu": "A-Z", "Ll": "a-z", "N": "0-9", "Nd": "0-9",
    "IsAlphabetic": _ALPHA, "IsLetter": _ALPHA, "IsDigit": "0-9", "IsUppercase": "A-Z", "IsLowercase": "a-z",
    "IsPunctuation": _PUNCTUATION, "IsLatin": _ALPHA, "javaLowerCase": "a-z", "javaUpperCase": "A-Z",
}  # fmt: skip
_NAMED_CLASS: Final = re.compile(r"\\([pP])(?:\{(\w+)\}|(\w))")
_NAMED_GROUP: Final = re.compile(r"\(\?<([A-Za-z]\w*)>")
_NAMED_REFERENCE: Final = re.compile(r"\\k<([A-Za-z]\w*)>")


class PatternError(ValueError):
    """No regular expression of Java's, or one that Python cannot say."""


def java_pattern(text: str) -> re.Pattern[str]:
    """To be used with `fullmatch`, as Kafka's consumers match whole names."""
    try:
        return re.compile(_Translation(text).all(), re.ASCII)
    except (re.error, PatternError, RecursionError, OverflowError) as error:
        raise PatternError(str(error)) from None


class _Translation:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def all(self) -> str:
        found = []
        while self._at < len(self._text):
            found.append(self._one())
        return "".join(found)

    def _one(self) -> str:
        """What comes next, outside of classes."""
        text, at = self._text, self._at
        if text.startswith(r"\Q", at):
            return re.escape(self._quoted())
        if text[at] == "[":
            return self._class()
        if (named := _NAMED_CLASS.match(text, at)) is not None:
            self._at = named.end()
            return f"[{'^' if named[1] == 'P' else ''}{_members(named)}]"
        for pattern, form in ((_NAMED_GROUP, "(?P<{}>"), (_NAMED_REFERENCE, "(?P={})")):
            if (group := pattern.match(text, at)) is not None:
                self._at = group.end()
                return form.format(group[1])
        if text[at] == "\\":
            self._at += 2
            pair = text[at : at + 2]
            return r"\Z" if pair == r"\z" else pair
        self._at += 1
        return text[at]

    def _quoted(self) -> str:
        end = self._text.find(r"\E", self._at)
        start, end = self._at + 2, len(self._text) if end < 0 else end
        self._at = end + 2
        return self._text[start:end]

    def _class(self) -> str:
        """A class, as an expression that matches one character."""
        text = self._text
        self._at += 1
        negated = text.startswith("^", self._at)
        self._at += negated
        operands: list[list[str]] = [[]]
        members: list[str] = []
        first = True
        while not text.startswith("]", self._at) or first:
            if self._at >= len(text):
                raise PatternError("a class of characters has no end")
            if text.startswith("&&", self._at):
                self._at += 2
                operands[-1] += _set_of(members)
                members = []
                operands.append([])
            elif text[self._at] == "[":
                operands[-1].append(self._class())
            else:
                members.append(self._member())
            first = False
        self._at += 1
        operands[-1] += _set_of(members)
        joined = [each for each in operands if each]
        if not joined:
            raise PatternError("a class of characters is empty")
        if len(joined) == 1 and len(joined[0]) == 1 and not negated:
            return joined[0][0]
        sets = [each[0] if len(each) == 1 else f"(?:{'|'.join(each)})" for each in joined]
        both = "".join(f"(?={each})" for each in sets[:-1]) + sets[-1]
        return f"(?:(?!{both})[\\s\\S])" if negated else f"(?:{both})"

    def _member(self) -> str:
        text, at = self._text, self._at
        if text.startswith(r"\Q", at):
            return re.escape(self._quoted())
        if (named := _NAMED_CLASS.match(text, at)) is not None:
            if named[1] == "P":
                raise PatternError(rf"{named[0]} within a class: write [^\p{{...}}]")
            self._at = named.end()
            return _members(named)
        self._at += 2 if text[at] == "\\" else 1
        found = text[at : self._at]
        # What would be a set operation of Python's to come, or an end.
        return f"\\{found}" if found in "]^&~|" else found


def _set_of(members: list[str]) -> list[str]:
    return [f"[{''.join(members)}]"] if members else []


def _members(named: re.Match[str]) -> str:
    name = named[2] or named[3]
    if name not in _CLASSES:
        raise PatternError(f"{named[0]} is not known here; known are {', '.join(sorted(_CLASSES))}")
    return _CLASSES[name]
