"""A standalone Spark cluster of processes: a master, and workers with one core each. On 127.0.0.1, or on hosts of
their own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from tanist.runtime.cluster.processes import wait_until
from tanist.spark.java_home import find_java_home
from tests.spark.namespaces import Namespaces

PATIENCE_S = 120


class Standalone:
    """`with Standalone(folder, port) as cluster`: `cluster.master` is its address, `spark://...`."""

    def __init__(
        self, folder: Path, port: int, workers: int = 2, memory: str = "700m", hosts: Namespaces | None = None
    ) -> None:
        """`memory`: of each worker. `hosts`: they have those of the names `master`, `worker-0`, ..."""
        self.folder, self._port, self._workers, self._memory, self._hosts = folder, port, workers, memory, hosts
        self.master = f"spark://{self._address('master')}:{port}"
        self._stack = ExitStack()

    def __enter__(self) -> Standalone:
        try:
            log = self._start("master", "org.apache.spark.deploy.master.Master", "--port", str(self._port))
            self._wait(log, "I have been elected leader", 1)
            for number in range(self._workers):
                size = ("-c", "1", "-m", self._memory, "-d", str(self.folder / f"work-{number}"))
                self._start(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *size, self.master)
            self._wait(log, "Registering worker", self._workers)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, name: str, main: str, *arguments: str) -> Path:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "JAVA_HOME": find_java_home(), "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_IP": self._address(name), "SPARK_NO_DAEMONIZE": "1", "PYSPARK_PYTHON": sys.executable,
        }  # fmt: skip
        log = self.folder / f"{name}.log"
        output: IO[bytes] = self._stack.enter_context(log.open("ab"))
        place = ("--host", self._address(name), "--webui-port", "0")
        command = [str(home / "bin" / "spark-class"), main, *place, *arguments]
        if self._hosts is not None:
            command = self._hosts.on(name, *command)
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        return log

    def _address(self, name: str) -> str:
        return "127.0.0.1" if self._hosts is None else self._hosts.address(name)

    def _wait(self, log: Path, text: str, times: int) -> None:
        if not wait_until(lambda: log.read_text(errors="replace").count(text) >= times, PATIENCE_S):
            raise AssertionError(f"{log.name} does not say {text!r}:\n{log.read_text(errors='replace')[-3000:]}")
