"""The catalogue against Apache Kafka's own ConfigDefs (rules 126, 127), and its notation.

`tests/interop/test_interop_configs.py` compares all of it with a running Apache Kafka.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tanist.controller.configs.catalogue import (
    BROKER_SETTINGS,
    CLIENT_METRICS_SETTINGS,
    GROUP_SETTINGS,
    NO_EFFECT_SETTINGS,
    TOPIC_SETTINGS,
)
from tanist.controller.configs.catalogue.groups import SHARE_SETTINGS, STREAMS_SETTINGS
from tanist.controller.configs.catalogue.notation import read
from tanist.controller.configs.definitions import ConfigKey, Importance, Update

# name, type, default; read off LogConfig.configDefCopy().
KAFKA_TOPIC = """
cleanup.policy LIST delete
compression.gzip.level INT -1
compression.lz4.level INT 9
compression.type STRING producer
compression.zstd.level INT 3
delete.retention.ms LONG 86400000
errors.deadletterqueue.group.enable BOOLEAN false
file.delete.delay.ms LONG 60000
flush.messages LONG 9223372036854775807
flush.ms LONG 9223372036854775807
follower.replication.throttled.replicas LIST
index.interval.bytes INT 4096
internal.segment.bytes INT null
leader.replication.throttled.replicas LIST
local.retention.bytes LONG -2
local.retention.ms LONG -2
max.compaction.lag.ms LONG 9223372036854775807
max.decompressed.message.bytes INT 2147483639
max.message.bytes INT 1048588
message.timestamp.after.max.ms LONG 3600000
message.timestamp.before.max.ms LONG 9223372036854775807
message.timestamp.type STRING CreateTime
min.cleanable.dirty.ratio DOUBLE 0.5
min.compaction.lag.ms LONG 0
min.insync.replicas INT 1
preallocate BOOLEAN false
remote.copy.lag.bytes LONG -1
remote.copy.lag.ms LONG 0
remote.log.copy.disable BOOLEAN false
remote.log.delete.on.disable BOOLEAN false
remote.storage.enable BOOLEAN false
retention.bytes LONG -1
retention.ms LONG 604800000
segment.bytes INT 1073741824
segment.index.bytes INT 10485760
segment.jitter.ms LONG 0
segment.ms LONG 604800000
unclean.leader.election.enable BOOLEAN false
"""

# name, type, how it is updated, default; read off AbstractKafkaConfig.CONFIG_DEF and DynamicBrokerConfig.
KAFKA_BROKER = """
add.partitions.to.txn.retry.backoff.max.ms INT read-only 100
add.partitions.to.txn.retry.backoff.ms INT read-only 20
advertised.listeners LIST read-only null
authorizer.class.name STRING read-only
auto.create.topics.enable BOOLEAN read-only true
auto.leader.rebalance.enable BOOLEAN read-only true
broker.heartbeat.interval.ms INT read-only 2000
broker.id INT read-only -1
broker.rack STRING read-only null
broker.session.timeout.ms INT read-only 9000
compression.gzip.level INT cluster-wide -1
compression.lz4.level INT cluster-wide 9
compression.type STRING cluster-wide producer
compression.zstd.level INT cluster-wide 3
connection.failed.authentication.delay.ms INT read-only 100
connections.max.idle.ms LONG read-only 600000
connections.max.reauth.ms LONG read-only 0
controlled.shutdown.enable BOOLEAN read-only true
controller.listener.names LIST read-only null
controller.quorum.append.linger.ms INT read-only 25
controller.quorum.auto.join.enable BOOLEAN read-only false
controller.quorum.bootstrap.servers LIST read-only
controller.quorum.election.backoff.max.ms INT read-only 1000
controller.quorum.election.timeout.ms INT read-only 1000
controller.quorum.fetch.max.bytes INT read-only 1048576
controller.quorum.fetch.snapshot.max.bytes INT read-only 1048576
controller.quorum.fetch.timeout.ms INT read-only 2000
controller.quorum.request.timeout.ms INT read-only 2000
controller.quorum.retry.backoff.ms INT read-only 20
controller.quorum.voters LIST read-only
default.replication.factor INT read-only 1
delegation.token.expiry.check.interval.ms LONG read-only 3600000
delegation.token.expiry.time.ms LONG read-only 86400000
delegation.token.max.lifetime.ms LONG read-only 604800000
delegation.token.secret.key PASSWORD read-only null
delete.topic.enable BOOLEAN read-only true
fetch.max.bytes INT read-only 57671680
follower.replication.throttled.rate LONG cluster-wide null
group.consumer.assignors LIST read-only uniform,range
group.consumer.heartbeat.interval.ms INT read-only 5000
group.consumer.max.size INT read-only 2147483647
group.consumer.migration.policy STRING read-only bidirectional
group.consumer.session.timeout.ms INT read-only 45000
group.initial.rebalance.delay.ms INT read-only 3000
group.max.session.timeout.ms INT read-only 1800000
group.max.size INT read-only 2147483647
group.min.session.timeout.ms INT read-only 6000
initial.broker.registration.timeout.ms INT read-only 60000
inter.broker.listener.name STRING read-only null
leader.imbalance.check.interval.seconds LONG read-only 300
leader.replication.throttled.rate LONG cluster-wide null
listener.security.protocol.map STRING per-broker \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
listeners LIST per-broker PLAINTEXT://:9092
log.cleaner.backoff.ms LONG cluster-wide 15000
log.cleaner.dedupe.buffer.size LONG cluster-wide 134217728
log.cleaner.delete.retention.ms LONG cluster-wide 86400000
log.cleaner.enable BOOLEAN read-only true
log.cleaner.io.max.bytes.per.second DOUBLE cluster-wide 1.7976931348623157E308
log.cleaner.max.compaction.lag.ms LONG cluster-wide 9223372036854775807
log.cleaner.min.cleanable.ratio DOUBLE cluster-wide 0.5
log.cleaner.min.compaction.lag.ms LONG cluster-wide 0
log.cleanup.policy LIST cluster-wide delete
log.dir LIST read-only /tmp/kafka-logs
log.dir.failure.timeout.ms LONG read-only 30000
log.dirs LIST read-only null
log.flush.interval.messages LONG cluster-wide 9223372036854775807
log.flush.interval.ms LONG cluster-wide null
log.flush.offset.checkpoint.interval.ms INT read-only 60000
log.flush.scheduler.interval.ms LONG read-only 9223372036854775807
log.flush.start.offset.checkpoint.interval.ms INT read-only 60000
log.index.interval.bytes INT cluster-wide 4096
log.index.size.max.bytes INT cluster-wide 10485760
log.local.retention.bytes LONG cluster-wide -2
log.local.retention.ms LONG cluster-wide -2
log.message.timestamp.after.max.ms LONG cluster-wide 3600000
log.message.timestamp.before.max.ms LONG cluster-wide 9223372036854775807
log.message.timestamp.type STRING cluster-wide CreateTime
log.preallocate BOOLEAN cluster-wide false
log.retention.bytes LONG cluster-wide -1
log.retention.check.interval.ms LONG read-only 300000
log.retention.hours INT read-only 168
log.retention.minutes INT read-only null
log.retention.ms LONG cluster-wide null
log.roll.hours INT read-only 168
log.roll.jitter.hours INT read-only 0
log.roll.jitter.ms LONG cluster-wide null
log.roll.ms LONG cluster-wide null
log.segment.bytes INT cluster-wide 1073741824
log.segment.delete.delay.ms LONG cluster-wide 60000
max.connections INT cluster-wide 2147483647
max.connections.per.ip INT cluster-wide 2147483647
max.connections.per.ip.overrides STRING cluster-wide
max.incremental.fetch.session.cache.slots INT read-only 1000
max.request.partition.size.limit INT read-only 2000
message.max.bytes INT cluster-wide 1048588
metadata.log.dir STRING read-only null
metadata.log.max.record.bytes.between.snapshots LONG read-only 20971520
metadata.log.max.snapshot.interval.ms LONG read-only 3600000
metadata.log.segment.bytes INT read-only 1073741824
metadata.log.segment.ms LONG read-only 604800000
metadata.max.idle.interval.ms INT read-only 500
metadata.max.retention.bytes LONG read-only 104857600
metadata.max.retention.ms LONG read-only 604800000
min.insync.replicas INT cluster-wide 1
node.id INT read-only null
num.partitions INT read-only 1
num.recovery.threads.per.data.dir INT cluster-wide 2
offset.metadata.max.bytes INT read-only 4096
offsets.commit.timeout.ms INT read-only 5000
offsets.retention.check.interval.ms LONG read-only 600000
offsets.retention.minutes INT read-only 10080
offsets.topic.num.partitions INT read-only 50
offsets.topic.replication.factor SHORT read-only 3
offsets.topic.segment.bytes INT read-only 104857600
process.roles LIST read-only null
producer.id.expiration.ms INT cluster-wide 86400000
queued.max.requests INT read-only 500
replica.alter.log.dirs.io.max.bytes.per.second LONG cluster-wide null
replica.fetch.backoff.ms INT read-only 1000
replica.fetch.max.bytes INT read-only 1048576
replica.fetch.min.bytes INT read-only 1
replica.fetch.response.max.bytes INT read-only 10485760
replica.fetch.wait.max.ms INT read-only 500
replica.high.watermark.checkpoint.interval.ms LONG read-only 5000
replica.lag.time.max.ms LONG read-only 30000
replica.selector.class STRING read-only null
replica.socket.receive.buffer.bytes INT read-only 65536
replica.socket.timeout.ms INT read-only 30000
request.timeout.ms INT read-only 30000
security.inter.broker.protocol STRING read-only PLAINTEXT
sasl.enabled.mechanisms LIST per-broker GSSAPI
sasl.jaas.config PASSWORD per-broker null
sasl.mechanism.controller.protocol STRING read-only GSSAPI
sasl.mechanism.inter.broker.protocol STRING per-broker GSSAPI
sasl.oauthbearer.clock.skew.seconds INT read-only 30
sasl.oauthbearer.expected.audience LIST read-only
sasl.oauthbearer.expected.issuer STRING read-only null
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG read-only 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG read-only 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG read-only 100
sasl.oauthbearer.jwks.endpoint.url STRING read-only null
sasl.oauthbearer.jwt.validator.class CLASS read-only org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
sasl.oauthbearer.scope.claim.name STRING read-only scope
sasl.oauthbearer.sub.claim.name STRING read-only sub
sasl.server.callback.handler.class CLASS read-only null
sasl.server.max.receive.size INT read-only 524288
ssl.allow.dn.changes BOOLEAN read-only false
ssl.allow.san.changes BOOLEAN read-only false
ssl.cipher.suites LIST per-broker 
ssl.client.auth STRING per-broker none
ssl.enabled.protocols LIST per-broker TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm STRING per-broker https
ssl.key.password PASSWORD per-broker null
ssl.keystore.certificate.chain PASSWORD per-broker null
ssl.keystore.key PASSWORD per-broker null
ssl.keystore.location STRING per-broker null
ssl.keystore.password PASSWORD per-broker null
ssl.keystore.type STRING per-broker JKS
ssl.principal.mapping.rules STRING read-only DEFAULT
ssl.protocol STRING per-broker TLSv1.3
ssl.truststore.certificates PASSWORD per-broker null
ssl.truststore.location STRING per-broker null
ssl.truststore.password PASSWORD per-broker null
ssl.truststore.type STRING per-broker JKS
socket.connection.setup.timeout.ms LONG read-only 10000
socket.listen.backlog.size INT read-only 50
controller.quota.window.num INT read-only 11
controller.quota.window.size.seconds INT read-only 1
max.connection.creation.rate INT cluster-wide 2147483647
quota.window.num INT read-only 11
quota.window.size.seconds INT read-only 1
socket.receive.buffer.bytes INT read-only 102400
socket.request.max.bytes INT read-only 104857600
socket.send.buffer.bytes INT read-only 102400
telemetry.max.bytes INT read-only 1048576
transaction.abort.timed.out.transaction.cleanup.interval.ms INT read-only 10000
transaction.max.timeout.ms INT read-only 900000
transaction.partition.verification.enable BOOLEAN cluster-wide true
transaction.remove.expired.transaction.cleanup.interval.ms INT read-only 3600000
transaction.state.log.min.isr INT read-only 2
transaction.state.log.num.partitions INT read-only 50
transaction.state.log.replication.factor SHORT read-only 3
transaction.state.log.segment.bytes INT read-only 104857600
transaction.two.phase.commit.enable BOOLEAN read-only false
transactional.id.expiration.ms INT read-only 604800000
unclean.leader.election.enable BOOLEAN cluster-wide false
unclean.leader.election.interval.ms LONG read-only 300000
unstable.api.versions.enable BOOLEAN read-only false
"""

OURS = {"unclean.recovery.strategy"}
"""KIP-966's second phase, which Apache Kafka does not have."""
OURS_ON_BROKERS = OURS | {"unclean.recovery.manager.enabled", "unclean.recovery.timeout.ms"}


