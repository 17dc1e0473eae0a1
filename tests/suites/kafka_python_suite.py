"""kafka-python's integration tests, from its source distribution, on a cluster that runs already.

The suite has a way for that (KAFKA_URI). What the source distribution leaves out is of ours, next to its files and not
in them: the package `test` is given an `__init__.py`, and a `service.py` that starts nodes; KAFKA_ROOT is a folder with
two scripts in `bin`, and PROJECT_ROOT one with the properties of a node. Tests of SASL and TLS start nodes of
their own (`run_secured`); on a cluster that runs already they fail or are skipped.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.clients import install
from tests.interop import apache
from tests.interop.tanist_cluster import PROGRAM
from tests.suites.results import Result, from_junit

NAME = "kafka-python"
SECURED_NAME = "kafka-python-secured"
LOCKS = Path(__file__).with_name("kafka_python")
SERVICE = LOCKS / "service.py"
KAFKA_VERSION = "4.3.0"
TEST_S = 120


def sources() -> Path:
    """The unpacked source distribution."""
    folder = install.CACHE / "suites-kafka-python"
    stamp = folder / ".complete"
    wanted = (LOCKS / "sources.txt").read_text() + SERVICE.read_text()
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
        shutil.copy(SERVICE, test)
        stamp.write_text(wanted)
    (root,) = (each for each in folder.iterdir() if each.is_dir())
    return root


def run(bootstrap: str, *, only: str | None, limit_s: float) -> list[Result]:
    with tempfile.TemporaryDirectory() as scratch:
        uri = {"KAFKA_URI": f"kafka://{bootstrap.partition(',')[0]}", "KAFKA_ROOT": scratch}
        return _results(("test/integration",), uri, only, limit_s)


def run_secured(target: str, *, only: str | None, limit_s: float) -> list[Result]:
    """The tests that start a node with SASL or TLS, of tanist or of Apache Kafka, whose tools they use."""
    if (reason := apache.missing()) is not None:
        return [Result(SECURED_NAME, "skipped", reason)]
    serve, storage = [str(PROGRAM), "serve"], [str(PROGRAM)]
    if target == "apache":
        serve = apache.java_command(apache.SERVER, flags=("-Xmx512m", *apache.SERVER_FLAGS), logging="server")
        storage = apache.java_command(apache.STORAGE, flags=apache.TOOL_FLAGS)
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        resources = root / "servers" / "resources" / "default"
        resources.mkdir(parents=True)
        shutil.copy(LOCKS / "kafka.properties", resources)
        # Never read: Java's login is in the properties.
        (resources / "kafka_server_jaas.conf").write_text("{jaas_config}\n")
        (resources / "sasl_command.conf").write_text(
            "security.protocol={transport}\nsasl.mechanism={sasl_mechanism}\nsasl.jaas.config={jaas_config}\n"
        )
        tool = root / "bin" / "kafka-storage.sh"
        tool.parent.mkdir()
        # The suite formats before it writes how clients authenticate; ours wants to know, for a listener with SASL.
        tool.write_text(
            "#!/bin/bash\n"
            """sed -s 's/:\\(SASL_PLAINTEXT\\|SSL\\)\\>/:PLAINTEXT/g' "$6" > "$6.format"\n"""
            f'exec {shlex.join(storage)} "${{@/%.properties/.properties.format}}"\n'
        )
        topics = apache.java_command(apache.TOPICS, flags=apache.TOOL_FLAGS)
        (tool.parent / "kafka-topics.sh").write_text(f'#!/bin/bash\nexec {shlex.join(topics)} "$@"\n')
        for script in tool.parent.iterdir():
            script.chmod(0o755)
        environment = {
            "KAFKA_ROOT": scratch,
            "PROJECT_ROOT": scratch,
            "SUITES_SERVE": json.dumps(serve),
            "SUITES_READY": " is unfenced" if target == "tanist" else "Kafka Server started",
        }
        tests = ("test/integration/test_sasl_integration.py", "test/integration/test_ssl_integration.py")
        return _results(tests, environment, only, limit_s)


def _results(tests: tuple[str, ...], more: Mapping[str, str], only: str | None, limit_s: float) -> list[Result]:
    python = install.venv("suites-venv", LOCKS / "requirements.txt") / "bin" / "python"
    root = sources()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [
            str(python), "-m", "pytest", *tests, "-q", f"--timeout={TEST_S}", f"--junitxml={report}",
            f"--session-timeout={limit_s:.0f}", "--timeout-method=signal", "-p", "no:cacheprovider",
            *(("-k", only) if only else ()),
        ]  # fmt: skip
        ours = os.environ.get("PYTHONPATH", "")
        environment = {"KAFKA_VERSION": KAFKA_VERSION, "PYTHONPATH": str(root), "SUITES_PYTHONPATH": ours, **more}
        with (install.CACHE / "suites-kafka-python.log").open("w") as log:
            subprocess.run(
                command, cwd=root, env=os.environ | environment, stdout=log, stderr=log, check=False,
                timeout=limit_s + 2 * TEST_S,
            )  # fmt: skip
        return from_junit(report.read_text())
