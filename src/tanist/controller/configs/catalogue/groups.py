"""The properties of groups (KIP-848, KIP-932, KIP-1071) and of client metrics subscriptions (KIP-714).

Only data, in the notation of `notation`. A group falls back to its broker's property.
"""

from __future__ import annotations

from .notation import read

GROUP_SETTINGS = {
    **read(
        """
consumer.assignment.interval.ms int 1000 medium >=0 no-effect from:group.consumer.assignment.interval.ms
    Least time between two assignments of a group.
consumer.assignor.offload.enable boolean true medium internal no-effect from:group.consumer.assignor.offload.enable
    Assign in a thread of its own.
consumer.heartbeat.interval.ms int 5000 medium >=1 from:group.consumer.heartbeat.interval.ms
    How often the group's members are to send a heartbeat.
consumer.session.timeout.ms int 45000 medium >=1 from:group.consumer.session.timeout.ms
    Silence after which a member is removed from the group.
"""
    ),
    **read(
        """
errors.deadletterqueue.copy.record.enable boolean false medium
    Whether a dead letter of the share group has the record's key and value, beside the headers about it.
errors.deadletterqueue.topic.name string "" medium not-internal
    Topic for records of the share group that were rejected or delivered too often; empty: they are archived without.
share.assignment.interval.ms int 1000 medium >=0 no-effect from:group.share.assignment.interval.ms
    Least time between two assignments of a share group.
share.assignor.offload.enable boolean true medium no-effect internal from:group.share.assignor.offload.enable
    Whether assignments of a share group are computed apart.
share.auto.offset.reset string latest medium offset-reset
    Where a share group begins: latest, earliest, or by_duration: and how long ago.
share.delivery.count.limit int 5 medium >=2 from:group.share.delivery.count.limit
    How often a record is delivered at most.
share.heartbeat.interval.ms int 5000 medium >=1 from:group.share.heartbeat.interval.ms
    How often the share group's members are to send a heartbeat.
share.isolation.level string read_uncommitted medium one:read_committed,read_uncommitted
    Whether records of aborted transactions are delivered.
share.partition.max.record.locks int 2000 medium >=100 from:group.share.partition.max.record.locks
    Records of a partition that are in flight at most.
share.record.lock.duration.ms int 30000 medium >=1000 from:group.share.record.lock.duration.ms
    How long a member has a record before others may have it.
share.renew.acknowledge.enable boolean true medium
    Whether a member may renew its lock of a record.
share.session.timeout.ms int 45000 medium >=1 from:group.share.session.timeout.ms
    Silence after which a member is removed from the share group.
"""
    ),
    **read(
        """
streams.acceptable.recovery.lag long 10000 medium >=0 internal from:group.streams.acceptable.recovery.lag
    Changelog records that a task may lack where it goes to.
streams.assignment.interval.ms int 1000 medium >=0 from:group.streams.assignment.interval.ms
    Least time between two assignments of the group.
streams.heartbeat.interval.ms int 5000 medium >=1 from:group.streams.heartbeat.interval.ms
    How often the group's members are to send a heartbeat.
streams.initial.rebalance.delay.ms int 3000 medium >=0 from:group.streams.initial.rebalance.delay.ms
    How long the first assignment waits for more members.
streams.num.standby.replicas int 0 medium >=0 from:group.streams.num.standby.replicas
    Standbys of each task.
streams.rack.aware.assignment.tags list "" low list from:group.streams.rack.aware.assignment.tags
    Keys of tags that the members of the group are to have.
streams.session.timeout.ms int 45000 medium >=1 from:group.streams.session.timeout.ms
    Silence after which a member is removed from the group.
streams.task.offset.interval.ms int 60000 medium >=1 internal from:group.streams.task.offset.interval.ms
    How often members are to tell of their tasks' offsets.
"""
    ),
    **read(
        """
streams.assignor.name string sticky medium from:group.streams.assignors
streams.assignor.offload.enable boolean true medium internal from:group.streams.assignor.offload.enable
streams.num.warmup.replicas int 2 medium >=0 internal from:group.streams.num.warmup.replicas
""",
        because="Streams groups have no use for it",
    ),
}

CLIENT_METRICS_SETTINGS = read(
    """
interval.ms int 300000 medium
    How often a client is to push its metrics.
match list "" medium list
    Which clients are meant, as attribute=regular expression,...; empty: all.
metrics list "" medium list
    Prefixes of the metrics to push; * is all.
"""
)

