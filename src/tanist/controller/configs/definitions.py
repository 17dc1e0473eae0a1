"""The definition of a configuration name: its type, default, checks, and where it may be changed.

Owns the vocabulary (`ConfigKey`, `ConfigType`, `Update`, the checks), the parsing of a value, and how Kafka writes it.
The tables written in it are the `catalogue`; `settings` resolves, `validation` judges, `description` describes. It must
not know about an image or a node.

Values travel as text everywhere (records, requests, properties files), so parsing is also the only validation. Error
messages have the wording that Kafka's own tools and tests expect.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TypeAlias


class ConfigType(IntEnum):
    """DescribeConfigs' `config_type` numbers."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """DescribeConfigs' `config_source` numbers: which level a value came from."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_CLUSTER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class Update(Enum):
    """How a broker setting may be changed at run time."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Importance(Enum):
    """How much a property matters to most operators, as Kafka ranks it."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None
Check: TypeAlias = Callable[[Value], str | None]
"""Returns the complaint about a parsed value, or None. It raises `InvalidConfig` itself for a faulty element."""


class InvalidConfig(ValueError):
    """A name or value that is refused (INVALID_CONFIG on the wire)."""


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker setting that a topic setting falls back to; `factor` turns its unit into the topic setting's."""

    name: str
    factor: int = 1

    def convert(self, value: str) -> str:
        """The value in the topic setting's unit. A negative amount means "no limit" in every unit."""
        if self.factor == 1:
            return value
        amount = int(value)
        return str(amount * self.factor if amount >= 0 else -1)


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One configuration name. `default` is text; None means that there is no value unless one is given."""

    name: str
    type: ConfigType
    default: str | None
    doc: str
    check: Check | None = None
    update: Update = Update.READ_ONLY
    synonyms: tuple[Synonym, ...] = ()
    internal: bool = False
    importance: Importance = Importance.MEDIUM
    has_effect: bool = True
    """Whether it has an effect here."""

    is_dynamic_only: bool = False
    """A broker's property that Kafka does not read from its file."""

    @property
    def is_public_once_set(self) -> bool:
        """A broker's property that Kafka does not describe while it is not set."""
        return self.internal and self.update is not Update.READ_ONLY

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Value:
        """The typed value of `text`. Raises `InvalidConfig` with a sentence fit for the client."""
        value = self._typed(text)
        complaint = self.check(value) if self.check is not None else None
        if complaint is not None:
            raise InvalidConfig(self._refusal(canonical(value) or "", complaint))
        return value

    def shown(self, text: str) -> str:
        """The value as Kafka writes it in a description: numbers and lists without superfluous characters."""
        try:
            return canonical(self._typed(text)) or ""
        except InvalidConfig:
            return text

    def _typed(self, text: str) -> Value:
        trimmed = text.strip()
        kind = self.type
        if kind in _INTEGER_BITS:
            if _INTEGER.fullmatch(trimmed) is None:
                raise InvalidConfig(self._refusal(text, f"Not a number of type {kind.name}"))
            number = int(trimmed)
            limit = 1 << (_INTEGER_BITS[kind] - 1)
            if not -limit <= number < limit:
                raise InvalidConfig(self._refusal(text, f"Not a number of type {kind.name}"))
            return number
        if kind is ConfigType.DOUBLE:
            # Java also reads 0.5f, 0x1p-1 and NaN; other readers of the value could not.
            if _REAL.fullmatch(trimmed) is None:
                raise InvalidConfig(self._refusal(text, "Not a number of type DOUBLE"))
            return float(trimmed)
        if kind is ConfigType.BOOLEAN:
            lowered = trimmed.lower()
            if lowered not in ("true", "false"):
                raise InvalidConfig(self._refusal(text, "Expected value to be either true or false"))
            return lowered == "true"
        if kind is ConfigType.LIST:
            return split_list(trimmed)
        if kind is ConfigType.PASSWORD:
            return text
        return trimmed

    def _refusal(self, text: str, complaint: str) -> str:
        shown = "[hidden]" if self.sensitive else text.strip()
        return f"Invalid value {shown} for configuration {self.name}: {complaint}"


def canonical(value: Value) -> str | None:
    """A typed value as text, as Java writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return _java_double(value) if isinstance(value, float) else str(value)


def _java_double(value: float) -> str:
    """`Double.toString`: the shortest digits, with an exponent below 0.001 and from ten million up."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        sign = "-" if value < 0 else ""
        whole, _, fraction = digits.lstrip("-").partition(".")
        fraction = "" if fraction == "0" else fraction
        return f"{sign}{whole[0]}.{(whole[1:] + fraction).rstrip('0') or '0'}E{len(whole) - 1}"
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_REAL = re.compile(r"[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")
_INTEGER_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_COMMA = re.compile(r"\s*,\s*")

