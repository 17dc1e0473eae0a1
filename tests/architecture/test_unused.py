"""tools/unused_allowed.py, which `make check` reads: each name in it is still defined somewhere, and has its reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = ROOT / "tools" / "unused_allowed.py"


def names() -> list[str]:
    tree = ast.parse(ALLOWED.read_text(encoding="utf-8"))
    return [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]


def test_each_name_is_still_there() -> None:
    folders = (ROOT / "src", ROOT / "tests", ROOT / "bench")
    text = "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    words = set(re.findall(r"\w+", text))
    assert [name for name in names() if name not in words] == []


def test_no_name_is_there_twice() -> None:
    assert len(names()) == len(set(names()))


def test_each_group_of_names_has_a_reason() -> None:
    groups = [group for group in ALLOWED.read_text(encoding="utf-8").split("\n\n") if "_." in group]
    assert len(groups) > 3
    assert [group for group in groups if not group.lstrip().startswith("# ")] == []
