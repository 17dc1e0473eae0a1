"""The properties of topics: Kafka's, KIP-966's `unclean.recovery.strategy`, and our own, which begin with `tanist.`.

Only data, in the notation of `notation`.
"""

from __future__ import annotations

from .notation import read

TOPIC_SETTINGS = read(
    """
cleanup.policy list delete medium each:compact,delete from:log.cleanup.policy
    What becomes of old segments: 'delete' drops them by age and size, 'compact' keeps each key's newest.
compression.gzip.level int -1 medium 1..9|-1 no-effect from:compression.gzip.level
    Compression level when compression.type is gzip; -1 is the codec's own default.
compression.lz4.level int 9 medium 1..17 no-effect from:compression.lz4.level
    Compression level when compression.type is lz4.
compression.type string producer medium one:uncompressed,zstd,lz4,snappy,gzip,producer from:compression.type
    Codec in which batches are stored; 'producer' keeps what the producer chose.
compression.zstd.level int 3 medium -131072..22 no-effect from:compression.zstd.level
    Compression level when compression.type is zstd.
delete.retention.ms long 86400000 medium >=0 from:log.cleaner.delete.retention.ms
    How long a compacted topic keeps delete markers.
errors.deadletterqueue.group.enable boolean false medium
    Let share groups write here what nobody could process.
file.delete.delay.ms long 60000 medium >=0 no-effect from:log.segment.delete.delay.ms
    How long a dropped segment's files stay on disk before they are removed.
flush.messages long 9223372036854775807 medium >=1 from:log.flush.interval.messages
    Force the log to disk after this many records; 1 means before every acknowledgement.
flush.ms long 9223372036854775807 medium >=0 from:log.flush.interval.ms,log.flush.scheduler.interval.ms
    Force the log to disk when its oldest unforced record is this old.
follower.replication.throttled.replicas list "" medium throttled-replicas
    Replicas whose incoming replication is throttled: partition:broker pairs, or * for all.
index.interval.bytes int 4096 medium >=0 from:log.index.interval.bytes
    Bytes of log between two entries of the offset index.
internal.segment.bytes int - medium internal no-effect
    Segment size below the public minimum, for tests of segment rolling.
leader.replication.throttled.replicas list "" medium throttled-replicas
    Replicas whose outgoing replication is throttled: partition:broker pairs, or * for all.
local.retention.bytes long -2 medium >=-2 no-effect from:log.local.retention.bytes
    Local part of retention.bytes under tiered storage; -2 follows retention.bytes.
local.retention.ms long -2 medium >=-2 no-effect from:log.local.retention.ms
    Local part of retention.ms under tiered storage; -2 follows retention.ms.
max.compaction.lag.ms long 9223372036854775807 medium >=1 from:log.cleaner.max.compaction.lag.ms
    Longest time a record may escape compaction.
max.decompressed.message.bytes int 2147483639 medium 1..2147483639 no-effect from:max.decompressed.message.bytes
    Size of a record beyond which it is refused, once it is decompressed.
max.message.bytes int 1048588 medium >=0 from:message.max.bytes
    Largest record batch accepted, after compression.
message.timestamp.after.max.ms long 3600000 medium >=0 from:log.message.timestamp.after.max.ms
    How far a CreateTime timestamp may lie ahead of the broker's clock.
message.timestamp.before.max.ms long 9223372036854775807 medium >=0 from:log.message.timestamp.before.max.ms
    How far a CreateTime timestamp may lie behind the broker's clock.
message.timestamp.type string CreateTime medium one:CreateTime,LogAppendTime from:log.message.timestamp.type
    Whose timestamp a record bears: the producer's (CreateTime) or the broker's (LogAppendTime).
min.cleanable.dirty.ratio double 0.5 medium 0..1 from:log.cleaner.min.cleanable.ratio
    Share of a log that must be uncompacted before it is compacted.
min.compaction.lag.ms long 0 medium >=0 from:log.cleaner.min.compaction.lag.ms
    Shortest time a record stays uncompacted.
min.insync.replicas int 1 medium >=1 from:min.insync.replicas
    In-sync replicas needed before the high watermark moves and acks=all succeeds.
preallocate boolean false medium no-effect from:log.preallocate
    Allocate a segment's whole file when it is created.
remote.copy.lag.bytes long -1 medium >=-1 no-effect from:log.remote.copy.lag.bytes
    Under tiered storage: copy a segment once so much has come after it; there is no tiered storage.
remote.copy.lag.ms long 0 medium >=-1 no-effect from:log.remote.copy.lag.ms
    Under tiered storage: copy a segment once its last record is so old; there is no tiered storage.
remote.log.copy.disable boolean false medium no-effect
    Under tiered storage: stop copying segments to the remote tier.
remote.log.delete.on.disable boolean false medium no-effect
    Under tiered storage: delete the remote part when the tier is turned off.
remote.storage.enable boolean false medium no-effect
    Tiered storage for this topic; tanist has none and refuses 'true'.
retention.bytes long -1 medium from:log.retention.bytes
    Size of a partition's log beyond which old segments are dropped; -1 is no limit.
retention.ms long 604800000 medium >=-1 from:log.retention.ms,log.retention.minutes*60000,log.retention.hours*3600000
    Age beyond which segments are dropped; -1 is no limit.
segment.bytes int 1073741824 medium >=1048576 from:log.segment.bytes
    Size at which a segment is closed and the next begun.
segment.index.bytes int 10485760 medium >=4 from:log.index.size.max.bytes
    Size of a segment's index files at which the segment is closed.
segment.jitter.ms long 0 medium >=0 from:log.roll.jitter.ms,log.roll.jitter.hours*3600000
    Random part taken off segment.ms so that partitions do not all roll at once.
segment.ms long 604800000 medium >=1 from:log.roll.ms,log.roll.hours*3600000
    Age at which a segment is closed even if it is not full.
tanist.salvage.enable boolean true medium from:tanist.salvage.enable
    Save what replicas truncate, in a quarantine, before it is dropped.
unclean.leader.election.enable boolean false medium from:unclean.leader.election.enable
    Let a replica outside ISR and ELR lead when nobody else can: availability at the price of records.
unclean.recovery.strategy string Balanced medium one:None,Balanced,Aggressive from:unclean.recovery.strategy
    KIP-966: whom to elect when ISR and ELR are empty. Needs unclean.recovery.manager.enabled=true.
"""
)