def _default(text: str) -> str | None:
    return None if text == "null" else text


@pytest.mark.parametrize("line", KAFKA_TOPIC.strip().splitlines())
def test_topic_setting_is_kafkas(line: str) -> None:
    name, kind, default = (*line.split(" ", 2), "")[:3]
    setting = TOPIC_SETTINGS[name]
    assert (setting.type.name, setting.default) == (kind, _default(default))


@pytest.mark.parametrize("line", KAFKA_BROKER.strip().splitlines())
def test_broker_setting_is_kafkas(line: str) -> None:
    name, kind, update, default = (*line.split(" ", 3), "")[:4]
    setting = BROKER_SETTINGS[name]
    assert (setting.type.name, setting.update.value, setting.default) == (kind, update, _default(default))


def test_every_other_topic_name_is_kip_966s_or_says_that_it_is_ours() -> None:
    listed = {line.split(" ")[0] for line in KAFKA_TOPIC.strip().splitlines()}
    assert {name for name in set(TOPIC_SETTINGS) - listed if not name.startswith("tanist.")} == OURS


def test_every_name_that_something_here_obeys_is_kafkas_or_ours() -> None:
    listed = {line.split(" ")[0] for line in KAFKA_BROKER.strip().splitlines()}
    others = {name for name, setting in BROKER_SETTINGS.items() if setting.has_effect and name not in listed}
    bounds = {
        f"group.consumer.{end}.{what}.ms"
        for end in ("min", "max")
        for what in ("heartbeat.interval", "session.timeout")
    }
    later = (SHARE_SETTINGS.keys() | STREAMS_SETTINGS.keys()) - listed
    assert {name for name in others if not name.startswith("tanist.")} == OURS_ON_BROKERS | bounds | later
    parts = ("group.share.", "share.coordinator.", "group.streams.", "errors.deadletterqueue.")
    assert all(name.startswith(parts) for name in later)


