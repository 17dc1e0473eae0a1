"""One controller as a process: Apache Kafka's, or ours, with the same properties and nothing but itself in its quorum.

Nothing happens in it that a sequence has not asked for: no balancing, no sweep, no records that only show progress. How
long brokers' sessions last is the caller's choice.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tanist.runtime.client.client import BrokerConnection
from tests.interop import apache
from tests.interop.cluster import HOST, free_ports
from tests.interop.waiting import wait_for

NODE_ID = 1000
START_S = 60.0

PROPERTIES = {
    "process.roles": "controller",
    "node.id": str(NODE_ID),
    "controller.listener.names": "CONTROLLER",
    "auto.leader.rebalance.enable": "false",
    "metadata.max.idle.interval.ms": "0",
    "controller.quorum.append.linger.ms": "0",
    "unclean.leader.election.interval.ms": "3600000",
}


class ControllerDied(AssertionError):
    """A controller's process ended, or never served."""


@dataclass(slots=True)
class ControllerNode:
    """`serve`: the command that runs it from a properties file; `prepare`: what formats its folder first."""

    name: str
    folder: Path
    cluster_id: str
    extra: dict[str, str] = field(default_factory=dict)
    metadata_version: int = apache.PIN.metadata_version
    port: int = field(default_factory=lambda: free_ports(1))
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def properties_file(self) -> Path:
        return self.folder / "server.properties"

    @property
    def log_file(self) -> Path:
        return self.folder / "server.log"

    @property
    def pid(self) -> int:
        self.check_alive()
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Format the folder if it is new, and run until it answers."""
        data = self.folder / "data"
        if not data.exists():
            self._make(data)
        with self.log_file.open("ab") as output:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        atexit.register(self.stop)
        wait_for(self._serves, f"{self.name} serves", timeout_s=START_S)

    def _make(self, data: Path) -> None:
        data.mkdir(parents=True)
        where = f"{HOST}:{self.port}"
        properties = {
            **PROPERTIES,
            "listeners": f"CONTROLLER://{where}",
            "controller.quorum.voters": f"{NODE_ID}@{where}",
            "log.dirs": str(data),
            **self.extra,
        }
        self.properties_file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._format()

    def connect(self, timeout_s: float = 20.0) -> BrokerConnection:
        return BrokerConnection((HOST, self.port), "conformity", timeout_s)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """SIGKILL."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def check_alive(self) -> None:
        if self._process is None or self._process.poll() is not None:
            tail = "\n".join(self.log_file.read_text(errors="replace").splitlines()[-30:])
            raise ControllerDied(f"{self.name} is not running:\n{tail}")

    def _serves(self) -> bool:
        self.check_alive()
        self.connect(1.0).close()
        return True

    def _format(self) -> None:
        raise NotImplementedError

    def _command(self) -> Sequence[str]:
        raise NotImplementedError


class ApacheController(ControllerNode):
    """Apache Kafka's own."""

    __slots__ = ()

    def _format(self) -> None:
        apache.tool(
            apache.STORAGE, "format", "--config", str(self.properties_file), "--cluster-id", self.cluster_id,
            "--feature", f"metadata.version={self.metadata_version}",
        )  # fmt: skip

    def _command(self) -> Sequence[str]:
        flags = (*apache.SERVER_FLAGS, "-Xmx512m")
        return apache.java_command(apache.SERVER, str(self.properties_file), flags=flags, logging="server")


class TanistController(ControllerNode):
    """Ours, in KIP-966's first phase."""

    __slots__ = ()

    def _format(self) -> None:
        command = [
            _tanist(), "format", "--config", str(self.properties_file), "--cluster-id", self.cluster_id,
            "--feature", f"metadata.version={self.metadata_version}",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise ControllerDied(f"{' '.join(command)}: {done.stdout}{done.stderr}")

    def _command(self) -> Sequence[str]:
        return [_tanist(), "serve", str(self.properties_file)]


def _tanist() -> str:
    return str(Path(sys.executable).with_name("tanist"))


def both(
    folder: Path, session_ms: int, metadata_version: int = apache.PIN.metadata_version
) -> tuple[ControllerNode, ControllerNode]:
    """Apache's controller and ours, started, of clusters with the same id."""
    cluster_id = apache.random_cluster_id()
    session = {"broker.session.timeout.ms": str(session_ms), "broker.heartbeat.interval.ms": str(session_ms // 4)}
    theirs = ApacheController("apache", folder / "apache", cluster_id, session, metadata_version)
    first_phase = {"unclean.recovery.manager.enabled": "false"}
    ours = TanistController("tanist", folder / "tanist", cluster_id, session | first_phase, metadata_version)
    try:
        theirs.start()
        ours.start()
    except BaseException:
        theirs.stop()
        ours.stop()
        raise
    return theirs, ours