LONG_MAX = (1 << 63) - 1


def split_list(text: str) -> tuple[str, ...]:
    """The elements of a LIST value, trimmed; empty text is the empty list."""
    trimmed = text.strip()
    return tuple(_COMMA.split(trimmed)) if trimmed else ()


def _shown(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number that is `low` or more."""

    low: float

    def __call__(self, value: Value) -> str | None:
        if isinstance(value, (int, float)) and value < self.low:
            return f"Value must be at least {_shown(self.low)}"
        return None


@dataclass(frozen=True, slots=True)
class Between:
    """A number in [low, high]."""

    low: float
    high: float

    def __call__(self, value: Value) -> str | None:
        if isinstance(value, (int, float)):
            if value < self.low:
                return f"Value must be at least {_shown(self.low)}"
            if value > self.high:
                return f"Value must be no more than {_shown(self.high)}"
        return None


@dataclass(frozen=True, slots=True)
class BetweenOr:
    """A number in [low, high], or one value apart (compression.gzip.level: 1-9 or -1)."""

    low: int
    high: int
    other: int

    def __call__(self, value: Value) -> str | None:
        if isinstance(value, int) and not self.low <= value <= self.high and value != self.other:
            return f"Value must be between {self.low} and {self.high} or equal to {self.other}"
        return None


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some words, case-sensitive."""

    words: tuple[str, ...]

    def __call__(self, value: Value) -> str | None:
        if value not in self.words:
            return f"String must be one of: {', '.join(self.words)}"
        return None


@dataclass(frozen=True, slots=True)
class OneOfAnyCase:
    """One of some words, in upper or lower case."""

    words: tuple[str, ...]

    def __call__(self, value: Value) -> str | None:
        if not isinstance(value, str) or value.upper() not in self.words:
            return f"String must be one of (case insensitive): {', '.join(self.words)}"
        return None


@dataclass(frozen=True, slots=True)
class NonEmpty:
    """A text that is not empty."""

    def __call__(self, value: Value) -> str | None:
        return "String must be non-empty" if value == "" else None


@dataclass(frozen=True, slots=True)
class PlainList:
    """A list of any words, none of them empty."""

    name: str

    def __call__(self, value: Value) -> str | None:
        if isinstance(value, tuple) and "" in value:
            raise InvalidConfig(f"Configuration '{self.name}' values must not be empty.")
        return None


@dataclass(frozen=True, slots=True)
class NotInternal:
    """A topic's name that is not like those of internal topics."""

    name: str

    def __call__(self, value: Value) -> str | None:
        internal = isinstance(value, str) and value.startswith("__")
        return f"{self.name}: DLQ topic name must not start with '__'" if internal else None


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """Where a share group begins: `earliest`, `latest`, or `by_duration:` and an ISO 8601 duration."""

    name: str

    def __call__(self, value: Value) -> str | None:
        if isinstance(value, str) and (value in ("earliest", "latest") or _BY_DURATION.fullmatch(value)):
            return None
        return (
            f"Invalid value `{value}` for configuration {self.name}. The value must be either 'earliest', 'latest' or "
            "of the format 'by_duration:<PnDTnHnMn.nS>'."
        )


_BY_DURATION = re.compile(
    r"by_duration:P(?!$)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?", re.IGNORECASE | re.ASCII
)


@dataclass(frozen=True, slots=True)
class EachOf:
    """A list whose elements all come from some words."""

    name: str
    words: tuple[str, ...]

    def __call__(self, value: Value) -> str | None:
        for element in value if isinstance(value, tuple) else ():
            if not element:
                raise InvalidConfig(f"Configuration '{self.name}' values must not be empty.")
            if element not in self.words:
                known = ", ".join(self.words)
                raise InvalidConfig(
                    f"Invalid value {element} for configuration {self.name}: String must be one of: {known}"
                )
        return None


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """`*`, or a list of `partition:broker`."""

    name: str

    def __call__(self, value: Value) -> str | None:
        if not isinstance(value, tuple) or value == ("*",):
            return None
        if all(_PARTITION_AND_BROKER.fullmatch(element) for element in value):
            return None
        raise InvalidConfig(
            f"Invalid value [{', '.join(value)}] for configuration {self.name}: {self.name} must be the literal '*' or "
            "a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )


_PARTITION_AND_BROKER = re.compile(r"[0-9]+:[0-9]+")
