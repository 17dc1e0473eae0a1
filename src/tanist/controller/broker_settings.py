"""The broker configuration names that tanist knows, as a table; Kafka's names, defaults and ranges.

Only data. `Update` says how Kafka lets each be changed while a broker runs. `is_kafka_only` knows the names of Kafka
that have no counterpart here: a properties file that has them still starts a node, with a warning; setting them
dynamically is refused.
"""

from __future__ import annotations

from .definitions import (
    INT_MAX,
    LONG_MAX,
    AtLeast,
    Between,
    BetweenOr,
    Check,
    ConfigType,
    EachOf,
    OneOf,
    Setting,
    Update,
)
from .topic_settings import COMPRESSION_TYPES, RECOVERY_STRATEGIES

_B, _D, _I, _L, _SH = ConfigType.BOOLEAN, ConfigType.DOUBLE, ConfigType.INT, ConfigType.LONG, ConfigType.SHORT
_S, _LIST, _C = ConfigType.STRING, ConfigType.LIST, ConfigType.CLASS
_FIXED, _NODE, _ALL = Update.READ_ONLY, Update.PER_BROKER, Update.CLUSTER_WIDE
_NATURAL, _POSITIVE = AtLeast(0), AtLeast(1)
_NEVER = str(LONG_MAX)

_Row = tuple[str, ConfigType, str | None, Check | None, Update, str]

_IDENTITY: tuple[_Row, ...] = (
    ("advertised.listeners", _LIST, None, None, _FIXED, "Addresses that clients and brokers are told to use."),
    ("broker.id", _I, "-1", None, _FIXED, "Old name of node.id."),
    ("broker.rack", _S, None, None, _FIXED, "Where this broker stands; replicas are spread over racks."),
    (
        "controller.listener.names",
        _LIST,
        None,
        None,
        _FIXED,
        "Listeners on which controllers serve each other and brokers.",
    ),
    ("inter.broker.listener.name", _S, None, None, _FIXED, "Listener through which brokers reach each other."),
    (
        "listener.security.protocol.map",
        _S,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        None,
        _NODE,
        "Security protocol of each listener name.",
    ),
    ("listeners", _LIST, "PLAINTEXT://:9092", None, _NODE, "Addresses to bind, as NAME://host:port."),
    ("node.id", _I, None, _NATURAL, _FIXED, "This node's number, unique in the cluster."),
    (
        "process.roles",
        _LIST,
        None,
        EachOf("process.roles", ("broker", "controller")),
        _FIXED,
        "What this node is: broker, controller, or both.",
    ),
    (
        "security.inter.broker.protocol",
        _S,
        "PLAINTEXT",
        OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        _FIXED,
        "Protocol, and so listener, between brokers when inter.broker.listener.name is not set.",
    ),
)

