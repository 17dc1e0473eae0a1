"""A scripted cluster: whole nodes in virtual time, and one client that asks and waits.

Owns the verbs of a script that let time pass, until an answer is there or a condition holds. They must never look at
more than clients and operators see, and decide nothing: the nodes do. A script that waits in vain gets a `ScriptError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tanist.client.admin import create_topics_request, new_topic
from tanist.client.positions import fetch_request
from tanist.client.sequences import produce_request
from tanist.sim.scripted.hosts import ScriptedHosts
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.world import BROKER_PORT, Host, Watcher, World
from tanist.wire.batch import NewRecord, Record, decode_batch, encode_batch, iterate_batches
from tanist.wire.errors import ErrorCode

CREATE_TOPICS_VERSION = 7
PRODUCE_VERSION = 9
FETCH_VERSION = 12
_TRIES, _PAUSE_MS = 20, 100


class ScriptError(Exception):
    """The cluster does not reach the state that a script waits for, or refuses what it asks for."""


class ScriptedCluster(ScriptedHosts):
    """A world with one client."""

    patience_ms = 30_000
    """How long a condition is waited for, in virtual time."""

    def __init__(self, world: World, client: SimClient | None = None) -> None:
        super().__init__(world, client or SimClient(world, "client", History()))

    # -- time

    def start(self) -> None:
        """Start all nodes, until all brokers are unfenced."""
        self.world.start()
        self.until(self.world.ready)

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        self.world.run_for(duration_ms)

    def until(self, condition: Callable[[], bool], within_ms: int | None = None) -> None:
        """Let time pass until the condition holds."""
        limit_ms = self.patience_ms if within_ms is None else within_ms
        if not self.world.run_until(condition, within_ms=limit_ms):
            raise ScriptError(f"what the script waits for has not come within {limit_ms / 1000:g} s of virtual time")

    @contextmanager
    def when(self, condition: Callable[[], bool], action: Callable[[], None]) -> Iterator[None]:
        """Act at the end of the turn in which the condition holds first. The block may end before; this waits."""
        watcher = _Once(self.world, condition, action)
        self.world.watchers.append(watcher)
        try:
            yield
            self.until(lambda: watcher.done)
        finally:
            self.world.watchers.remove(watcher)

    # -- requests

    def ask(
        self,
        request: Any,
        version: int,
        *,
        to: int = 1,
        port: int = BROKER_PORT,
        timeout_ms: int | None = None,
        client: SimClient | None = None,
    ) -> Any:
        """Send a request to a node and wait for the answer; None if the connection ends instead."""
        limit_ms = self.timeout_ms if timeout_ms is None else timeout_ms
        answers = self.send(request, version, to=to, port=port, timeout_ms=limit_ms, client=client)
        self.until(lambda: bool(answers), limit_ms + 1_000)
        return answers[0]

    def insist(self, request: Any, version: int, *, to: int = 1) -> Any:
        """`ask`, again and again until there is an answer."""
        for _ in range(_TRIES):
            answer = self.ask(request, version, to=to)
            if answer is not None:
                return answer
            self.run(_PAUSE_MS)
        raise ScriptError("nobody answers")

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        factor: int = 3,
        assignment: Sequence[Sequence[int]] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, and wait until its first partition has a leader."""
        topic = new_topic(
            name, partitions=partitions, replication_factor=factor, assignment=assignment or (), configs=config
        )
        answer = self.ask(create_topics_request(topic), CREATE_TOPICS_VERSION)
        if answer is None or answer.topics[0].error_code != ErrorCode.NONE:
            raise ScriptError(f"the topic could not be created: {answer}")
        self.until(lambda: self.leader(name) is not None)

    def records(self, values: Sequence[bytes | None], key: bytes | None = None, **batch: Any) -> bytes:
        """A batch of these values, as `encode_batch` makes it."""
        wall_ms = batch.pop("timestamp", self.client.clock.wall_ms())
        return bytes(encode_batch([NewRecord(timestamp=wall_ms, key=key, value=value) for value in values], **batch))

    def produce(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        key: bytes | None = None,
        partition: int = 0,
        acks: int = -1,
        to: int | None = None,
        version: int = PRODUCE_VERSION,
        timeout_ms: int = 2_000,
        **batch: Any,
    ) -> Any:
        """Produce one batch, to the leader; the partition's answer, or None if the connection ended."""
        records = self.records(values, key, **batch)
        request = produce_request((topic, partition), records, acks=acks, timeout_ms=timeout_ms)
        answer = self.ask(request, version, to=self._reached(topic, partition, to))
        return None if answer is None else answer.responses[0].partition_responses[0]

    def fetch(
        self,
        topic: str,
        offset: int = 0,
        *,
        partition: int = 0,
        to: int | None = None,
        version: int = FETCH_VERSION,
        max_wait_ms: int = 0,
        rack_id: str = "",
    ) -> Any:
        """The partition's answer to a consumer's fetch, of the leader."""
        request = fetch_request((topic, partition), offset, max_bytes=1 << 20, max_wait_ms=max_wait_ms)
        request.rack_id = rack_id
        reached = self._reached(topic, partition, to)
        answer = self.ask(request, version, to=reached)
        if answer is None:  # a connection from before the node's last life
            answer = self.insist(request, version, to=reached)
        return answer.responses[0].partitions[0]

    def read(self, topic: str, *, partition: int = 0, to: int | None = None) -> Iterator[Record]:
        """All committed records of a partition, as a consumer reads them."""
        offset = 0
        while True:
            answer = self.fetch(topic, offset, partition=partition, to=to)
            if answer.error_code != ErrorCode.NONE:
                raise ScriptError(f"{topic}-{partition} could not be read: {answer}")
            if not answer.records:
                return
            for header, batch in iterate_batches(answer.records):
                yield from decode_batch(batch)
                offset = header.next_offset

    def _reached(self, topic: str, partition: int, to: int | None) -> int:
        """Broker `to`, else the leader, else any."""
        return to or self.leader(topic, partition) or 1


class _Once(Watcher):
    """Waits for one condition."""

    def __init__(self, world: World, condition: Callable[[], bool], action: Callable[[], None]) -> None:
        self.done = False
        self._world = world
        self._condition = condition
        self._action = action

    def turn_ended(self, host: Host) -> None:
        if not self.done and self._condition():
            self.done = True
            self._world.scheduler.after(0, self._action)
