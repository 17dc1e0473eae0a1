"""The versions of Apache Kafka that tanist is compared with, and which of them a run takes.

    TANIST_KAFKA_VERSION=4.4.0 python -m pytest tests/interop -m interop

Owns their pins. Tests, the benchmark and the poms take the version from here, and none of them names one. A new version
is a row here, and what differs from it in `tables.py` and GAPS.md (docs/interop.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "TANIST_KAFKA_VERSION"


@dataclass(frozen=True, slots=True)
class Pin:
    """One release of Apache Kafka."""

    version: str
    metadata_version: int
    """The level at which its `kafka-storage format` begins a cluster."""
    share_version: int
    """The highest level of `share.version` that it has."""
    has_shell: bool
    """Whether Maven Central has kafka-shell of it."""
    config_command: str = "org.apache.kafka.tools.ConfigCommand"
    """The class of `kafka-configs`."""

    @property
    def release(self) -> str:
        """What `--release-version` calls it."""
        return self.version.rpartition(".")[0]

    @property
    def maven(self) -> str:
        """The argument by which Maven reads a pom for this version."""
        return f"-Dkafka.version={self.version}"


PINS: Final[Mapping[str, Pin]] = {
    pin.version: pin
    for pin in (
        Pin("4.3.1", metadata_version=30, share_version=1, has_shell=True, config_command="kafka.admin.ConfigCommand"),
        Pin("4.4.0", metadata_version=33, share_version=2, has_shell=False),
    )
}
DEFAULT: Final = "4.3.1"


def chosen() -> Pin:
    """The version that the environment names; `DEFAULT` if it names none."""
    version = os.environ.get(VARIABLE) or DEFAULT
    if version not in PINS:
        raise ValueError(f"{VARIABLE} is {version!r}, which is none of {', '.join(PINS)}")
    return PINS[version]