_QUORUM: tuple[_Row, ...] = (
    (
        "controller.quorum.append.linger.ms",
        _I,
        "25",
        _NATURAL,
        _FIXED,
        "How long the leader gathers records for one batch.",
    ),
    (
        "controller.quorum.auto.join.enable",
        _B,
        "false",
        None,
        _FIXED,
        "Whether a controller adds itself to the voters.",
    ),
    (
        "controller.quorum.bootstrap.servers",
        _LIST,
        "",
        None,
        _FIXED,
        "Controllers, as host:port, to ask first when the voters are kept in the metadata log.",
    ),
    ("controller.quorum.election.backoff.max.ms", _I, "1000", _NATURAL, _FIXED, "Longest pause between two elections."),
    ("controller.quorum.election.timeout.ms", _I, "1000", _NATURAL, _FIXED, "How long a candidate waits for votes."),
    ("controller.quorum.fetch.max.bytes", _I, "1048576", _POSITIVE, _FIXED, "Bytes of metadata log in one fetch."),
    (
        "controller.quorum.fetch.snapshot.max.bytes",
        _I,
        "1048576",
        _POSITIVE,
        _FIXED,
        "Bytes of a snapshot in one fetch.",
    ),
    (
        "controller.quorum.fetch.timeout.ms",
        _I,
        "2000",
        _NATURAL,
        _FIXED,
        "How long a voter goes without its leader before it stands for election.",
    ),
    (
        "controller.quorum.request.timeout.ms",
        _I,
        "2000",
        _NATURAL,
        _FIXED,
        "How long a quorum request waits for its answer.",
    ),
    ("controller.quorum.retry.backoff.ms", _I, "20", _NATURAL, _FIXED, "Pause before a quorum request is sent again."),
    ("controller.quorum.voters", _LIST, "", None, _FIXED, "The controllers, as id@host:port."),
    ("metadata.log.dir", _S, None, None, _FIXED, "Folder of the metadata log; the first of log.dirs if not set."),
    (
        "metadata.log.max.record.bytes.between.snapshots",
        _L,
        "20971520",
        _POSITIVE,
        _FIXED,
        "Bytes of metadata records after which a snapshot is written.",
    ),
    (
        "metadata.log.max.snapshot.interval.ms",
        _L,
        "3600000",
        _NATURAL,
        _FIXED,
        "Longest time between two snapshots; 0 is no limit.",
    ),
    (
        "metadata.log.segment.bytes",
        _I,
        "1073741824",
        AtLeast(8388608),
        _FIXED,
        "Size of a segment of the metadata log.",
    ),
    ("metadata.log.segment.ms", _L, "604800000", None, _FIXED, "Age at which a segment of the metadata log is closed."),
    (
        "metadata.max.idle.interval.ms",
        _I,
        "500",
        _NATURAL,
        _FIXED,
        "How often an idle active controller writes a no-op record; 0 is never.",
    ),
    ("metadata.max.retention.bytes", _L, "104857600", None, _FIXED, "Size of metadata log and snapshots to keep."),
    ("metadata.max.retention.ms", _L, "604800000", None, _FIXED, "How long metadata log and snapshots are kept."),
)

_CLUSTER: tuple[_Row, ...] = (
    ("auto.create.topics.enable", _B, "true", None, _FIXED, "Create a topic when a client first names it."),
    (
        "auto.leader.rebalance.enable",
        _B,
        "true",
        None,
        _FIXED,
        "Give leadership back to preferred replicas now and then.",
    ),
    ("broker.heartbeat.interval.ms", _I, "2000", None, _FIXED, "Time between two heartbeats to the controller."),
    ("broker.session.timeout.ms", _I, "9000", None, _FIXED, "Silence after which the controller fences a broker."),
    ("controlled.shutdown.enable", _B, "true", None, _FIXED, "Hand over leaderships before stopping."),
    ("default.replication.factor", _I, "1", None, _FIXED, "Replicas of a topic whose creator does not say."),
    ("delete.topic.enable", _B, "true", None, _FIXED, "Whether topics can be deleted."),
    (
        "initial.broker.registration.timeout.ms",
        _I,
        "60000",
        None,
        _FIXED,
        "How long a starting broker tries to register before it gives up.",
    ),
    (
        "leader.imbalance.check.interval.seconds",
        _L,
        "300",
        _POSITIVE,
        _FIXED,
        "Time between two looks for leaders that are not preferred.",
    ),
    (
        "max.request.partition.size.limit",
        _I,
        "2000",
        _POSITIVE,
        _FIXED,
        "Partitions in one answer to DescribeTopicPartitions.",
    ),
    ("min.insync.replicas", _I, "1", _POSITIVE, _ALL, "In-sync replicas needed before a record counts as written."),
    ("num.partitions", _I, "1", _POSITIVE, _FIXED, "Partitions of a topic whose creator does not say."),
    (
        "unclean.leader.election.enable",
        _B,
        "false",
        None,
        _ALL,
        "Let replicas outside ISR and ELR lead in an emergency.",
    ),
    (
        "unclean.recovery.manager.enabled",
        _B,
        "true",
        None,
        _FIXED,
        "KIP-966: compare logs before an unclean election; false: the KIP's first phase, as in Apache Kafka.",
    ),
    (
        "unclean.recovery.strategy",
        _S,
        "Balanced",
        OneOf(RECOVERY_STRATEGIES),
        _ALL,
        "KIP-966: default of the topic config of this name.",
    ),
    (
        "unclean.recovery.timeout.ms",
        _L,
        "300000",
        _NATURAL,
        _FIXED,
        "KIP-966: how long an unclean recovery waits for the replicas' answers.",
    ),
    (
        "tanist.unclean.recovery.grace.ms",
        _L,
        "5000",
        _NATURAL,
        _FIXED,
        "How long an Aggressive recovery waits for replicas that are not there before it does without them.",
    ),
)

