"""Deadlines of coordinators, by the monotonic clock."""

from __future__ import annotations

from typing import Final

NEVER_MS: Final = 1 << 62
"""No deadline."""
