"""Counters of a node, under Kafka's names (rules 129-132).

Owns the counters, which only grow and begin at 0 with the process. On the way of a produce or a fetch nothing is done
for them but additions of integers, one or two a request; what can be computed from the state of the node is computed
at a scrape (`metrics.scrape`), not here. What is rare is counted by its event: `observe` listens to the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tanist.controller.image.partition_state import NO_LEADER_CHANGE, RECOVERING
from tanist.events.event import Event
from tanist.events.process import CertificateTaken
from tanist.events.replication import IsrChanged, IsrUpdateFailed, LogTruncated
from tanist.wire.ids import NO_LEADER
from tanist.wire.metadata import MetadataRecord, PartitionChangeRecord

if TYPE_CHECKING:
    from tanist.controller.image.image import MetadataImage

WINDOW_MS = 30_000


class Metrics:
    """The counters of one node, in one life of its process."""

    __slots__ = (
        "authentications",
        "authorization_denied",
        "bytes_in",
        "bytes_out",
        "certificates_expire_ms",
        "commit_latency",
        "election_ms",
        "elections",
        "elr_elections",
        "expired_connections",
        "expired_produces",
        "failed_authentications",
        "failed_fetches",
        "failed_isr_updates",
        "failed_produces",
        "fetch_requests",
        "hanging_transactions",
        "isr_expands",
        "isr_shrinks",
        "malformed_requests",
        "metadata_errors",
        "new_active_controllers",
        "produce_requests",
        "records_in_before",
        "replication_bytes_in",
        "replication_bytes_out",
        "requests",
        "truncated_below_high_watermark",
        "truncated_records",
        "unclean_elections",
    )

    def __init__(self) -> None:
        # Clients' records, and followers'.
        self.produce_requests = 0
        self.failed_produces = 0
        self.expired_produces = 0
        self.fetch_requests = 0
        self.failed_fetches = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.records_in_before = 0
        """Records that producers have appended during leaderships that have ended."""
        # Requests that are not Produce or Fetch, by API key: as many keys as there are handlers.
        self.requests: dict[int, int] = {}
        self.authorization_denied = 0
        self.malformed_requests = 0
        # Of clients that say who they are, by listener: as many keys as there are listeners with SASL.
        self.authentications: dict[str, int] = {}
        self.failed_authentications: dict[str, int] = {}
        self.expired_connections: dict[str, int] = {}
        """Closed for a request after the end of their sessions (KIP-368)."""
        self.certificates_expire_ms: dict[str, int] = {}
        """By listener: when the certificate that it shows is not good any more."""
        # Replicas.
        self.isr_expands = 0
        self.isr_shrinks = 0
        self.failed_isr_updates = 0
        self.truncated_records = 0
        self.truncated_below_high_watermark = 0
        self.hanging_transactions = 0
        """Transactions that were ended because no coordinator would end them."""
        # The metadata, as its records are committed.
        self.elections = 0
        self.election_ms = 0
        self.unclean_elections = 0
        self.elr_elections = 0
        self.metadata_errors = 0
        self.new_active_controllers = 0
        self.commit_latency = Latency()

    # -- replicas

    def observe(self, event: Event) -> None:
        if isinstance(event, IsrChanged):
            self.isr_expands += bool(event.grew)
            self.isr_shrinks += bool(event.shrank)
        elif isinstance(event, IsrUpdateFailed):
            self.failed_isr_updates += 1
        elif isinstance(event, CertificateTaken):
            self.certificates_expire_ms[event.listener] = event.expires_ms
        elif isinstance(event, LogTruncated):
            self.truncated_records += max(0, event.previous_end_offset - event.offset)
            self.truncated_below_high_watermark += max(0, event.previous_high_watermark - event.offset)

    # -- metadata

    def committed(self, record: MetadataRecord, before: MetadataImage, elapsed_ms: int) -> None:
        """A record is about to be applied to the image, `elapsed_ms` after it was written (rule 130)."""
        if type(record) is not PartitionChangeRecord or record.leader in (NO_LEADER_CHANGE, NO_LEADER):
            return
        state = before.partition(record.topic_id, record.partition_id)
        if state is None or state.leader == record.leader:
            return
        self.elections += 1
        self.election_ms += max(0, elapsed_ms)
        if record.leader_recovery_state == RECOVERING:
            self.unclean_elections += 1
        elif record.leader in state.elr:
            self.elr_elections += 1


@dataclass(slots=True)
class _Window:
    count: int = 0
    total_ms: int = 0
    max_ms: int = 0


class Latency:
    """Average and maximum of the last 30 to 60 seconds, as Kafka's sampled statistics have it: in two windows."""

    __slots__ = ("_began_ms", "_now", "_previous")

    def __init__(self) -> None:
        self._began_ms = 0
        self._previous = _Window()
        self._now = _Window()

    def record(self, latency_ms: int, now_ms: int) -> None:
        self._roll(now_ms)
        window = self._now
        window.count += 1
        window.total_ms += latency_ms
        window.max_ms = max(window.max_ms, latency_ms)

    def average_ms(self, now_ms: int) -> float | None:
        """None if nothing was recorded."""
        self._roll(now_ms)
        count = self._previous.count + self._now.count
        return (self._previous.total_ms + self._now.total_ms) / count if count else None

    def max_ms(self, now_ms: int) -> int | None:
        self._roll(now_ms)
        if not self._previous.count + self._now.count:
            return None
        return max(self._previous.max_ms, self._now.max_ms)

    def _roll(self, now_ms: int) -> None:
        passed = (now_ms - self._began_ms) // WINDOW_MS
        if passed <= 0:
            return
        self._previous = self._now if passed == 1 else _Window()
        self._now = _Window()
        self._began_ms += passed * WINDOW_MS
