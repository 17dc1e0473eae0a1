"""A cluster that is not tanist's own, for example Apache Kafka's: known by its addresses, broken by commands.

The commands are shell commands in which `{node}` stands for the node's id. A fault without a command is not injected.
The cluster reports its node ids. The state of its processes is known only from the commands: a killed node is down
until it is started here, and `close` starts all nodes that the test has left down or paused.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from tanist.lab.jepsen.target import Reach, RunFailed
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable
from tanist.runtime.client.identity import security_by
from tanist.runtime.faults.settings import DiskState

COMMAND_PATIENCE_S = 90.0
_SAID_CHARS_MAX = 500
_ASK_S = 10.0


class OutsideCluster:
    """`commands` has `start` and `crash`, and may have `lose`, and `pause` with `resume`."""

    def __init__(
        self,
        brokers: Mapping[int, Address],
        commands: Mapping[str, str],
        name: str = "cluster",
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.properties = properties
        self.data: Path | None = None
        self.node_ids: Sequence[int] = sorted(brokers)
        self.addresses: Sequence[Address] = [brokers[node_id] for node_id in self.node_ids]
        needed = {"crash": "crash", "power-loss": "lose", "pause": "pause"}
        self.abilities = frozenset(fault for fault, command in needed.items() if command in commands)
        self._commands = commands
        self._down: set[int] = set()
        self._paused: set[int] = set()

    def alive(self, node_id: int) -> bool:
        return node_id not in self._down

    def kill(self, node_id: int) -> None:
        self._down.add(node_id)
        self._run("crash", node_id)

    def lose_power(self, node_id: int) -> str:
        self.kill(node_id)
        return self._run("lose", node_id).strip().partition("\n")[0]

    def start(self, node_id: int) -> None:
        self._run("start", node_id)
        self._down.discard(node_id)

    def pause(self, node_id: int) -> None:
        self._paused.add(node_id)
        self._run("pause", node_id)

    def resume(self, node_id: int) -> None:
        self._run("resume", node_id)
        self._paused.discard(node_id)

    def cut(self, source: Sequence[int], target: Sequence[int], reach: Reach) -> None:
        raise RunFailed("links of this cluster cannot be cut")

    def everybody_else(self, node_id: int) -> Sequence[int]:
        return [each for each in self.node_ids if each != node_id]

    def slow(self, node_id: int, to: Literal["nodes", "clients"]) -> None:
        raise RunFailed("links of this cluster cannot be slowed")

    def disk(self, node_id: int, state: DiskState) -> None:
        raise RunFailed("disks of this cluster cannot be broken")

    def heal(self) -> None:
        for node_id in sorted(self._paused):
            self.resume(node_id)

    def close(self) -> None:
        """The cluster stays up, but all faults of the test are repaired."""
        self.heal()
        for node_id in sorted(self._down):
            self.start(node_id)

    def _run(self, what: str, node_id: int) -> str:
        command = self._commands[what].replace("{node}", str(node_id))
        try:
            done = subprocess.run(
                command,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=COMMAND_PATIENCE_S,
                check=False,
                start_new_session=True,  # a Ctrl-C ends the test, not the nodes that it has started
            )
        except subprocess.TimeoutExpired:
            hint = ": a command that starts a node must return, and not keep its output open" if what == "start" else ""
            raise RunFailed(f"`{command}` takes longer than {COMMAND_PATIENCE_S:.0f} s{hint}") from None
        if done.returncode:
            said = done.stdout.strip()[-_SAID_CHARS_MAX:]
            raise RunFailed(f"`{command}` ended with {done.returncode}: {said or '(it said nothing)'}")
        return done.stdout


def brokers_of(bootstrap: Sequence[Address], properties: Mapping[str, str]) -> dict[int, Address]:
    """The brokers of a cluster that is up, from its metadata."""
    try:
        with Client(bootstrap, timeout_s=_ASK_S, security=security_by(properties)) as client:
            found = client.persist(client.metadata).brokers
    except (KafkaError, Unreachable) as error:
        raise RunFailed(f"the cluster does not answer: {error}") from error
    return {node_id: (broker.host, broker.port) for node_id, broker in found.items()}
