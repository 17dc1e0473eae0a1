"""The topic configuration that a log obeys.

Owns the names, Kafka's defaults and the parsing of these topic configs. The controller validates what an operator sets;
here an unreadable value is an error, and an unknown name is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from tanist.wire.compression import Compression

LONG_MAX = 2**63 - 1

DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Topic configs under Kafka's names, dots as underscores.

    Units are in the names; -1 is "no limit" where it may be.
    """

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024**2
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    max_message_bytes: int = 1024**2 + 12
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 3_600_000
    cleanup_policy: str = "delete"
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    file_delete_delay_ms: int = 60_000
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5
    compression_type: str = "producer"
    unclean_leader_election_enable: bool = False
    min_insync_replicas: int = 1
    preallocate: bool = False
    producer_id_expiration_ms: int = DAY_MS
    """Not a topic config in Kafka but the broker's `producer.id.expiration.ms`; it rules the log's producer state."""

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policies

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policies

    @property
    def segment_ms_max(self) -> int:
        """The greatest age of an active segment. An active segment cannot be compacted, however late it is."""
        if self.compacts and self.max_compaction_lag_ms > 0:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    @property
    def cleanup_policies(self) -> frozenset[str]:
        return frozenset(policy.strip() for policy in self.cleanup_policy.split(",") if policy.strip())

    @property
    def compression(self) -> int | None:
        """The codec that batches are stored in; None when that is the producer's choice."""
        if self.compression_type == "producer":
            return None
        name = "none" if self.compression_type == "uncompressed" else self.compression_type
        return int(Compression[name.upper()])

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @classmethod
    def from_topic_configs(cls, configs: Mapping[str, str]) -> LogConfig:
        """From resolved topic configs, `{"segment.bytes": "1048576", ...}`; names that no log obeys are passed over."""
        chosen: dict[str, int | float | bool | str] = {}
        for name, parse in _PARSERS.items():
            text = configs.get(name)
            if text is None:
                continue
            try:
                chosen[name.replace(".", "_")] = parse(text)
            except ValueError as error:
                raise ValueError(f"config {name}={text!r} can't be read: {error}") from None
        config = cls(**chosen)  # type: ignore[arg-type]
        try:
            _ = config.compression
        except KeyError:
            raise ValueError(f"config compression.type={config.compression_type!r} is no codec") from None
        return config


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("expected true or false")
    return lowered == "true"


_BY_TYPE: dict[str, Callable[[str], int | float | bool | str]] = {
    "int": int,
    "float": float,
    "bool": _boolean,
    "str": str,
}
_PARSERS = {field.name.replace("_", "."): _BY_TYPE[str(field.type)] for field in fields(LogConfig)}
