"""Broker properties of logs, coordinators, salvage and metrics.

Only data, in the notation of `notation`.
"""

from __future__ import annotations

from .notation import read

_LOG = read(
    """
add.partitions.to.txn.retry.backoff.max.ms int 100 read-only high >=0
    How long the first batch of a transaction waits for the one before to end.
add.partitions.to.txn.retry.backoff.ms int 20 read-only high >=1
    How often it looks.
compression.gzip.level int -1 cluster-wide medium 1..9|-1 no-effect
    Default of the topic config of this name.
compression.lz4.level int 9 cluster-wide medium 1..17 no-effect
    Default of the topic config of this name.
compression.type string producer cluster-wide high one:uncompressed,zstd,lz4,snappy,gzip,producer
    Default of the topic config of this name.
compression.zstd.level int 3 cluster-wide medium -131072..22 no-effect
    Default of the topic config of this name.
log.cleaner.backoff.ms long 15000 cluster-wide medium >=0
    Pause of the cleaner when nothing is to be cleaned.
log.cleaner.dedupe.buffer.size long 134217728 cluster-wide medium
    Memory of the cleaner's key map.
log.cleaner.delete.retention.ms long 86400000 cluster-wide medium >=0
    Default of topic config delete.retention.ms.
log.cleaner.enable boolean true read-only medium
    Whether compacted topics are compacted.
log.cleaner.io.max.bytes.per.second double 1.7976931348623157E308 cluster-wide medium >=1
    Bytes that the cleaner may read and write in a second.
log.cleaner.max.compaction.lag.ms long 9223372036854775807 cluster-wide medium >=1
    Default of topic config max.compaction.lag.ms.
log.cleaner.min.cleanable.ratio double 0.5 cluster-wide medium 0..1
    Default of topic config min.cleanable.dirty.ratio.
log.cleaner.min.compaction.lag.ms long 0 cluster-wide medium >=0
    Default of topic config min.compaction.lag.ms.
log.cleanup.policy list delete cluster-wide medium each:compact,delete
    Default of topic config cleanup.policy.
log.dir list /tmp/kafka-logs read-only high list
    Where the logs are, when log.dirs is not set.
log.dir.failure.timeout.ms long 30000 read-only low >=1 no-effect
    How long a broker may fail to report a failed disk.
log.dirs list - read-only high list
    Where the logs are; several folders are filled evenly.
log.flush.interval.messages long 9223372036854775807 cluster-wide high >=1
    Default of topic config flush.messages.
log.flush.interval.ms long - cluster-wide high
    Default of topic config flush.ms.
log.flush.offset.checkpoint.interval.ms int 60000 read-only high >=0 no-effect
    How often recovery points are saved.
log.flush.scheduler.interval.ms long 9223372036854775807 read-only high
    How often logs are looked at for a due flush.
log.flush.start.offset.checkpoint.interval.ms int 60000 read-only high >=0 no-effect
    How often log start offsets are saved.
log.index.interval.bytes int 4096 cluster-wide medium >=0
    Default of topic config index.interval.bytes.
log.index.size.max.bytes int 10485760 cluster-wide medium >=4
    Default of topic config segment.index.bytes.
log.local.retention.bytes long -2 cluster-wide medium >=-2 no-effect
    Default of topic config local.retention.bytes.
log.local.retention.ms long -2 cluster-wide medium >=-2 no-effect
    Default of topic config local.retention.ms.
log.message.timestamp.after.max.ms long 3600000 cluster-wide medium >=0
    Default of topic config message.timestamp.after.max.ms.
log.message.timestamp.before.max.ms long 9223372036854775807 cluster-wide medium >=0
    Default of topic config message.timestamp.before.max.ms.
log.message.timestamp.type string CreateTime cluster-wide medium one:CreateTime,LogAppendTime
    Default of topic config message.timestamp.type.
log.preallocate boolean false cluster-wide medium no-effect
    Default of topic config preallocate.
log.retention.bytes long -1 cluster-wide high
    Default of topic config retention.bytes.
log.retention.check.interval.ms long 300000 read-only medium >=1
    How often old segments are looked for.
log.retention.hours int 168 read-only high
    Default of topic config retention.ms, in hours.
log.retention.minutes int - read-only high
    Default of topic config retention.ms, in minutes.
log.retention.ms long - cluster-wide high
    Default of topic config retention.ms.
log.roll.hours int 168 read-only high >=1
    Default of topic config segment.ms, in hours.
log.roll.jitter.hours int 0 read-only high >=0
    Default of topic config segment.jitter.ms, in hours.
log.roll.jitter.ms long - cluster-wide high
    Default of topic config segment.jitter.ms.
log.roll.ms long - cluster-wide high
    Default of topic config segment.ms.
log.segment.bytes int 1073741824 cluster-wide high >=1048576
    Default of topic config segment.bytes.
log.segment.delete.delay.ms long 60000 cluster-wide high >=0 no-effect
    Default of topic config file.delete.delay.ms.
message.max.bytes int 1048588 cluster-wide high >=0
    Default of topic config max.message.bytes.
""",
    on_brokers=True,
)

