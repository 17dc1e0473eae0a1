"""`docs/tutorial.md`: each command is run, in one shell, and prints what the page shows (`make tutorial`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_rig import free_port
from tests.docs.console import Command, Shell, differs, steps

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"


def at_free_ports(text: str, port: int) -> str:
    """The page's cluster is at 9092 to 9094; a test's must not meet another one."""
    for number in range(3):
        text = text.replace(str(9092 + number), str(port + number))
    return text.replace("tanist up --detach", f"tanist up --detach --port {port}")


@pytest.mark.docs
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    port = free_port()
    with Shell(ROOT, {"TMPDIR": str(tmp_path), "PYTEST_ADDOPTS": "-p no:cacheprovider"}) as shell:
        try:
            for step in steps(at_free_ports(PAGE.read_text(), port)):
                if isinstance(step, Command):
                    printed, code = shell.run(step.text)
                    assert code == step.exit_code, f"$ {step.text}\nended with {code}:\n{printed}"
                    wrong = differs(step.shown, printed)
                    assert wrong is None, f"$ {step.text}\n{wrong}"
                else:
                    name = step.name
                    shell.run(f"cat > {name} <<'the end of the file'\n{step.text}\nthe end of the file")
        finally:
            for cluster in tmp_path.glob("*/tanist-data"):
                shell.run(f"{ROOT}/.venv/bin/tanist down --data {cluster}")