_REPLICATION: tuple[_Row, ...] = (
    ("replica.fetch.backoff.ms", _I, "1000", _NATURAL, _FIXED, "Pause of a follower after a failed fetch."),
    ("replica.fetch.max.bytes", _I, "1048576", _NATURAL, _FIXED, "Bytes of one partition in a follower's fetch."),
    ("replica.fetch.min.bytes", _I, "1", None, _FIXED, "Bytes a leader gathers before it answers a follower."),
    ("replica.fetch.response.max.bytes", _I, "10485760", _NATURAL, _FIXED, "Bytes of a whole answer to a follower."),
    ("replica.fetch.wait.max.ms", _I, "500", None, _FIXED, "How long a leader waits for those bytes."),
    (
        "replica.high.watermark.checkpoint.interval.ms",
        _L,
        "5000",
        None,
        _FIXED,
        "How often high watermarks are saved to disk.",
    ),
    ("replica.lag.time.max.ms", _L, "30000", None, _FIXED, "How long a follower may lag before it leaves the ISR."),
    (
        "replica.selector.class",
        _S,
        None,
        None,
        _FIXED,
        "Who serves consumers: the leader, or a replica in their rack (the RackAwareReplicaSelector).",
    ),
    ("replica.socket.receive.buffer.bytes", _I, "65536", None, _FIXED, "Socket buffer for replication."),
    ("replica.socket.timeout.ms", _I, "30000", None, _FIXED, "How long a replication request waits for its answer."),
)

_NETWORK: tuple[_Row, ...] = (
    ("connections.max.idle.ms", _L, "600000", None, _FIXED, "Silence after which a connection is closed."),
    ("fetch.max.bytes", _I, "57671680", AtLeast(1024), _FIXED, "Bytes of one answer to a fetch."),
    ("max.connections", _I, str(INT_MAX), _NATURAL, _ALL, "Connections of this broker."),
    ("max.connections.per.ip", _I, str(INT_MAX), _NATURAL, _ALL, "Connections from one address."),
    ("max.connections.per.ip.overrides", _S, "", None, _ALL, "Other limits for some addresses, as address:count,..."),
    (
        "max.incremental.fetch.session.cache.slots",
        _I,
        "1000",
        _NATURAL,
        _FIXED,
        "Fetch sessions that are remembered.",
    ),
    ("queued.max.requests", _I, "500", _POSITIVE, _FIXED, "Requests that may wait before reading from clients pauses."),
    ("request.timeout.ms", _I, "30000", None, _FIXED, "How long a request to another node waits for its answer."),
    ("socket.connection.setup.timeout.ms", _L, "10000", None, _FIXED, "How long a connection may take to be set up."),
    ("socket.listen.backlog.size", _I, "50", _POSITIVE, _FIXED, "Connections waiting to be accepted."),
    ("socket.receive.buffer.bytes", _I, "102400", None, _FIXED, "Socket receive buffer; -1 is the system's."),
    ("socket.request.max.bytes", _I, "104857600", _POSITIVE, _FIXED, "Size of a request beyond which it is refused."),
    ("socket.send.buffer.bytes", _I, "102400", None, _FIXED, "Socket send buffer; -1 is the system's."),
)

