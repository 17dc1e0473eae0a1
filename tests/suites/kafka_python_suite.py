"""kafka-python's integration tests, from its source distribution, on a cluster that runs already.

The suite has a way for that (KAFKA_URI). Three things are of ours, next to its files and not in them: its package
`test` is given the `__init__.py` and the `service.py` that the source distribution leaves out, the latter with a
service that needs no starting, and KAFKA_ROOT is a folder without Kafka in it. Tests that start brokers of their own
(SASL, SSL) so fail or are skipped anywhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.clients import install
from tests.suites.results import Result, from_junit

NAME = "kafka-python"
LOCKS = Path(__file__).with_name("kafka_python")
KAFKA_VERSION = "4.3.0"
TEST_S = 120
SERVICE = """\
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def stop(self):
        pass


class SpawnedService:
    def __init__(self, *arguments):
        raise RuntimeError("no broker is started here")
"""


def sources() -> Path:
    """The unpacked source distribution."""
    folder = install.CACHE / "suites-kafka-python"
    stamp = folder / ".complete"
    wanted = (LOCKS / "sources.txt").read_text() + SERVICE
    if not (stamp.exists() and stamp.read_text() == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [
            sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download", "--no-deps",
            "--require-hashes", "--no-binary", ":all:", "-r", str(LOCKS / "sources.txt"), "-d", str(folder),
        ]  # fmt: skip
        subprocess.run(command, check=True, timeout=600)
        (packed,) = folder.glob("*.tar.gz")
        with tarfile.open(packed) as archive:
            archive.extractall(folder, filter="data")
        (test,) = folder.glob("*/test")
        (test / "__init__.py").touch()
        (test / "service.py").write_text(SERVICE)
        stamp.write_text(wanted)
    (root,) = (each for each in folder.iterdir() if each.is_dir())
    return root


def run(bootstrap: str, *, only: str | None, limit_s: float) -> list[Result]:
    python = install.venv("suites-venv", LOCKS / "requirements.txt") / "bin" / "python"
    root = sources()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [
            str(python), "-m", "pytest", "test/integration", "-q", f"--timeout={TEST_S}", f"--junitxml={report}",
            f"--session-timeout={limit_s:.0f}", "--timeout-method=signal", "-p", "no:cacheprovider",
            *(("-k", only) if only else ()),
        ]  # fmt: skip
        environment = {
            "KAFKA_URI": f"kafka://{bootstrap.partition(',')[0]}",
            "KAFKA_VERSION": KAFKA_VERSION,
            "KAFKA_ROOT": scratch,
            "PYTHONPATH": str(root),
        }
        with (install.CACHE / "suites-kafka-python.log").open("w") as log:
            subprocess.run(
                command, cwd=root, env=os.environ | environment, stdout=log, stderr=log, check=False,
                timeout=limit_s + 2 * TEST_S,
            )  # fmt: skip
        return from_junit(report.read_text())
