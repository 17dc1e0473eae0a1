"""Kafka's broker properties that have no effect in tanist, by the reason.

They are valid in a properties file and where Kafka lets them be set dynamically, and are described with their values.
Only data, in the notation of `notation`.
"""

from __future__ import annotations

from .notation import read

_BY_REASON = {
    "tanist's coordinator needs no such bound": """
group.consumer.assignment.interval.ms int 1000 cluster-wide medium >=0
group.consumer.max.assignment.interval.ms int 15000 read-only medium >=0
group.consumer.min.assignment.interval.ms int 0 read-only medium >=0
group.consumer.regex.refresh.interval.ms int 600000 read-only medium >=10000 internal
group.coordinator.append.linger.ms int -1 read-only medium >=-1
group.coordinator.background.threads int 2 read-only high >=1
group.coordinator.cached.buffer.max.bytes int 1048588 cluster-wide medium >=524288
group.coordinator.rebalance.protocols list classic,consumer,streams read-only medium each:consumer,classic,share,streams
group.coordinator.threads int 4 read-only high >=1
offsets.load.buffer.size int 5242880 read-only high >=1
offsets.topic.compression.codec int 0 read-only high
""",
    "tanist's coordinator assigns at once": """
group.consumer.assignor.offload.enable boolean true cluster-wide medium internal
""",
    "what producers compress stays compressed": """
max.decompressed.message.bytes int 2147483639 cluster-wide medium 1..2147483639
""",
    "as in Apache Kafka 4.3, a token may be for anybody and by anybody where no audience or issuer is expected": """
sasl.oauthbearer.allow.unverified.audience boolean false read-only medium
sasl.oauthbearer.allow.unverified.issuer boolean false read-only medium
""",
    "it is for Apache Kafka's own tests": """
internal.metadata.delete.delay.millis long 60000 read-only low internal
internal.metadata.log.segment.bytes int - read-only low internal
internal.metadata.max.batch.size.in.bytes int 8388608 read-only low internal
unstable.feature.versions.enable boolean false read-only high internal
""",
    "tanist serves Prometheus's format": """
kafka.metrics.polling.interval.secs int 10 read-only low >=1
kafka.metrics.reporters list "" read-only low list
metric.reporters list org.apache.kafka.common.metrics.JmxReporter cluster-wide low list
metrics.num.samples int 2 read-only low >=1
metrics.recording.level string INFO read-only low
metrics.sample.window.ms long 30000 read-only low >=1
""",
    "there are no policies and providers": """
alter.config.policy.class.name class - read-only low
config.providers list "" cluster-wide low
create.topic.policy.class.name class - read-only low
early.start.listeners list - read-only high list
""",
    "it tunes a part that tanist does not have": """
background.threads int 10 cluster-wide high >=1
controller.performance.always.log.threshold.ms long 2000 read-only medium >=0 internal
controller.performance.sample.period.ms long 60000 read-only medium >=100 internal
controller.socket.timeout.ms int 30000 read-only medium
cordoned.log.dirs list "" per-broker medium list
delete.records.purgatory.purge.interval.requests int 1 read-only medium
fetch.purgatory.purge.interval.requests int 1000 read-only medium
log.cleaner.io.buffer.load.factor double 0.9 cluster-wide medium
log.cleaner.io.buffer.size int 524288 cluster-wide medium >=0
log.cleaner.threads int 1 cluster-wide medium >=0
log.initial.task.delay.ms long 30000 read-only low >=0 internal
num.io.threads int 8 cluster-wide high >=1
num.network.threads int 3 cluster-wide high >=1
num.replica.alter.log.dirs.threads int - read-only high
num.replica.fetchers int 1 cluster-wide high >=1
producer.id.expiration.check.interval.ms int 600000 read-only low >=1 internal
producer.purgatory.purge.interval.requests int 1000 read-only medium
queued.max.request.bytes long -1 read-only medium
server.max.startup.time.ms long 9223372036854775807 read-only medium >=0 internal
socket.connection.setup.timeout.max.ms long 30000 read-only medium
""",
    "throttles of replication average over ten seconds": """
alter.log.dirs.replication.quota.window.num int 11 read-only low >=1
alter.log.dirs.replication.quota.window.size.seconds int 1 read-only low >=1
replication.quota.window.num int 11 read-only low >=1
replication.quota.window.size.seconds int 1 read-only low >=1
""",
    "quotas of clients are found by Apache Kafka's default rule": """
client.quota.callback.class class - read-only low
""",
    "tanist has no GSSAPI, no OAUTHBEARER between nodes, and runs no Java classes": """
principal.builder.class class \
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder per-broker medium
sasl.client.callback.handler.class class - read-only medium
sasl.kerberos.kinit.cmd string /usr/bin/kinit per-broker medium
sasl.kerberos.min.time.before.relogin long 60000 per-broker medium
sasl.kerberos.principal.to.local.rules list DEFAULT per-broker medium list
sasl.kerberos.service.name string - per-broker medium
sasl.kerberos.ticket.renew.jitter double 0.05 per-broker medium
sasl.kerberos.ticket.renew.window.factor double 0.8 per-broker medium
sasl.login.callback.handler.class class - read-only medium
sasl.login.class class - read-only medium
sasl.login.connect.timeout.ms int - read-only low
sasl.login.read.timeout.ms int - read-only low
sasl.login.refresh.buffer.seconds short 300 per-broker medium
sasl.login.refresh.min.period.seconds short 60 per-broker medium
sasl.login.refresh.window.factor double 0.8 per-broker medium
sasl.login.refresh.window.jitter double 0.05 per-broker medium
sasl.login.retry.backoff.max.ms long 10000 read-only low
sasl.login.retry.backoff.ms long 100 read-only low
sasl.oauthbearer.assertion.algorithm string RS256 read-only medium any-case:ES256,RS256
sasl.oauthbearer.assertion.claim.aud string - read-only medium
sasl.oauthbearer.assertion.claim.exp.seconds int 300 read-only low 0..86400
sasl.oauthbearer.assertion.claim.iss string - read-only medium
sasl.oauthbearer.assertion.claim.jti.include boolean false read-only medium
sasl.oauthbearer.assertion.claim.nbf.seconds int 60 read-only low 0..3600
sasl.oauthbearer.assertion.claim.sub string - read-only medium
sasl.oauthbearer.assertion.file string - read-only medium
sasl.oauthbearer.assertion.private.key.file string - read-only medium
sasl.oauthbearer.assertion.private.key.passphrase password - read-only medium
sasl.oauthbearer.assertion.template.file string - read-only medium
sasl.oauthbearer.client.credentials.client.id string - read-only medium
sasl.oauthbearer.client.credentials.client.secret password - read-only medium
sasl.oauthbearer.jwt.retriever.class class \
org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever read-only medium
sasl.oauthbearer.scope string - read-only medium
sasl.oauthbearer.token.endpoint.url string - read-only medium
""",
    "dead letters of share groups are written in one way": """
group.share.dlq.manager.class.name string \
org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager read-only medium internal
""",
    "share groups have no use for it": """
group.share.assignment.interval.ms int 1000 cluster-wide medium >=0
group.share.assignor.offload.enable boolean true cluster-wide medium internal
group.share.assignors list simple read-only medium list
group.share.max.assignment.interval.ms int 15000 read-only medium >=0
group.share.min.assignment.interval.ms int 0 read-only medium >=0
group.share.persister.class.name string \
org.apache.kafka.server.share.persister.DefaultStatePersister read-only medium internal
share.coordinator.append.linger.ms int -1 read-only medium >=-1
share.coordinator.cached.buffer.max.bytes int 1048588 cluster-wide medium >=524288
share.coordinator.cold.partition.snapshot.interval.ms int 300000 read-only low >=1 internal
share.coordinator.load.buffer.size int 5242880 read-only high >=1
share.coordinator.state.topic.compression.codec int 0 read-only high
share.coordinator.threads int 1 read-only medium >=1
share.fetch.purgatory.purge.interval.requests int 1000 read-only medium
""",
    "Streams groups have no use for it": """
group.streams.assignor.offload.enable boolean true cluster-wide medium internal
group.streams.assignors list sticky read-only medium list
group.streams.max.warmup.replicas int 20 read-only medium >=0 internal
group.streams.num.warmup.replicas int 2 read-only medium >=0 internal
group.streams.topology.description.plugin.class class - read-only medium
""",
    "there is no tiered storage": """
follower.fetch.last.tiered.offset.enable boolean false cluster-wide medium
log.remote.copy.lag.bytes long -1 cluster-wide medium >=-1
log.remote.copy.lag.ms long 0 cluster-wide medium >=-1
remote.fetch.max.wait.ms int 500 cluster-wide medium >=1
remote.list.offsets.request.timeout.ms long 30000 cluster-wide medium >=1
remote.log.index.file.cache.total.size.bytes long 1073741824 cluster-wide low >=1
remote.log.index.file.cache.ttl.ms long 900000 read-only low >=-1 internal
remote.log.manager.copier.thread.pool.size int 10 cluster-wide medium >=1
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 cluster-wide medium >=1
remote.log.manager.copy.quota.window.num int 11 read-only medium >=1
remote.log.manager.copy.quota.window.size.seconds int 1 read-only medium >=1
remote.log.manager.expiration.thread.pool.size int 10 cluster-wide medium >=1
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 cluster-wide medium >=1
remote.log.manager.fetch.quota.window.num int 11 read-only medium >=1
remote.log.manager.fetch.quota.window.size.seconds int 1 read-only medium >=1
remote.log.manager.follower.thread.pool.size int 2 cluster-wide medium >=1
remote.log.manager.task.interval.ms long 30000 read-only low >=1
remote.log.manager.task.retry.backoff.max.ms long 30000 read-only low >=1 internal
remote.log.manager.task.retry.backoff.ms long 500 read-only low >=1 internal
remote.log.manager.task.retry.jitter double 0.2 read-only low 0..0.5 internal
remote.log.manager.thread.pool.size int 2 read-only medium >=1
remote.log.metadata.custom.metadata.max.bytes int 128 read-only low >=0
remote.log.metadata.manager.class.name string \
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager read-only medium non-empty
remote.log.metadata.manager.class.path string - read-only medium
remote.log.metadata.manager.impl.prefix string rlmm.config. read-only medium non-empty
remote.log.metadata.manager.listener.name string - read-only medium non-empty
remote.log.reader.max.pending.tasks int 100 read-only medium >=1
remote.log.reader.threads int 10 cluster-wide medium >=1
remote.log.storage.manager.class.name string - read-only medium non-empty
remote.log.storage.manager.class.path string - read-only medium
remote.log.storage.manager.impl.prefix string rsm.config. read-only medium non-empty
remote.log.storage.system.enable boolean false read-only medium
""",
    "TLS is OpenSSL's here, not Java's": """
security.providers string - read-only low
ssl.engine.factory.class class - per-broker low
ssl.keymanager.algorithm string SunX509 per-broker medium
ssl.provider string - per-broker medium
ssl.secure.random.implementation string - per-broker low
ssl.trustmanager.algorithm string PKIX per-broker medium
""",
    "transactions do without it": """
transaction.state.log.load.buffer.size int 5242880 read-only high >=1
""",
}

NO_EFFECT_SETTINGS = {
    name: setting
    for because, table in _BY_REASON.items()
    for name, setting in read(table, on_brokers=True, because=because).items()
}