def test_what_only_simulations_and_tests_set_is_not_described() -> None:
    hidden = {name for name, setting in BROKER_SETTINGS.items() if setting.internal and setting.has_effect}
    assert {name for name in hidden if name.startswith("tanist.")} == {
        "tanist.metadata.turn.records.max",
        "tanist.new.logs.pause.ms",
        "tanist.new.logs.turn.max",
        "tanist.private.requests.enable",
        "tanist.transactional.first.epoch",
    }


@pytest.mark.parametrize(
    "setting",
    [
        *TOPIC_SETTINGS.values(),
        *BROKER_SETTINGS.values(),
        *GROUP_SETTINGS.values(),
        *CLIENT_METRICS_SETTINGS.values(),
    ],
    ids=lambda s: s.name,
)
def test_default_passes_its_own_check(setting: ConfigKey) -> None:
    if setting.default is not None:
        setting.parse(setting.default)
    assert setting.doc.endswith(".")
    assert "\n" not in setting.doc


@pytest.mark.parametrize("setting", [*TOPIC_SETTINGS.values(), *GROUP_SETTINGS.values()], ids=lambda s: s.name)
def test_setting_falls_back_to_broker_settings_that_exist(setting: ConfigKey) -> None:
    for synonym in setting.synonyms:
        BROKER_SETTINGS[synonym.name]
    own_default = setting.default
    defaults = [BROKER_SETTINGS[s.name].default for s in setting.synonyms]
    # One of the fallbacks has the same default in its own unit, or none has any.
    assert not any(defaults) or own_default in [
        s.convert(d) for s, d in zip(setting.synonyms, defaults, strict=True) if d is not None
    ]


