"""No page, message or file has tanist installed by its bare name: nothing is released, so an index has somebody else's.

What is right: a path (`pip install "/path/to/tanist[ui]"`), a wheel's file, or a direct reference (`tanist[ui] @ file://...`).
When a version is released, docs/release.md says what becomes of this test.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_READ = ("tests/architecture/test_install_lines.py", "tests/test_installed.py", "docs/release.md")
"""They say what is wrong, or what will be right once there is a release."""

_EXTRA = re.compile(r"(?<![\w./}-])tanist\[(?![^\]\n]*\]\s+@\s)")
"""`tanist[ui]` as a requirement of an index, in a command, in prose or in a list of dependencies."""
_BARE = re.compile(
    r"\b(?:pip3?|pipx|uv|uvx|poetry|conda)\s(?:[^\n`]*\s)?(?:install|add)\s(?:[^\n`|&;]*\s)?['\"]?tanist(?:[=<>~!]=[^\s'\"`]*)?['\"]?(?=$|[\s`.,;)])"
)
"""`pip install tanist`, with or without a version."""
_VERSION = re.compile(r"(?<![\w./-])tanist[=~]=")


def wrong_in(text: str) -> list[str]:
    return [
        line.strip() for line in text.splitlines() if _EXTRA.search(line) or _BARE.search(line) or _VERSION.search(line)
    ]


def files() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    endings = (".py", ".md", ".toml", ".yml", ".yaml", ".sh", ".json", ".txt", ".in", "Makefile", "Containerfile")
    return [name for name in listed.split("\n") if name.endswith(endings) and name not in NOT_READ]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_nobody_is_sent_to_an_index_for_tanist() -> None:
    wrong = [f"{name}: {line}" for name in files() for line in wrong_in((ROOT / name).read_text(errors="replace"))]
    assert not wrong, f"{len(wrong)} lines:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "$ pip install 'tanist[pytest]'",
        "$ .venv/bin/pip install 'tanist[pytest]' confluent-kafka",
        "pip install tanist",
        "Then `pip install tanist`.",
        "uv add --dev tanist",
        "uvx tanist==1.0",
        "uv tool install tanist",
        'test = ["tanist[pytest]"]',
        "What pip installs, for example `tanist==1.0`.",
        "raise Missing(\"it needs pyarrow: pip install 'tanist[parquet]'\")",
    ],
)
def test_it_sees_the_bare_name(line: str) -> None:
    assert wrong_in(line)


@pytest.mark.parametrize(
    "line",
    [
        'pip install ".[pytest]"',
        "pip install '../tanist[pytest]' confluent-kafka",
        "pip install 'dist/tanist-0.1.0-py3-none-any.whl[pytest]'",
        "pip install 'tanist[pytest] @ file:///wheels/tanist-0.1.0-py3-none-any.whl'",
        'wanted = f"tanist[{extra}] @ {wheel.resolve().as_uri()}"',
        "pip install --editable . './tanist[pytest]' pytest-xdist",
        "`make wheel` installs the wheel with the locked dependencies and runs `tanist demo`.",
        "run: uv run tanist up --detach",
    ],
)
def test_it_lets_paths_and_commands_pass(line: str) -> None:
    assert not wrong_in(line)