SHARE_SETTINGS = read(
    """
errors.deadletterqueue.auto.create.topics.enable boolean false cluster-wide medium
    Whether a dead letter topic of share groups is made when there is a letter and it does not exist.
errors.deadletterqueue.topic.name.prefix string dlq. cluster-wide medium
    How the names of dead letter topics begin.
group.share.delivery.count.limit int 5 read-only medium 2..10
    How often a record is delivered to a share group at most.
group.share.heartbeat.interval.ms int 5000 read-only medium >=1
    How often members of share groups are to be heard of.
group.share.initialize.retry.interval.ms int 30000 read-only low >=1 internal
    When the state of share partitions is asked for again.
group.share.max.delivery.count.limit int 10 read-only medium 5..25
    Highest delivery limit that a group may have.
group.share.max.heartbeat.interval.ms int 15000 read-only medium >=1
    Longest heartbeat interval that a share group may have.
group.share.max.partition.max.record.locks int 4000 read-only medium 2000..10000
    Most record locks that a group may have.
group.share.max.record.lock.duration.ms int 60000 read-only medium 30000..3600000
    Longest record lock that a group may have.
group.share.max.session.timeout.ms int 60000 read-only medium >=1
    Longest session timeout that a share group may have.
group.share.max.share.sessions int 2000 read-only medium >=1
    Share sessions of one broker.
group.share.max.size int 200 read-only medium 1..1000
    Members of one share group.
group.share.min.delivery.count.limit int 2 read-only medium 2..5
    Lowest delivery limit that a group may have.
group.share.min.heartbeat.interval.ms int 5000 read-only medium >=1
    Shortest heartbeat interval that a share group may have.
group.share.min.partition.max.record.locks int 100 read-only medium 100..2000
    Fewest record locks that a group may have.
group.share.min.record.lock.duration.ms int 15000 read-only medium 1000..30000
    Shortest record lock that a group may have.
group.share.min.session.timeout.ms int 45000 read-only medium >=1
    Shortest session timeout that a share group may have.
group.share.partition.max.record.locks int 2000 read-only medium 100..10000
    Records of a share partition that are in flight at most.
group.share.record.lock.duration.ms int 30000 read-only medium 1000..3600000
    How long a member has a record before others may have it.
group.share.session.timeout.ms int 45000 read-only medium >=1
    When a silent member of a share group is given up.
share.coordinator.snapshot.update.records.per.snapshot int 500 read-only medium 0..500
    Updates of a share partition's state before the next snapshot.
share.coordinator.state.topic.min.isr short 2 read-only high >=1
    min.insync.replicas of __share_group_state.
share.coordinator.state.topic.num.partitions int 50 read-only high >=1
    Partitions of __share_group_state.
share.coordinator.state.topic.prune.interval.ms int 300000 read-only low >=1 internal
    How often old records of __share_group_state are looked for.
share.coordinator.state.topic.replication.factor short 3 read-only high >=1
    Replicas of __share_group_state.
share.coordinator.state.topic.segment.bytes int 104857600 read-only high >=1
    Segment size of __share_group_state.
share.coordinator.write.timeout.ms int 5000 read-only high >=1
    How long a write of a share partition's state may take to replicate.
""",
    on_brokers=True,
)
"""Of brokers, for share groups."""

STREAMS_SETTINGS = read(
    """
group.streams.acceptable.recovery.lag long 10000 read-only medium >=0 internal
    Changelog records that a task may lack where it goes to.
group.streams.assignment.interval.ms int 1000 cluster-wide medium >=0
    Least time between two assignments of a Streams group.
group.streams.heartbeat.interval.ms int 5000 read-only medium >=1
    How often members of Streams groups are to be heard of.
group.streams.initial.rebalance.delay.ms int 3000 read-only medium >=0
    How long the first assignment waits for more members.
group.streams.max.assignment.interval.ms int 15000 read-only medium >=0
    Longest assignment interval that a Streams group may have.
group.streams.max.heartbeat.interval.ms int 15000 read-only medium >=1
    Longest heartbeat interval that a Streams group may have.
group.streams.max.session.timeout.ms int 60000 read-only medium >=1
    Longest session timeout that a Streams group may have.
group.streams.max.size int 2147483647 read-only medium >=1
    Members of one Streams group.
group.streams.max.standby.replicas int 2 read-only medium >=0
    Most standbys of a task that a Streams group may have.
group.streams.min.assignment.interval.ms int 0 read-only medium >=0
    Shortest assignment interval that a Streams group may have.
group.streams.min.heartbeat.interval.ms int 5000 read-only medium >=1
    Shortest heartbeat interval that a Streams group may have.
group.streams.min.session.timeout.ms int 45000 read-only medium >=1
    Shortest session timeout that a Streams group may have.
group.streams.min.task.offset.interval.ms int 15000 read-only medium >=1 internal
    Shortest task offset interval that a Streams group may have.
group.streams.num.standby.replicas int 0 read-only medium >=0
    Standbys of each task.
group.streams.rack.aware.assignment.tags list "" read-only low list
    Keys of tags that members of Streams groups are to have; those that lack one hear so.
group.streams.session.timeout.ms int 45000 read-only medium >=1
    When a silent member of a Streams group is given up.
group.streams.task.offset.interval.ms int 60000 read-only medium >=1 internal
    How often members are to tell of their tasks' offsets.
""",
    on_brokers=True,
)
"""Of brokers, for Streams groups."""
