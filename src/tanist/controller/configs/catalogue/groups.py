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
errors.deadletterqueue.topic.name string "" medium
share.assignment.interval.ms int 1000 medium >=0 from:group.share.assignment.interval.ms
share.assignor.offload.enable boolean true medium internal from:group.share.assignor.offload.enable
share.auto.offset.reset string latest medium offset-reset
share.delivery.count.limit int 5 medium >=2 from:group.share.delivery.count.limit
share.heartbeat.interval.ms int 5000 medium >=1 from:group.share.heartbeat.interval.ms
share.isolation.level string read_uncommitted medium one:read_committed,read_uncommitted
share.partition.max.record.locks int 2000 medium >=100 from:group.share.partition.max.record.locks
share.record.lock.duration.ms int 30000 medium >=1000 from:group.share.record.lock.duration.ms
share.renew.acknowledge.enable boolean true medium
share.session.timeout.ms int 45000 medium >=1 from:group.share.session.timeout.ms
""",
        because="there are no share groups",
    ),
    **read(
        """
streams.acceptable.recovery.lag long 10000 medium >=0 internal from:group.streams.acceptable.recovery.lag
streams.assignment.interval.ms int 1000 medium >=0 from:group.streams.assignment.interval.ms
streams.assignor.name string sticky medium from:group.streams.assignors
streams.assignor.offload.enable boolean true medium internal from:group.streams.assignor.offload.enable
streams.heartbeat.interval.ms int 5000 medium >=1 from:group.streams.heartbeat.interval.ms
streams.initial.rebalance.delay.ms int 3000 medium >=0 from:group.streams.initial.rebalance.delay.ms
streams.num.standby.replicas int 0 medium >=0 from:group.streams.num.standby.replicas
streams.num.warmup.replicas int 2 medium >=0 internal from:group.streams.num.warmup.replicas
streams.rack.aware.assignment.tags list "" low list from:group.streams.rack.aware.assignment.tags
streams.session.timeout.ms int 45000 medium >=1 from:group.streams.session.timeout.ms
streams.task.offset.interval.ms int 60000 medium >=1 internal from:group.streams.task.offset.interval.ms
""",
        because="there are no Streams groups",
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
