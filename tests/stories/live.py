"""A cluster of processes in a folder of its own, for the programs here that are not transcripts.

It ends with its `with` block: every process that it has started is killed, and the folder removed.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from tanist.runtime.client import admin
from tanist.runtime.client.admin import PartitionDescription
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.cluster_file import NodeEntry, load_existing
from tests.interop.waiting import wait_for
from tests.stories.stage import free_port

T = TypeVar("T")

CONTROLLERS = 3
WAIT_S = 60.0
_ASK_S = 5.0


class Live:
    """Brokers 1 to `brokers`, and controllers beside them that no story harms."""

    def __init__(
        self, *, brokers: int, config: Mapping[str, str] | None = None, features: Mapping[str, int] | None = None
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tanist-live-")
        self.folder = Path(self._folder.name)
        self.cluster = LocalCluster(self.folder)
        self.broker_ids = range(1, brokers + 1)
        self._config = config or {}
        self._features = features or {}

    def __enter__(self) -> Live:
        try:
            self.cluster.up(
                brokers=len(self.broker_ids),
                controllers=CONTROLLERS,
                port=free_port(),
                config=self._config,
                features=self._features,
            )
        except BaseException:
            self._folder.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in load_existing(self.folder).running:
            if node.process is not None:
                node.process.kill()
        self._folder.cleanup()

    def node(self, node_id: int) -> NodeEntry:
        return load_existing(self.folder).node(node_id)

    def addresses(self, broker_ids: Iterable[int] | None = None) -> list[Address]:
        """Of these brokers, or of all."""
        return [
            ("127.0.0.1", self.node(each).broker_port)
            for each in (self.broker_ids if broker_ids is None else broker_ids)
        ]

    def pause(self, broker_ids: Iterable[int]) -> None:
        self._signal(broker_ids, signal.SIGSTOP)

    def resume(self, broker_ids: Iterable[int]) -> None:
        self._signal(broker_ids, signal.SIGCONT)

    def _signal(self, broker_ids: Iterable[int], number: int) -> None:
        for each in broker_ids:
            process = self.node(each).process
            if process is None or not process.signal(number):
                raise RuntimeError(f"broker {each} does not run")

    def wait(
        self,
        topic: str,
        condition: Callable[[Sequence[PartitionDescription]], bool],
        what: str,
        *,
        asked: Iterable[int] | None = None,
    ) -> None:
        """Until each of the brokers (all, or `asked`) tells of partitions that fulfil the condition."""
        for address in self.addresses(asked):
            with closing(Client([address], timeout_s=_ASK_S)) as client:

                def holds(client: Client = client) -> bool:
                    try:
                        (found,) = admin.describe_topics(client, [topic])
                    except (KafkaError, Unreachable):
                        return False
                    return condition(found.partitions)

                wait_for(holds, what, timeout_s=WAIT_S)
