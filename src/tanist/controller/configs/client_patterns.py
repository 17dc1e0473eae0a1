"""Which clients a client metrics subscription is for (KIP-714): `match`, attributes with a regular expression each.

The controller judges the patterns by it, and brokers match their clients.
"""

from __future__ import annotations

import re

from .definitions import InvalidConfig, split_list

CLIENT_ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def client_patterns(match: str) -> dict[str, re.Pattern[str]]:
    """The expression that each attribute has to match as a whole. `InvalidConfig` if one is none."""
    patterns = {}
    for pattern in split_list(match):
        words = pattern.rstrip("=").split("=")  # Java's split drops empty words at the end
        try:
            attribute, expression = (word.strip() for word in words)
            compiled = re.compile(expression)
        except (ValueError, re.error):
            attribute = ""
        if attribute not in CLIENT_ATTRIBUTES:
            raise InvalidConfig(f"Illegal client matching pattern: {pattern}")
        patterns[attribute] = compiled
    return patterns