_LOG: tuple[_Row, ...] = (
    ("compression.gzip.level", _I, "-1", BetweenOr(1, 9, -1), _ALL, "Default of the topic config of this name."),
    ("compression.lz4.level", _I, "9", Between(1, 17), _ALL, "Default of the topic config of this name."),
    ("compression.type", _S, "producer", OneOf(COMPRESSION_TYPES), _ALL, "Default of the topic config of this name."),
    ("compression.zstd.level", _I, "3", Between(-131072, 22), _ALL, "Default of the topic config of this name."),
    ("log.cleaner.backoff.ms", _L, "15000", _NATURAL, _ALL, "Pause of the cleaner when nothing is to be cleaned."),
    ("log.cleaner.dedupe.buffer.size", _L, "134217728", None, _ALL, "Memory of the cleaner's key map."),
    ("log.cleaner.delete.retention.ms", _L, "86400000", _NATURAL, _ALL, "Default of topic config delete.retention.ms."),
    ("log.cleaner.enable", _B, "true", None, _FIXED, "Whether compacted topics are compacted."),
    (
        "log.cleaner.io.max.bytes.per.second",
        _D,
        "1.7976931348623157E308",
        _POSITIVE,
        _ALL,
        "Bytes that the cleaner may read and write in a second.",
    ),
    (
        "log.cleaner.max.compaction.lag.ms",
        _L,
        _NEVER,
        _POSITIVE,
        _ALL,
        "Default of topic config max.compaction.lag.ms.",
    ),
    (
        "log.cleaner.min.cleanable.ratio",
        _D,
        "0.5",
        Between(0, 1),
        _ALL,
        "Default of topic config min.cleanable.dirty.ratio.",
    ),
    ("log.cleaner.min.compaction.lag.ms", _L, "0", _NATURAL, _ALL, "Default of topic config min.compaction.lag.ms."),
    (
        "log.cleanup.policy",
        _LIST,
        "delete",
        EachOf("log.cleanup.policy", ("compact", "delete")),
        _ALL,
        "Default of topic config cleanup.policy.",
    ),
    ("log.dir", _LIST, "/tmp/kafka-logs", None, _FIXED, "Where the logs are, when log.dirs is not set."),
    (
        "log.dir.failure.timeout.ms",
        _L,
        "30000",
        _POSITIVE,
        _FIXED,
        "How long a broker may fail to report a failed disk.",
    ),
    ("log.dirs", _LIST, None, None, _FIXED, "Where the logs are; several folders are filled evenly."),
    ("log.flush.interval.messages", _L, _NEVER, _POSITIVE, _ALL, "Default of topic config flush.messages."),
    ("log.flush.interval.ms", _L, None, None, _ALL, "Default of topic config flush.ms."),
    ("log.flush.offset.checkpoint.interval.ms", _I, "60000", _NATURAL, _FIXED, "How often recovery points are saved."),
    ("log.flush.scheduler.interval.ms", _L, _NEVER, None, _FIXED, "How often logs are looked at for a due flush."),
    (
        "log.flush.start.offset.checkpoint.interval.ms",
        _I,
        "60000",
        _NATURAL,
        _FIXED,
        "How often log start offsets are saved.",
    ),
    ("log.index.interval.bytes", _I, "4096", _NATURAL, _ALL, "Default of topic config index.interval.bytes."),
    ("log.index.size.max.bytes", _I, "10485760", AtLeast(4), _ALL, "Default of topic config segment.index.bytes."),
    ("log.local.retention.bytes", _L, "-2", AtLeast(-2), _ALL, "Default of topic config local.retention.bytes."),
    ("log.local.retention.ms", _L, "-2", AtLeast(-2), _ALL, "Default of topic config local.retention.ms."),
    (
        "log.message.timestamp.after.max.ms",
        _L,
        "3600000",
        _NATURAL,
        _ALL,
        "Default of topic config message.timestamp.after.max.ms.",
    ),
    (
        "log.message.timestamp.before.max.ms",
        _L,
        _NEVER,
        _NATURAL,
        _ALL,
        "Default of topic config message.timestamp.before.max.ms.",
    ),
    (
        "log.message.timestamp.type",
        _S,
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        _ALL,
        "Default of topic config message.timestamp.type.",
    ),
    ("log.preallocate", _B, "false", None, _ALL, "Default of topic config preallocate."),
    ("log.retention.bytes", _L, "-1", None, _ALL, "Default of topic config retention.bytes."),
    ("log.retention.check.interval.ms", _L, "300000", _POSITIVE, _FIXED, "How often old segments are looked for."),
    ("log.retention.hours", _I, "168", None, _FIXED, "Default of topic config retention.ms, in hours."),
    ("log.retention.minutes", _I, None, None, _FIXED, "Default of topic config retention.ms, in minutes."),
    ("log.retention.ms", _L, None, None, _ALL, "Default of topic config retention.ms."),
    ("log.roll.hours", _I, "168", _POSITIVE, _FIXED, "Default of topic config segment.ms, in hours."),
    ("log.roll.jitter.hours", _I, "0", _NATURAL, _FIXED, "Default of topic config segment.jitter.ms, in hours."),
    ("log.roll.jitter.ms", _L, None, None, _ALL, "Default of topic config segment.jitter.ms."),
    ("log.roll.ms", _L, None, None, _ALL, "Default of topic config segment.ms."),
    ("log.segment.bytes", _I, "1073741824", AtLeast(1048576), _ALL, "Default of topic config segment.bytes."),
    ("log.segment.delete.delay.ms", _L, "60000", _NATURAL, _ALL, "Default of topic config file.delete.delay.ms."),
    ("message.max.bytes", _I, "1048588", _NATURAL, _ALL, "Default of topic config max.message.bytes."),
)

