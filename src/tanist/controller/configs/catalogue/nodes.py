"""Broker properties of a node: its identity, its place, the quorum, the cluster, replication and the network.

Only data, in the notation of `notation`.
"""

from __future__ import annotations

from .notation import read

_IDENTITY = read(
    """
advertised.listeners list - read-only high list
    Addresses that clients and brokers use.
authorizer.class.name string "" read-only low
    Decides what clients may do, by access control lists; empty: every client may do all.
broker.id int -1 read-only high
    Old name of node.id.
broker.rack string - read-only medium
    Where this broker stands; replicas are spread over racks.
controller.listener.names list - read-only high list
    Listeners on which controllers serve each other and brokers.
inter.broker.listener.name string - read-only medium
    Listener through which brokers reach each other.
listener.security.protocol.map string \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT per-broker low
    Security protocol of each listener name.
listeners list PLAINTEXT://:9092 per-broker high list
    Addresses to bind, as NAME://host:port.
node.id int - read-only high >=0
    This node's number, unique in the cluster.
process.roles list - read-only high each:broker,controller
    What this node is: broker, controller, or both.
security.inter.broker.protocol string PLAINTEXT read-only medium one:PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL
    Protocol, and so listener, between brokers when inter.broker.listener.name is not set.
""",
    on_brokers=True,
)

_QUORUM = read(
    """
controller.quorum.append.linger.ms int 25 read-only medium >=0
    How long the leader gathers records for one batch.
controller.quorum.auto.join.enable boolean false read-only low
    Whether a controller adds itself to the voters.
controller.quorum.bootstrap.servers list "" read-only high
    Controllers, as host:port, to ask first when the voters are kept in the metadata log.
controller.quorum.election.backoff.max.ms int 1000 read-only high >=0
    Longest pause between two elections.
controller.quorum.election.timeout.ms int 1000 read-only high >=0
    How long a candidate waits for votes.
controller.quorum.fetch.max.bytes int 1048576 read-only low >=1
    Bytes of metadata log in one fetch.
controller.quorum.fetch.snapshot.max.bytes int 1048576 read-only low >=1
    Bytes of a snapshot in one fetch.
controller.quorum.fetch.timeout.ms int 2000 read-only high >=0
    How long a voter goes without its leader before it stands for election.
controller.quorum.request.timeout.ms int 2000 read-only medium >=0
    How long a quorum request waits for its answer.
controller.quorum.retry.backoff.ms int 20 read-only low >=0
    Pause before a quorum request is sent again.
controller.quorum.voters list "" read-only high
    The controllers, as id@host:port.
metadata.log.dir string - read-only high
    Folder of the metadata log; the first of log.dirs if not set.
metadata.log.max.record.bytes.between.snapshots long 20971520 read-only high >=1
    Bytes of metadata records after which a snapshot is written.
metadata.log.max.snapshot.interval.ms long 3600000 read-only high >=0
    Longest time between two snapshots; 0 is no limit.
metadata.log.segment.bytes int 1073741824 read-only high >=8388608
    Size of a segment of the metadata log.
metadata.log.segment.ms long 604800000 read-only high
    Age at which a segment of the metadata log is closed.
metadata.max.idle.interval.ms int 500 read-only low >=0
    How often an idle active controller writes a no-op record; 0 is never.
metadata.max.retention.bytes long 104857600 read-only high
    Size of metadata log and snapshots to keep.
metadata.max.retention.ms long 604800000 read-only high
    How long metadata log and snapshots are kept.
""",
    on_brokers=True,
)

_CLUSTER = read(
    """
auto.create.topics.enable boolean true read-only high
    Create a topic when a client first names it.
auto.leader.rebalance.enable boolean true read-only high
    Give leadership back to preferred replicas now and then.
broker.heartbeat.interval.ms int 2000 read-only medium
    Time between two heartbeats to the controller.
broker.session.timeout.ms int 9000 read-only medium
    Silence after which the controller fences a broker.
controlled.shutdown.enable boolean true read-only medium no-effect
    Hand over leaderships before stopping.
default.replication.factor int 1 read-only medium
    Replicas of a topic whose creator does not say.
delete.topic.enable boolean true read-only high
    Whether topics can be deleted.
initial.broker.registration.timeout.ms int 60000 read-only medium
    How long a starting broker tries to register before it gives up.
leader.imbalance.check.interval.seconds long 300 read-only high >=1
    Time between two looks for leaders that are not preferred.
max.request.partition.size.limit int 2000 read-only medium >=1
    Partitions in one answer to DescribeTopicPartitions.
min.insync.replicas int 1 cluster-wide high >=1
    In-sync replicas needed before a record counts as written.
num.partitions int 1 read-only medium >=1
    Partitions of a topic whose creator does not say.
tanist.events.fine boolean false read-only low
    Write the events of records and fetches too, which come many times a second, to the node's file of events.
tanist.metadata.turn.records.max int 1000 read-only low >=1 internal
    Committed records that a turn applies, and partitions that one decision takes from a broker to be fenced.
tanist.new.logs.pause.ms int 1 read-only low >=0 internal
    Pause after a turn that could not make the logs of all new replicas.
tanist.new.logs.turn.max int 64 read-only low >=1 internal
    Logs of new replicas that a turn makes.
tanist.private.requests.enable boolean true read-only low internal
    Serve other nodes the requests that Apache Kafka does not have; false: be asked as Apache's brokers are.
tanist.transactional.first.epoch int 0 read-only low >=0 internal
    Epoch of the first producer of a transactional id; 32766 is the last one.
tanist.unclean.recovery.grace.ms long 5000 read-only medium >=0
    How long an Aggressive recovery waits for replicas that are not there before it does without them.
unclean.leader.election.enable boolean false cluster-wide high
    Let replicas outside ISR and ELR lead in an emergency.
unclean.recovery.manager.enabled boolean true read-only medium
    KIP-966: compare logs before an unclean election; false: the KIP's first phase, as in Apache Kafka.
unclean.recovery.strategy string Balanced cluster-wide medium one:None,Balanced,Aggressive
    KIP-966: default of the topic config of this name.
unclean.recovery.timeout.ms long 300000 read-only medium >=0
    KIP-966: how long an unclean recovery waits for the replicas' answers.
""",
    on_brokers=True,
)

