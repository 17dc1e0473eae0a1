"""The topic-level configuration names of Kafka 4.3, as a table.

Only data: names, types, defaults, checks, and the broker setting each falls back to when the topic is silent. A name
that is not here is refused by CreateTopics and AlterConfigs (INVALID_CONFIG).
"""

from __future__ import annotations

from .definitions import (
    LONG_MAX,
    AtLeast,
    Between,
    BetweenOr,
    Check,
    ConfigType,
    EachOf,
    OneOf,
    Setting,
    Synonym,
    ThrottledReplicas,
    Update,
)

HOUR_MS = 3_600_000
MINUTE_MS = 60_000

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
RECOVERY_STRATEGIES = ("None", "Balanced", "Aggressive")


def _topic(
    name: str,
    kind: ConfigType,
    default: str | None,
    doc: str,
    check: Check | None = None,
    synonyms: tuple[str | Synonym, ...] = (),
    *,
    internal: bool = False,
) -> Setting:
    return Setting(
        name,
        kind,
        default,
        doc,
        check,
        Update.CLUSTER_WIDE,
        tuple(s if isinstance(s, Synonym) else Synonym(s) for s in synonyms),
        internal,
    )


_B, _D, _I, _L = ConfigType.BOOLEAN, ConfigType.DOUBLE, ConfigType.INT, ConfigType.LONG
_S, _LIST = ConfigType.STRING, ConfigType.LIST

