"""Words for numbers, times and addresses, so that no message says "1 kinds".

Every layer may use it; it imports none.
"""

from __future__ import annotations

from datetime import UTC, datetime


def counted(number: int, one: str, many: str | None = None, *, separator: str = "") -> str:
    """A number with its noun: `1 kind`, `2 kinds`, `0 entries`; `separator` between thousands: `1,200 records`."""
    noun = one if number == 1 else many if many is not None else _plural(one)
    return f"{number:{separator}} {noun}"


def host_port(host: str, port: int) -> str:
    """An address as people and configurations write it: `host:port`, or `[host]:port` of IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def span(age_ms: float) -> str:
    """A time as people say it: 0.4 s, 12 s, 3 min, 5 h, 2 days."""
    seconds = age_ms / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"


def timestamp_text(wall_ms: int) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    seconds, ms = divmod(wall_ms, 1000)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"
    except (ValueError, OverflowError, OSError):
        return f"{wall_ms} ms"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def label_text(text: str) -> str:
    """The value of a label of Prometheus' text format, as it stands between its quotes."""
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text
