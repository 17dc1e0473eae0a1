"""KIP-966's new error."""

from __future__ import annotations

from tanist.client.errors import meaning_of
from tanist.wire.errors import ErrorCode


def test_request_limit_reached_is_retriable() -> None:
    assert meaning_of(ErrorCode.REQUEST_LIMIT_REACHED).is_retriable
    assert ErrorCode.name_of(int(ErrorCode.REQUEST_LIMIT_REACHED)) == "REQUEST_LIMIT_REACHED"
