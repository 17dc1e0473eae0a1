"""aiokafka's tests of SASL, ACLs and TLS, on a node that is started for them.

They start it themselves, in a container. Of ours is the module `docker` that they import; it runs on this machine what
is to run in the container. Their files are copied, unchanged, beside the package as PyPI has it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.clients import install
from tests.interop import apache
from tests.interop.cluster import ROOT
from tests.suites.results import Result, from_junit

NAME: Final = "aiokafka-secured"
HERE: Final = Path(__file__).with_name("aiokafka")
SECURITY: Final = "SASL or ssl"
TEST_S: Final = 180
COPIED: Final = ("tests", "docker", "gen-ssl-certs.sh", "pyproject.toml")
KERBEROS: Final = {"ktutil": 0, "kinit": 1, "kdestroy": 0}
"""Programs that the tests call before all others, and the exit code of what stands in for one that is missing."""


def run(target: str, *, only: str | None, limit_s: float, checkout: Path | None) -> list[Result]:
    if checkout is None or not (checkout / "tests" / "test_sasl.py").is_file():
        raise SystemExit(f"{NAME} needs --checkout FOLDER: aiokafka's sources, for PyPI has them without their tests")
    if (reason := apache.missing()) is not None:
        raise SystemExit(reason)
    python = install.venv("suites-aiokafka-venv", HERE / "requirements.txt") / "bin" / "python"
    with tempfile.TemporaryDirectory(prefix="suites-") as scratch:
        folder, report = Path(scratch), Path(scratch) / "report.xml"
        for name in COPIED:
            copy = shutil.copytree if (checkout / name).is_dir() else shutil.copy
            copy(checkout / name, folder / name)
        programs = folder / "bin"
        programs.mkdir()
        for name, code in KERBEROS.items():
            if shutil.which(name) is None:
                (programs / name).write_text(f"#!/bin/sh\necho there is no Kerberos here >&2\nexit {code}\n")
                (programs / name).chmod(0o755)
        command = [
            str(python), "-m", "pytest", "tests", "-q", "-k", only or SECURITY, "--no-pull",
            f"--docker-image=kafka:2.13_{apache.VERSION}", f"--timeout={TEST_S}", f"--session-timeout={limit_s:.0f}",
            "--timeout-method=signal", f"--junitxml={report}", "-p", "no:cacheprovider",
        ]  # fmt: skip
        container = {
            "command": [sys.executable, "-m", "tests.suites.aiokafka.container", target],
            "folder": str(ROOT),
            "more": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        }
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(HERE / "modules"),
            "SUITES_CONTAINER": json.dumps(container),
        }
        with (install.CACHE / "suites-aiokafka.log").open("w") as log:
            subprocess.run(
                command, cwd=folder, env=os.environ | environment, stdout=log, stderr=log, check=False,
                timeout=limit_s + 2 * TEST_S,
            )  # fmt: skip
        if not report.exists():
            return [Result(NAME, "failed", "no test ran: see .cache/suites-aiokafka.log")]
        return from_junit(report.read_text())
