"""The patterns of client metrics subscriptions are split as by Java: one `=`, and those at the end do not count."""

from __future__ import annotations

import pytest

from tanist.controller.configs.client_patterns import client_patterns
from tanist.controller.configs.definitions import InvalidConfig


@pytest.mark.parametrize(
    ("match", "patterns"),
    [
        ("", {}),
        ("client_id=a.*", {"client_id": "a.*"}),
        (" client_id = a , client_software_name=b=", {"client_id": "a", "client_software_name": "b"}),
        ("client_id=a,client_id=b", {"client_id": "b"}),
    ],
)
def test_patterns(match: str, patterns: dict[str, str]) -> None:
    assert {name: found.pattern for name, found in client_patterns(match).items()} == patterns


@pytest.mark.parametrize(
    "match", ["client_id", "client_id=", "client_id=a=b", "=a", "other=a", "client_id=[", "client_id==a"]
)
def test_what_is_no_pattern(match: str) -> None:
    with pytest.raises(InvalidConfig, match="Illegal client matching pattern"):
        client_patterns(match)