TOPIC_SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        _topic(
            "cleanup.policy",
            _LIST,
            "delete",
            "What becomes of old segments: 'delete' drops them by age and size, 'compact' keeps each key's newest.",
            EachOf("cleanup.policy", ("compact", "delete")),
            ("log.cleanup.policy",),
        ),
        _topic(
            "compression.gzip.level",
            _I,
            "-1",
            "Compression level when compression.type is gzip; -1 is the codec's own default.",
            BetweenOr(1, 9, -1),
            ("compression.gzip.level",),
        ),
        _topic(
            "compression.lz4.level",
            _I,
            "9",
            "Compression level when compression.type is lz4.",
            Between(1, 17),
            ("compression.lz4.level",),
        ),
        _topic(
            "compression.type",
            _S,
            "producer",
            "Codec in which batches are stored; 'producer' keeps what the producer chose.",
            OneOf(COMPRESSION_TYPES),
            ("compression.type",),
        ),
        _topic(
            "compression.zstd.level",
            _I,
            "3",
            "Compression level when compression.type is zstd.",
            Between(-131072, 22),
            ("compression.zstd.level",),
        ),
        _topic(
            "delete.retention.ms",
            _L,
            "86400000",
            "How long a compacted topic keeps delete markers.",
            AtLeast(0),
            ("log.cleaner.delete.retention.ms",),
        ),
        _topic(
            "file.delete.delay.ms",
            _L,
            "60000",
            "How long a dropped segment's files stay on disk before they are removed.",
            AtLeast(0),
            ("log.segment.delete.delay.ms",),
        ),
        _topic(
            "flush.messages",
            _L,
            str(LONG_MAX),
            "Force the log to disk after this many records; 1 means before every acknowledgement.",
            AtLeast(1),
            ("log.flush.interval.messages",),
        ),
        _topic(
            "flush.ms",
            _L,
            str(LONG_MAX),
            "Force the log to disk when its oldest unforced record is this old.",
            AtLeast(0),
            ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        ),
        _topic(
            "follower.replication.throttled.replicas",
            _LIST,
            "",
            "Replicas whose incoming replication is throttled: partition:broker pairs, or * for all.",
            ThrottledReplicas("follower.replication.throttled.replicas"),
        ),
        _topic(
            "index.interval.bytes",
            _I,
            "4096",
            "Bytes of log between two entries of the offset index.",
            AtLeast(0),
            ("log.index.interval.bytes",),
        ),
        _topic(
            "internal.segment.bytes",
            _I,
            None,
            "Segment size below the public minimum, for tests of segment rolling.",
            internal=True,
        ),
        _topic(
            "leader.replication.throttled.replicas",
            _LIST,
            "",
            "Replicas whose outgoing replication is throttled: partition:broker pairs, or * for all.",
            ThrottledReplicas("leader.replication.throttled.replicas"),
        ),
        _topic(
            "local.retention.bytes",
            _L,
            "-2",
            "Local part of retention.bytes under tiered storage; -2 follows retention.bytes.",
            AtLeast(-2),
            ("log.local.retention.bytes",),
        ),
        _topic(
            "local.retention.ms",
            _L,
            "-2",
            "Local part of retention.ms under tiered storage; -2 follows retention.ms.",
            AtLeast(-2),
            ("log.local.retention.ms",),
        ),
        _topic(
            "max.compaction.lag.ms",
            _L,
            str(LONG_MAX),
            "Longest time a record may escape compaction.",
            AtLeast(1),
            ("log.cleaner.max.compaction.lag.ms",),
        ),
        _topic(
            "max.message.bytes",
            _I,
            "1048588",
            "Largest record batch accepted, after compression.",
            AtLeast(0),
            ("message.max.bytes",),
        ),
        _topic(
            "message.timestamp.after.max.ms",
            _L,
            "3600000",
            "How far a CreateTime timestamp may lie ahead of the broker's clock.",
            AtLeast(0),
            ("log.message.timestamp.after.max.ms",),
        ),
        _topic(
            "message.timestamp.before.max.ms",
            _L,
            str(LONG_MAX),
            "How far a CreateTime timestamp may lie behind the broker's clock.",
            AtLeast(0),
            ("log.message.timestamp.before.max.ms",),
        ),
        _topic(
            "message.timestamp.type",
            _S,
            "CreateTime",
            "Whose timestamp a record bears: the producer's (CreateTime) or the broker's (LogAppendTime).",
            OneOf(("CreateTime", "LogAppendTime")),
            ("log.message.timestamp.type",),
        ),
        _topic(
            "min.cleanable.dirty.ratio",
            _D,
            "0.5",
            "Share of a log that must be uncompacted before it is compacted.",
            Between(0, 1),
            ("log.cleaner.min.cleanable.ratio",),
        ),
        _topic(
            "min.compaction.lag.ms",
            _L,
            "0",
            "Shortest time a record stays uncompacted.",
            AtLeast(0),
            ("log.cleaner.min.compaction.lag.ms",),
        ),
        _topic(
            "min.insync.replicas",
            _I,
            "1",
            "In-sync replicas needed before the high watermark moves and acks=all succeeds.",
            AtLeast(1),
            ("min.insync.replicas",),
        ),
        _topic(
            "preallocate",
            _B,
            "false",
            "Allocate a segment's whole file when it is created.",
            None,
            ("log.preallocate",),
        ),
        _topic(
            "remote.log.copy.disable", _B, "false", "Under tiered storage: stop copying segments to the remote tier."
        ),
        _topic(
            "remote.log.delete.on.disable",
            _B,
            "false",
            "Under tiered storage: delete the remote part when the tier is turned off.",
        ),
        _topic(
            "remote.storage.enable", _B, "false", "Tiered storage for this topic; tanist has none and refuses 'true'."
        ),
        _topic(
            "retention.bytes",
            _L,
            "-1",
            "Size of a partition's log beyond which old segments are dropped; -1 is no limit.",
            None,
            ("log.retention.bytes",),
        ),
        _topic(
            "retention.ms",
            _L,
            "604800000",
            "Age beyond which segments are dropped; -1 is no limit.",
            AtLeast(-1),
            (
                "log.retention.ms",
                Synonym("log.retention.minutes", MINUTE_MS),
                Synonym("log.retention.hours", HOUR_MS),
            ),
        ),
        _topic(
            "segment.bytes",
            _I,
            "1073741824",
            "Size at which a segment is closed and the next begun.",
            AtLeast(1048576),
            ("log.segment.bytes",),
        ),
        _topic(
            "segment.index.bytes",
            _I,
            "10485760",
            "Size of a segment's index files at which the segment is closed.",
            AtLeast(4),
            ("log.index.size.max.bytes",),
        ),
        _topic(
            "segment.jitter.ms",
            _L,
            "0",
            "Random part taken off segment.ms so that partitions do not all roll at once.",
            AtLeast(0),
            ("log.roll.jitter.ms", Synonym("log.roll.jitter.hours", HOUR_MS)),
        ),
        _topic(
            "segment.ms",
            _L,
            "604800000",
            "Age at which a segment is closed even if it is not full.",
            AtLeast(1),
            ("log.roll.ms", Synonym("log.roll.hours", HOUR_MS)),
        ),
        _topic(
            "tanist.salvage.enable",
            _B,
            "true",
            "Save what replicas truncate, in a quarantine, before it is dropped.",
            None,
            ("tanist.salvage.enable",),
        ),
        _topic(
            "unclean.leader.election.enable",
            _B,
            "false",
            "Let a replica outside ISR and ELR lead when nobody else can: availability at the price of records.",
            None,
            ("unclean.leader.election.enable",),
        ),
        _topic(
            "unclean.recovery.strategy",
            _S,
            "Balanced",
            "KIP-966: whom to elect when ISR and ELR are empty. Needs unclean.recovery.manager.enabled=true.",
            OneOf(RECOVERY_STRATEGIES),
            ("unclean.recovery.strategy",),
        ),
    )
}
"""Kafka's names, KIP-966's `unclean.recovery.strategy`, and our own, which begin with `tanist.`."""
