"""The final reads: each partition from its first record to its end, and until an empty poll.

Owns what the end is. For the records of transactions it is the last stable offset, which has to come to the end of the
log first: both are noted, and a partition where it does not is reported as hanging.
"""

from __future__ import annotations

import time

from tanist.client.positions import EARLIEST, LATEST
from tanist.lab.history import HistoryWriter
from tanist.lab.jepsen.outcome import FINAL
from tanist.lab.jepsen.own_client import value_of
from tanist.lab.jepsen.plan import Workload
from tanist.lab.jepsen.target import RunFailed, Target, client_of
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.records import fetch, list_offset

_PATIENCE_S = 60.0
_ASK_EVERY_S = 0.5


def read_everything(
    writer: HistoryWriter, target: Target, topic: str, partitions: int, workload: Workload
) -> list[str]:
    """Read all partitions. Returns those where a transaction stays open."""
    hanging: list[str] = []
    try:
        with client_of(target, _PATIENCE_S) as client:
            for partition in range(partitions):
                reader = _Reader(writer, client, topic, partition, committed=workload == "transactions")
                if not reader.wait_for_transactions():
                    hanging.append(reader.name)
                reader.read()
    except (KafkaError, Unreachable) as error:
        raise RunFailed(f"the topic cannot be read to its end: {error}") from error
    return hanging


class _Reader:
    """The final reader of one partition."""

    def __init__(self, writer: HistoryWriter, client: Client, topic: str, partition: int, *, committed: bool) -> None:
        self.name = f"{topic}-{partition}"
        self._writer = writer
        self._client = client
        self._topic = topic
        self._partition = partition
        self._committed = committed
        self._process = f"{FINAL}/{partition}"

    def wait_for_transactions(self) -> bool:
        """Wait until no transaction is open in what is there. Returns whether that came in time."""
        if not self._committed:
            return True
        end = self._end(committed=False)
        deadline = time.monotonic() + _PATIENCE_S
        while self._end(committed=True) < end:
            if time.monotonic() > deadline:
                return False
            time.sleep(_ASK_EVERY_S)
        return True

    def read(self) -> None:
        """From the first record to the end, and until an empty poll."""
        position = list_offset(self._client, self._topic, self._partition, EARLIEST)
        self._note("assign", partitions=[self.name], positions={self.name: position})
        isolation = "read_committed" if self._committed else None
        ended = False
        while not ended:
            began_ns = time.monotonic_ns()
            # Ask for the end first: all records below it must come.
            end = list_offset(self._client, self._topic, self._partition, LATEST, read_committed=self._committed)
            found = fetch(
                self._client, self._topic, self._partition, position, max_wait_ms=200, read_committed=self._committed
            )
            ended = not found.records and found.next_offset >= end
            if found.records or ended:
                pairs = [(record.offset, value_of(record.value)) for record in found.records]
                records = {self.name: pairs} if pairs else None
                self._note("poll", records=records, invoked_ns=began_ns, isolation=isolation)
            position = found.next_offset

    def _end(self, *, committed: bool) -> int:
        began_ns = time.monotonic_ns()
        offset = list_offset(self._client, self._topic, self._partition, LATEST, read_committed=committed)
        isolation = "read_committed" if committed else "read_uncommitted"
        self._note("end", partition=self.name, offset=offset, invoked_ns=began_ns, isolation=isolation)
        return offset

    def _note(self, function: str, **fields: object) -> None:
        self._writer.complete(self._process, function, "ok", time.monotonic_ns(), **fields)
