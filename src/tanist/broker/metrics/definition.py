"""A metric: its Prometheus name, its type, Kafka's own name for it, what it means; and how those names are made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """Prometheus' types, as the text format spells them."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric. `kafka` is empty where Kafka has none."""

    name: str
    kind: Kind
    kafka: str
    help: str
    labels: tuple[str, ...] = ()


def gauge(name: str, kafka: str, text: str, *labels: str) -> Definition:
    return Definition(name, Kind.GAUGE, kafka, text, labels)


def counter(name: str, kafka: str, text: str, *labels: str) -> Definition:
    return Definition(name, Kind.COUNTER, kafka, text, labels)


def named(group: str, name: str, text: str, *labels: str) -> Definition:
    """A gauge or counter of one of Kafka's `domain:type=...` groups, under the exporter's name."""
    domain, _, kind = group.partition(":")
    prefix = f"{domain}_{kind}_".replace(".", "_").lower()
    kafka = f"{domain}:type={kind},name={name}"
    if name.endswith("PerSec"):
        return counter(f"{prefix}{name.removesuffix('PerSec').lower()}_total", kafka, text, *labels)
    return gauge(prefix + name.lower().replace("-", "_"), kafka, text, *labels)
