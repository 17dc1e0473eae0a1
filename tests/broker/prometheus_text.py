"""Reads Prometheus' text format 0.0.4, and nothing that is not it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
_HELP = re.compile(rf"# HELP ({_NAME}) ((?:[^\\\n]|\\[\\n])*)")
_TYPE = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|histogram|summary|untyped)")
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)")
_ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}

Labels = tuple[tuple[str, str], ...]


@dataclass
class Family:
    kind: str
    help: str
    samples: dict[Labels, float] = field(default_factory=dict)


def parse(text: str) -> dict[str, Family]:
    """The families by name. `ValueError` with the line for whatever a strict reader could object to."""
    if text and not text.endswith("\n"):
        raise ValueError("the last line has no end")
    families: dict[str, Family] = {}
    help_of: tuple[str, str] | None = None
    current = ""
    for line in text.split("\n")[:-1]:
        if match := _HELP.fullmatch(line):
            if match[1] in families:
                raise ValueError(f"a family comes twice: {line}")
            help_of = (match[1], match[2])
        elif match := _TYPE.fullmatch(line):
            if help_of is None or help_of[0] != match[1]:
                raise ValueError(f"TYPE without its HELP: {line}")
            current = match[1]
            families[current] = Family(match[2], help_of[1])
            help_of = None
        elif match := _SAMPLE.fullmatch(line):
            if match[1] != current:
                raise ValueError(f"a sample outside of its family: {line}")
            labels = tuple(
                (name, re.sub(r'\\["\\n]', lambda found: _ESCAPES[found[0]], value))
                for name, value in re.findall(r'([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"', match[2] or "")
            )
            if labels in families[current].samples or len(dict(labels)) != len(labels):
                raise ValueError(f"a sample comes twice, or a label: {line}")
            value = float(match[3])
            if families[current].kind == "counter" and value < 0:
                raise ValueError(f"a counter below zero: {line}")
            families[current].samples[labels] = value
        else:
            raise ValueError(f"not a line of the format: {line}")
    for name, family in families.items():
        if not family.samples:
            raise ValueError(f"{name} has no samples")
    return families