_COORDINATORS = read(
    """
group.consumer.assignors list uniform,range read-only medium list
    Server-side assignors of consumer groups; the first is the default.
group.consumer.heartbeat.interval.ms int 5000 read-only medium >=1
    How often consumers are to be heard of.
group.consumer.max.heartbeat.interval.ms int 15000 read-only medium >=1
    Longest heartbeat interval that a group may have.
group.consumer.max.session.timeout.ms int 60000 read-only medium >=1
    Longest session timeout that a group may have.
group.consumer.max.size int 2147483647 read-only medium >=1
    Members of one consumer group.
group.consumer.migration.policy string bidirectional read-only medium any-case:BIDIRECTIONAL,DISABLED,DOWNGRADE,UPGRADE
    Whether groups with members go over to the consumer protocol, and back.
group.consumer.min.heartbeat.interval.ms int 5000 read-only medium >=1
    Shortest heartbeat interval that a group may have.
group.consumer.min.session.timeout.ms int 45000 read-only medium >=1
    Shortest session timeout that a group may have.
group.consumer.session.timeout.ms int 45000 read-only medium >=1
    When a silent consumer is given up.
group.initial.rebalance.delay.ms int 3000 read-only medium
    How long an empty group waits for more members.
group.max.session.timeout.ms int 1800000 read-only medium
    Longest session timeout a member may ask for.
group.max.size int 2147483647 read-only medium >=1
    Members of one group.
group.min.session.timeout.ms int 6000 read-only medium
    Shortest session timeout a member may ask for.
offset.metadata.max.bytes int 4096 read-only high
    Size of the metadata of a committed offset.
offsets.commit.timeout.ms int 5000 read-only high >=1
    How long an offset commit waits for its replicas.
offsets.retention.check.interval.ms long 600000 read-only high >=1
    How often old offsets are looked for.
offsets.retention.minutes int 10080 read-only high >=1
    How long offsets of an empty group are kept.
num.recovery.threads.per.data.dir int 2 cluster-wide high >=1
    How many logs of a directory a start opens at a time; the value in the properties file counts.
offsets.topic.num.partitions int 50 read-only high >=1
    Partitions of __consumer_offsets.
offsets.topic.replication.factor short 3 read-only high >=1
    Replicas of __consumer_offsets.
offsets.topic.segment.bytes int 104857600 read-only high >=1
    Segment size of __consumer_offsets.
producer.id.expiration.ms int 86400000 cluster-wide low >=1
    How long a silent producer's state is kept.
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 read-only low >=1
    How often transactions are looked for that take longer than their timeout.
transaction.max.timeout.ms int 900000 read-only high >=1
    Longest transaction timeout a producer may ask for.
transaction.partition.verification.enable boolean true cluster-wide low
    Whether the first batch of a transaction waits for the coordinator's word that the partition is in it.
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 read-only low >=1
    How often transactional ids are looked for that nobody uses.
transaction.two.phase.commit.enable boolean false read-only low
    Whether a producer may ask for two-phase commit, whose transactions have no timeout (KIP-939).
transaction.state.log.min.isr int 2 read-only high >=1
    min.insync.replicas of __transaction_state.
transaction.state.log.num.partitions int 50 read-only high >=1
    Partitions of __transaction_state.
transaction.state.log.replication.factor short 3 read-only high >=1
    Replicas of __transaction_state.
transaction.state.log.segment.bytes int 104857600 read-only high >=1
    Segment size of __transaction_state.
transactional.id.expiration.ms int 604800000 read-only high >=1
    How long an unused transactional id is kept.
""",
    on_brokers=True,
)

_METRICS = read(
    """
tanist.metrics.listener string - read-only medium
    Where the node serves its metrics over HTTP, as host:port; nowhere if not set or empty.
""",
    on_brokers=True,
)

_SALVAGE = read(
    """
tanist.salvage.enable boolean true cluster-wide medium
    Default of topic config tanist.salvage.enable.
tanist.salvage.on.failure string truncate cluster-wide medium one:truncate,wait
    If records cannot be saved: 'truncate' drops them and says so, 'wait' keeps the replica from following.
tanist.salvage.retention.bytes long 10737418240 cluster-wide medium >=-1
    Size of the salvage in each log directory beyond which the oldest is removed; -1 is no limit.
tanist.salvage.retention.ms long 2592000000 cluster-wide medium >=-1
    Age beyond which salvage is removed; -1 is no limit.
""",
    on_brokers=True,
)

_INTERNAL = read(
    """
unstable.api.versions.enable boolean false read-only high internal
    Offer versions of requests that are not final yet: InitProducerId 6 (KIP-939).
unclean.leader.election.interval.ms long 300000 read-only medium >=1 internal
    Time between two sweeps for leaderless partitions that may elect uncleanly.
""",
    on_brokers=True,
)

LOG_SETTINGS = {**_LOG, **_COORDINATORS, **_METRICS, **_SALVAGE, **_INTERNAL}
