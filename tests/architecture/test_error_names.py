"""A code that a peer has sent may be one that we do not have: its name is `ErrorCode.name_of`, which never raises."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tanist"
RAISES = re.compile(r"\bErrorCode\([^()]*(\([^()]*\))?[^()]*\)\.name\b")


def test_no_name_of_a_code_raises() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {match.group()}"
        for path in SOURCE.rglob("*.py")
        for match in RAISES.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
