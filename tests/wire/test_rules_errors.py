"""KIP-966's new error."""

from __future__ import annotations

from tanist.wire.errors import ErrorCode


def test_request_limit_reached_is_retriable() -> None:
    assert ErrorCode.REQUEST_LIMIT_REACHED.is_retriable
    assert ErrorCode.name_of(int(ErrorCode.REQUEST_LIMIT_REACHED)) == "REQUEST_LIMIT_REACHED"
