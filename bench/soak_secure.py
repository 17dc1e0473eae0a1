"""What goes on in a soak of a secure cluster besides the loads: who comes, who is refused, what changes.

Owns the users of `--secure` and what each of them does the whole time: newcomers log in and leave, now and then with a
wrong password; a stranger writes without permission; a greedy user writes more than its quota; users and permissions
come and go. Each counts what came of it. `wrong` says what must not have come.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tanist.client.sequences import produce_request
from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.runtime.cluster.layout import node_folder
from tanist.wire.apis import ApiKey
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_response, encode_request
from tanist.wire.messages.produce_response import ProduceResponse
from tests.interop.cluster import raw_client
from tests.interop.raw import ProtocolError, RawClient
from tests.interop.secure_cluster import SecureCluster

GREEDY, STRANGER = "greedy", "stranger"
QUOTA_BYTES = 64 << 10
"""A second, of the greedy user on each broker."""
HIGH_QUOTAS = {"producer_byte_rate": 1e9, "consumer_byte_rate": 1e9, "request_percentage": 1e6}
"""Of the loads' user: counted, and never exceeded."""
NEWCOMER_S = 0.1
CHANGE_S = 1.0
WRONG_ONE_OF = 10
PATIENCE_S = 30.0
_RECORD = b"g" * 1_000
_WRONG = ("let in with a wrong password", "written without permission")


@dataclass(slots=True)
class Visitors:
    """All of them, on one cluster."""

    cluster: SecureCluster
    counts: Counter[str] = field(default_factory=Counter)
    greedy_bytes: int = 0

    def arrive(self) -> None:
        security = self.cluster.security
        for user in (GREEDY, STRANGER):
            security.add_user(user, f"{user}-secret")
        security.allow(f"User:{GREEDY}", "WRITE", f"topic:{GREEDY}")
        security.throttle(GREEDY, producer_byte_rate=QUOTA_BYTES)
        security.throttle("app", **HIGH_QUOTAS)

    def come_and_go(self, stopping: threading.Event) -> None:
        number = 0
        while not stopping.wait(NEWCOMER_S):
            number += 1
            node_id = self.cluster.node_ids[number % len(self.cluster.node_ids)]
            with suppress(OSError):  # it may be down
                if number % WRONG_ONE_OF:
                    raw_client(self.cluster, node_id).close()
                    self.counts["logged in"] += 1
                else:
                    self._guess(node_id)

    def _guess(self, node_id: int) -> None:
        with RawClient(*self.cluster.address(node_id)) as client:
            client.over_tls(self.cluster.tls)
            try:
                client.log_in("app", "a guess")
            except ProtocolError as error:
                if "error 58" in str(error):
                    self.counts["wrong passwords refused"] += 1
                    return
                raise
            self.counts["let in with a wrong password"] += 1

    def write_without_permission(self, stopping: threading.Event) -> None:
        """To each node in turn, by a request that no library holds back."""
        records = bytes(encode_batch([NewRecord(timestamp=1, key=None, value=b"forged")]))
        frame = encode_request(produce_request(("flow", 0), records, timeout_ms=1_000), 9, 1, STRANGER)
        number = 0
        while not stopping.wait(NEWCOMER_S * 2):
            number += 1
            node_id = self.cluster.node_ids[number % len(self.cluster.node_ids)]
            with suppress(OSError), RawClient(*self.cluster.address(node_id)) as client:
                client.over_tls(self.cluster.tls)
                client.log_in(STRANGER, f"{STRANGER}-secret")
                answer = decode_response(ApiKey.PRODUCE, 9, memoryview(client.exchange(frame)))
                assert isinstance(answer, ProduceResponse)
                code = answer.responses[0].partition_responses[0].error_code
                refused = code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
                self.counts["writes refused" if refused else f"written without permission, {code}"] += 1

    def write_too_much(self, stopping: threading.Event) -> None:
        from confluent_kafka import Producer

        settings = {"queue.buffering.max.messages": 2_000, "message.timeout.ms": 120_000, "log_level": 0}
        producer = Producer(self.cluster.settings_of(GREEDY) | settings)

        def outcome(error: Any, message: Any) -> None:
            if error is None:
                self.greedy_bytes += len(message.value())

        while not stopping.is_set():
            try:
                producer.produce(GREEDY, _RECORD, on_delivery=outcome)
            except BufferError:
                producer.poll(0.1)
        producer.purge()
        producer.flush(PATIENCE_S)

    def change(self, stopping: threading.Event) -> None:
        """A user comes, may do something, may do it no longer, and goes."""
        number = 0
        while not stopping.wait(CHANGE_S):
            number += 1
            user = f"visitor-{number % 20}"
            security = self.cluster.security
            with suppress(ClusterError):  # while a controller is elected
                security.add_user(user, f"secret-{number}")
                security.allow(f"User:{user}", "READ", f"topic:{user}*")
                security.deny(f"User:{user}", "READ", f"topic:{user}*")
                security.throttle(user, consumer_byte_rate=1000.0 + number)
                security.throttle(user, consumer_byte_rate=None)
                security.revoke(user)
                self.counts["users who came and went"] += 1

    def account(self, seconds: float) -> dict[str, Any]:
        return {
            **self.counts,
            "greedy user, bytes a second": round(self.greedy_bytes / seconds),
            "its quota, all brokers together": QUOTA_BYTES * len(self.cluster.node_ids),
            "lines of errors": dict(Counter(self._errors())),
        }

    @property
    def wrong(self) -> bool:
        """Whether somebody got in, or did what he may not."""
        return any(count and what.startswith(_WRONG) for what, count in self.counts.items())

    def _errors(self) -> Iterator[str]:
        """The errors and warnings of all nodes' logs, with numbers left out."""
        for node_id in self.cluster.node_ids:
            for path in sorted(node_folder(self.cluster.directory, node_id).glob("*.log")):
                for line in path.read_text(errors="replace").splitlines():
                    if found := re.search(r"\b(ERROR|WARN\w*|CRITICAL)\b.*", line):
                        yield re.sub(r"\d+", "N", found.group())[:140]