def test_what_has_no_effect_says_so_and_why() -> None:
    for name in (
        "ssl.keymanager.algorithm",
        "num.io.threads",
        "group.streams.num.warmup.replicas",
        "num.replica.alter.log.dirs.threads",
    ):
        setting = BROKER_SETTINGS[name]
        assert not setting.has_effect
        assert "has no effect in tanist" in setting.doc
    assert "TLS is OpenSSL's here" in BROKER_SETTINGS["ssl.keymanager.algorithm"].doc
    assert TOPIC_SETTINGS["preallocate"].doc.startswith("Allocate")
    assert BROKER_SETTINGS["min.insync.replicas"].has_effect


def test_the_gaps_name_what_has_no_effect_though_its_part_is_there() -> None:
    gaps = (Path(__file__).parents[3] / "GAPS.md").read_text()
    settings = {**BROKER_SETTINGS, **TOPIC_SETTINGS, **GROUP_SETTINGS}
    for name, setting in settings.items():
        in_a_part_that_is_not_there = "there is no" in setting.doc or "there are no" in setting.doc
        if not setting.has_effect and name not in NO_EFFECT_SETTINGS and not in_a_part_that_is_not_there:
            assert f"`{name}`" in gaps, name


def test_the_notation() -> None:
    table = """
a.b int - per-broker high 1..9|-1
    How many
    there are.
c.d list "" read-only low each:x,y internal
"""
    first, second = read(table, on_brokers=True).values()
    assert (first.name, first.default, first.update, first.importance) == (
        "a.b",
        None,
        Update.PER_BROKER,
        Importance.HIGH,
    )
    assert first.doc == "How many there are."
    assert first.check is not None
    assert first.check(0) == "Value must be between 1 and 9 or equal to -1"
    assert (second.default, second.internal, second.has_effect) == ("", True, True)
    (topic,) = read("e long 7 medium >=1 no-effect from:f,g*60", because=None).values()
    assert [(each.name, each.factor) for each in topic.synonyms] == [("f", 1), ("g", 60)]
    assert (topic.has_effect, topic.update) == (False, Update.CLUSTER_WIDE)


@pytest.mark.parametrize("line", ["a int 1 medium >=1 >=2", "a int 1 medium =1", "a number 1 medium", "a int 1 some"])
def test_a_table_that_makes_no_sense_is_refused(line: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        read(line)