_COORDINATORS: tuple[_Row, ...] = (
    (
        "group.consumer.assignors",
        _LIST,
        "uniform,range",
        EachOf("group.consumer.assignors", ("uniform", "range")),
        _FIXED,
        "Server-side assignors of consumer groups; the first is the default.",
    ),
    ("group.consumer.heartbeat.interval.ms", _I, "5000", _POSITIVE, _FIXED, "How often consumers are to be heard of."),
    ("group.consumer.max.size", _I, str(INT_MAX), _POSITIVE, _FIXED, "Members of one consumer group."),
    (
        "group.consumer.migration.policy",
        _S,
        "bidirectional",
        OneOf(("bidirectional", "upgrade", "downgrade", "disabled")),
        _FIXED,
        "Whether groups with members go over to the consumer protocol, and back.",
    ),
    ("group.consumer.session.timeout.ms", _I, "45000", _POSITIVE, _FIXED, "When a silent consumer is given up."),
    ("group.initial.rebalance.delay.ms", _I, "3000", None, _FIXED, "How long an empty group waits for more members."),
    ("group.max.session.timeout.ms", _I, "1800000", None, _FIXED, "Longest session timeout a member may ask for."),
    ("group.max.size", _I, str(INT_MAX), _POSITIVE, _FIXED, "Members of one group."),
    ("group.min.session.timeout.ms", _I, "6000", None, _FIXED, "Shortest session timeout a member may ask for."),
    ("offset.metadata.max.bytes", _I, "4096", None, _FIXED, "Size of the metadata of a committed offset."),
    ("offsets.commit.timeout.ms", _I, "5000", _POSITIVE, _FIXED, "How long an offset commit waits for its replicas."),
    ("offsets.retention.check.interval.ms", _L, "600000", _POSITIVE, _FIXED, "How often old offsets are looked for."),
    ("offsets.retention.minutes", _I, "10080", _POSITIVE, _FIXED, "How long offsets of an empty group are kept."),
    ("offsets.topic.num.partitions", _I, "50", _POSITIVE, _FIXED, "Partitions of __consumer_offsets."),
    ("offsets.topic.replication.factor", _SH, "3", _POSITIVE, _FIXED, "Replicas of __consumer_offsets."),
    ("offsets.topic.segment.bytes", _I, "104857600", _POSITIVE, _FIXED, "Segment size of __consumer_offsets."),
    ("producer.id.expiration.ms", _I, "86400000", _POSITIVE, _ALL, "How long a silent producer's state is kept."),
    (
        "transaction.max.timeout.ms",
        _I,
        "900000",
        _POSITIVE,
        _FIXED,
        "Longest transaction timeout a producer may ask for.",
    ),
    ("transaction.state.log.min.isr", _I, "2", _POSITIVE, _FIXED, "min.insync.replicas of __transaction_state."),
    ("transaction.state.log.num.partitions", _I, "50", _POSITIVE, _FIXED, "Partitions of __transaction_state."),
    ("transaction.state.log.replication.factor", _SH, "3", _POSITIVE, _FIXED, "Replicas of __transaction_state."),
    ("transaction.state.log.segment.bytes", _I, "104857600", _POSITIVE, _FIXED, "Segment size of __transaction_state."),
    (
        "transactional.id.expiration.ms",
        _I,
        "604800000",
        _POSITIVE,
        _FIXED,
        "How long an unused transactional id is kept.",
    ),
)

