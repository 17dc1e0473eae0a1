"""The scripted writer: a client that writes records when a directed run's script asks for them.

It sends one record per batch to the broker that the script names, without idempotence and retries unless the script
asks for them. The run's history gets the result as far as a client knows it: refused, acknowledged, or unknown.
"""

from __future__ import annotations

from typing import Any

from tanist.client.sequences import produce_request
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import TOPIC
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.cluster_client import REQUEST_TIMEOUT_MS
from tanist.sim.workload.history import Send
from tanist.sim.world.world import BROKER_PORT
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode

_PRODUCE_VERSION = 9
_PRODUCER_ID = 77
"""An id that a controller does not hand out: ids begin at 0, and no run asks for this many."""

_OPEN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors after which a record may still be in the log."""


class ScriptedWriter(SimClient):
    """Writes a script's records one by one, and notes them in the run's history."""

    def __init__(self, run: ChaosRun) -> None:
        super().__init__(run.world, "writer", run.history)
        self._count = 0

    def write(self, broker_id: int, records: int = 1, *, acks: int = -1, topic: str = TOPIC) -> list[Send]:
        """Batches of one record each, to a broker that may or may not lead; without retries."""
        return [self._write(self._new(topic, promised=acks == -1), broker_id, acks) for _ in range(records)]

    def write_keys(self, broker_id: int, keys: str) -> None:
        """A record for each letter, which is its key."""
        for key in keys:
            self._write(self._new(TOPIC, promised=True), broker_id, -1, key.encode())

    def write_once(self, broker_id: int) -> Send:
        """One record, as the first of an idempotent producer. It may be sent again."""
        send = self._new(TOPIC, promised=True)
        send.ordered = True
        return self._write(send, broker_id, -1)

    def again(self, send: Send, broker_id: int) -> None:
        """The same record of the same producer, perhaps to another broker, as if no answer had come."""
        self._write(send, broker_id, -1)

    def _new(self, topic: str, *, promised: bool) -> Send:
        self._count += 1
        value = f"writer-{self._count:03}".encode()
        return Send(self.name, self._count, topic, 0, value, self.now_us, promised=promised, ordered=False)

    def _write(self, send: Send, broker_id: int, acks: int, key: bytes | None = None) -> Send:
        record = NewRecord(timestamp=self.clock.wall_ms(), key=key, value=send.value)
        batch = (
            encode_batch([record], producer_id=_PRODUCER_ID, producer_epoch=0, base_sequence=0)
            if send.ordered
            else encode_batch([record])
        )
        request = produce_request((send.topic, 0), bytes(batch), acks=acks, timeout_ms=2_000)
        channel = self.channel((self.world.hosts[broker_id].name, BROKER_PORT))

        def handle_response(response: Any) -> None:
            if response is None:
                return
            answer = response.responses[0].partition_responses[0]
            send.error = answer.error_code
            if not answer.error_code:
                self.history.acknowledged(send, answer.base_offset, self.now_us)
            elif answer.error_code not in _OPEN:
                send.outcome, send.completed_us = "failed", self.now_us

        def go() -> None:
            if send.value not in self.history.by_value:
                self.history.sent(send)
            channel.call(request, _PRODUCE_VERSION, REQUEST_TIMEOUT_MS, handle_response)

        self.run(go)
        return send