_REPLICATION = read(
    """
replica.fetch.backoff.ms int 1000 read-only medium >=0
    Pause of a follower after a failed fetch.
replica.fetch.max.bytes int 1048576 read-only medium >=0
    Bytes of one partition in a follower's fetch.
replica.fetch.min.bytes int 1 read-only high
    Bytes a leader gathers before it answers a follower.
replica.fetch.response.max.bytes int 10485760 read-only medium >=0
    Bytes of a whole answer to a follower.
follower.replication.throttled.rate long - cluster-wide medium >=0 internal dynamic-only
    Bytes a second that this broker may fetch for throttled replicas that are not in sync.
replica.alter.log.dirs.io.max.bytes.per.second long - cluster-wide medium >=0 internal dynamic-only
    Bytes a second that this broker may copy from one of its log directories to another.
leader.replication.throttled.rate long - cluster-wide medium >=0 internal dynamic-only
    Bytes a second that this broker may send to throttled replicas that are not in sync.
replica.fetch.wait.max.ms int 500 read-only high
    How long a leader waits for those bytes.
replica.high.watermark.checkpoint.interval.ms long 5000 read-only high
    How often high watermarks are saved to disk.
replica.lag.time.max.ms long 30000 read-only high
    How long a follower may lag before it leaves the ISR.
replica.selector.class string - read-only medium
    Who serves consumers: the leader, or a replica in their rack (the RackAwareReplicaSelector).
replica.socket.receive.buffer.bytes int 65536 read-only high no-effect
    Socket buffer for replication.
replica.socket.timeout.ms int 30000 read-only high
    How long a replication request waits for its answer.
""",
    on_brokers=True,
)

_NETWORK = read(
    """
controller.quota.window.num int 11 read-only low >=1
    Samples of the quotas for changes by clients: so many seconds of them may be saved up.
controller.quota.window.size.seconds int 1 read-only low >=1
    Length of such a sample.
quota.window.num int 11 read-only low >=1
    Samples over which the rates of clients are measured.
quota.window.size.seconds int 1 read-only low >=1
    Length of such a sample, and the longest pause for a quota of time or connections.
tanist.client.metrics.enable boolean false read-only low
    Take the metrics that clients push by the cluster's subscriptions (KIP-714), and serve them at /metrics/clients.
connections.max.idle.ms long 600000 read-only medium
    Silence after which a connection is closed.
fetch.max.bytes int 57671680 read-only medium >=1024
    Bytes of one answer to a fetch.
max.connection.creation.rate int 2147483647 cluster-wide medium >=0
    Connections a second that this broker accepts.
max.connections int 2147483647 cluster-wide medium >=0
    Connections of this broker.
max.connections.per.ip int 2147483647 cluster-wide medium >=0
    Connections from one address.
max.connections.per.ip.overrides string "" cluster-wide medium
    Other limits for some addresses, as address:count,...
max.incremental.fetch.session.cache.slots int 1000 read-only medium >=0
    Fetch sessions that are remembered.
queued.max.requests int 500 read-only high >=1 no-effect
    Requests that may wait before reading from clients pauses.
request.timeout.ms int 30000 read-only high
    How long a request to another node waits for its answer.
socket.connection.setup.timeout.ms long 10000 read-only medium
    How long a connection may take to be set up.
socket.listen.backlog.size int 50 read-only medium >=1 no-effect
    Connections waiting to be accepted.
socket.receive.buffer.bytes int 102400 read-only high
    Socket receive buffer; -1 is the system's.
socket.request.max.bytes int 104857600 read-only high >=1
    Size of a request beyond which it is refused.
socket.send.buffer.bytes int 102400 read-only high
    Socket send buffer; -1 is the system's.
telemetry.max.bytes int 1048576 read-only low >=1
    Size of a push of a client's metrics, compressed or not, beyond which it is refused.
""",
    on_brokers=True,
)

NODE_SETTINGS = {**_IDENTITY, **_QUORUM, **_CLUSTER, **_REPLICATION, **_NETWORK}