_METRICS: tuple[_Row, ...] = (
    (
        "tanist.metrics.listener",
        _S,
        None,
        None,
        _FIXED,
        "Where the node's metrics are told over HTTP, as host:port; nowhere if not set or empty.",
    ),
)

_SALVAGE: tuple[_Row, ...] = (
    ("tanist.salvage.enable", _B, "true", None, _ALL, "Default of topic config tanist.salvage.enable."),
    (
        "tanist.salvage.on.failure",
        _S,
        "truncate",
        OneOf(("truncate", "wait")),
        _ALL,
        "If records cannot be saved: 'truncate' drops them and says so, 'wait' keeps the replica from following.",
    ),
    (
        "tanist.salvage.retention.bytes",
        _L,
        "10737418240",
        AtLeast(-1),
        _ALL,
        "Size of the salvage in each log directory beyond which the oldest is removed; -1 is no limit.",
    ),
    (
        "tanist.salvage.retention.ms",
        _L,
        "2592000000",
        AtLeast(-1),
        _ALL,
        "Age beyond which salvage is removed; -1 is no limit.",
    ),
)

_INTERNAL: tuple[_Row, ...] = (
    (
        "unclean.leader.election.interval.ms",
        _L,
        "300000",
        _POSITIVE,
        _FIXED,
        "Time between two sweeps for leaderless partitions that may elect uncleanly.",
    ),
)


def _table(rows: tuple[_Row, ...], *, internal: bool = False) -> dict[str, Setting]:
    return {
        name: Setting(name, kind, default, doc, check, update, (), internal)
        for name, kind, default, check, update, doc in rows
    }


BROKER_SETTINGS: dict[str, Setting] = dict(
    sorted(
        {
            **_table(_IDENTITY + _QUORUM + _CLUSTER + _REPLICATION + _NETWORK + _LOG + _COORDINATORS),
            **_table(_METRICS + _SALVAGE),
            **_table(_INTERNAL, internal=True),
        }.items()
    )
)
"""Every broker name, in alphabetical order."""


_KAFKA_FAMILIES = (
    "add.partitions.to.txn.",
    "alter.log.dirs.replication.",
    "client.quota.",
    "config.providers",
    "controller.performance.",
    "controller.quota.",
    "delegation.token.",
    "group.consumer.",
    "group.coordinator.",
    "group.share.",
    "group.streams.",
    "internal.metadata.",
    "kafka.metrics.",
    "listener.name.",
    "log.cleaner.io.",
    "metric",
    "quota.window.",
    "remote.",
    "replication.quota.",
    "sasl.",
    "share.",
    "ssl.",
    "telemetry.",
    "transaction.",
    "unstable.",
)
_KAFKA_NAMES = frozenset(
    (
        "alter.config.policy.class.name",
        "authorizer.class.name",
        "background.threads",
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "controller.socket.timeout.ms",
        "cordoned.log.dirs",
        "create.topic.policy.class.name",
        "delete.records.purgatory.purge.interval.requests",
        "early.start.listeners",
        "fetch.purgatory.purge.interval.requests",
        "follower.fetch.last.tiered.offset.enable",
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "log.cleaner.threads",
        "log.initial.task.delay.ms",
        "max.connection.creation.rate",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "num.replica.fetchers",
        "offsets.load.buffer.size",
        "offsets.topic.compression.codec",
        "principal.builder.class",
        "producer.id.expiration.check.interval.ms",
        "producer.purgatory.purge.interval.requests",
        "queued.max.request.bytes",
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "security.providers",
        "server.max.startup.time.ms",
        "socket.connection.setup.timeout.max.ms",
    )
)


def is_kafka_only(name: str) -> bool:
    """Whether Kafka has this name and tanist does not."""
    return name not in BROKER_SETTINGS and (name in _KAFKA_NAMES or name.startswith(_KAFKA_FAMILIES))
