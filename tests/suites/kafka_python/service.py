"""`test/service.py` of kafka-python's suite, which its source distribution leaves out: nodes as processes.

`SUITES_SERVE` is the command that serves a properties file, `SUITES_READY` what the node logs when it can be used.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


class ExternalService:
    """A node that runs already."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def stop(self) -> None:
        pass


class SpawnedService:
    """A node of the properties file that is the last argument."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        if "SUITES_SERVE" not in os.environ:
            raise RuntimeError("no broker is started here")
        self._file = Path(arguments[-1])
        self._log = self._file.with_suffix(".log")

    def start(self) -> None:
        self._file.write_text(_with_login(self._file.read_text()))
        command = [*json.loads(os.environ["SUITES_SERVE"]), str(self._file)]
        with self._log.open("wb") as log:
            environment = {**os.environ, "PYTHONPATH": os.environ["SUITES_PYTHONPATH"]}
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def wait_for(self, pattern: str, timeout: float) -> bool:
        """Whether the node can be used, in so many seconds; its users were there before it started."""
        deadline = time.monotonic() + max(timeout, 60)
        while time.monotonic() < deadline and self._process.poll() is None:
            if os.environ["SUITES_READY"] in self._log.read_text(errors="replace"):
                return True
            time.sleep(0.1)
        return False

    def dump_logs(self) -> None:
        print(self._log.read_text(errors="replace")[-5000:])

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def _with_login(properties: str) -> str:
    """Java's login where both kinds of node look for it: with the listener and the mechanism."""
    found = re.search("^login=(.+)$", properties, re.MULTILINE)
    mechanism = re.search("^sasl.enabled.mechanisms=(.+)$", properties, re.MULTILINE)
    kept = re.sub("^login=.*$", "", properties, flags=re.MULTILINE)
    if found is None or mechanism is None:
        return kept
    return f"{kept}\nlistener.name.sasl_plaintext.{mechanism[1].lower()}.sasl.jaas.config={found[1]}\n"
