"""`docker`, as aiokafka's tests import it, without containers: what is to run in one runs on this machine.

`SUITES_CONTAINER` is JSON: the command of `tests.suites.aiokafka.container`, its folder and its environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def _start(*arguments: str, **how: Any) -> subprocess.Popen[bytes]:
    own = json.loads(os.environ["SUITES_CONTAINER"])
    return subprocess.Popen([*own["command"], *arguments], cwd=own["folder"], env={**os.environ, **own["more"]}, **how)


class Container:
    """A folder for scripts; a node too if no command is named."""

    def __init__(
        self, command: str | None, volumes: Mapping[Any, Mapping[str, str]], environment: Mapping[str, Any], folder: str
    ) -> None:
        self._paths = {each["bind"]: str(Path(path).resolve()) for path, each in volumes.items()}
        self._folder = self._paths.get(folder) or tempfile.mkdtemp(prefix="suites-")
        self._node: subprocess.Popen[bytes] | None = None
        if command is None:
            self._settings = json.dumps({**environment, "folder": self._folder, "stores": self._paths["/ssl_cert"]})
            with Path(self._folder, "log").open("wb") as log:
                self._node = _start("serve", self._settings, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def exec_run(self, command: str | Sequence[str], user: str | None = None) -> tuple[int | None, bytes]:
        """A script by its path, one of Apache Kafka's tools as one text, or the log of the node."""
        output: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        if isinstance(command, str):
            process = _start("tool", self._settings, command, **output)
        elif command[0] == "supervisorctl":
            return 0, Path(self._folder, "log").read_bytes()
        else:
            process = subprocess.Popen([self._paths.get(each, each) for each in command], cwd=self._folder, **output)
        said, _ = process.communicate()
        return process.returncode, said

    def stop(self) -> None:
        """End the node; it has a minute for that."""
        if self._node is not None:
            self._node.communicate(timeout=60)
            shutil.rmtree(self._folder)


class _Containers:
    def run(
        self,
        image: str,
        command: str | None = None,
        volumes: Mapping[Any, Mapping[str, str]] | None = None,
        environment: Mapping[str, Any] | None = None,
        working_dir: str = "",
        **docker: Any,
    ) -> Container:
        return Container(command, volumes or {}, environment or {}, working_dir)


class Client:
    """What the tests have of Docker."""

    containers = _Containers()

    def close(self) -> None:
        pass


def from_env() -> Client:
    return Client()


models = SimpleNamespace(containers=SimpleNamespace(Container=Container))
