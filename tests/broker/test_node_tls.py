"""TLS in a cluster of the simulator: who gets in as whom, between nodes too, and certificates that are exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tanist.broker.config import NodeConfig
from tanist.broker.endpoints import ConfigError
from tanist.broker.metadata.tls_profiles import covers
from tanist.broker.metrics.scrape import scrape
from tanist.controller.configs.settings import BROKER_RESOURCE
from tanist.events.event import Event
from tanist.events.process import (
    AdvertisedHostNotInCertificate,
    CertificateExpires,
    CertificateRefused,
    CertificateTaken,
    MalformedRequest,
)
from tanist.sim.world.world import CONTROLLER_PORT
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.cluster_rig import Cluster
from tests.broker.prometheus_text import parse

TLS_EVERYWHERE: Mapping[str, str] = {
    "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
    "ssl.keystore.location": "/node.pem",
    "ssl.client.auth": "required",
}


def test_a_cluster_with_certificates_everywhere_outlives_a_node() -> None:
    cluster = Cluster(config=TLS_EVERYWHERE, tls=True)
    cluster.create_topic("t")
    cluster.produce("t", [b"one"])
    leader = cluster.leader("t")
    assert leader is not None
    cluster.host(leader).kill()
    cluster.until(lambda: cluster.leader("t") not in (None, leader, -1))
    cluster.produce("t", [b"two"])
    assert cluster.values("t") == [b"one", b"two"]
    taken = cluster.seen(CertificateTaken)
    shown = {(each.listener, each.subject) for each in taken}
    assert shown == {(name, f"CN=node{node_id}") for name in ("PLAINTEXT", "CONTROLLER") for node_id in (1, 2, 3)}


@pytest.mark.parametrize(
    ("more", "principal"),
    [
        ({}, "User:CN=alice"),
        ({"ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U"}, "User:ALICE"),
        ({"listener.name.PLAINTEXT.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/x-$1/,DEFAULT"}, "User:x-alice"),
        ({"ssl.client.auth": "requested"}, "User:CN=alice"),
        ({"ssl.client.auth": "none"}, "User:ANONYMOUS"),
    ],
)
def test_who_a_client_is(more: Mapping[str, str], principal: str) -> None:
    cluster = Cluster(nodes=1, config={**TLS_EVERYWHERE, **more}, tls=True)
    assert cluster.asked_by(None, tls=True, name="alice") == principal


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "lacks User:CN=node1, which this node is to the others by listener PLAINTEXT (SSL): "),
        ({"ssl.client.auth": "none"}, ", or set listener.name.plaintext.ssl.client.auth=required"),
    ],
)
def test_a_node_whose_certificate_names_no_super_user_does_not_start(more: Mapping[str, str], says: str) -> None:
    authorizer = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    cluster = Cluster(nodes=1, config={**TLS_EVERYWHERE, **authorizer, "super.users": "User:CN=node1"}, tls=True)
    host = cluster.host(1)
    host.properties.update({**more, "super.users": "User:CN=node9"})
    host.kill()
    host.start()
    assert host.node is None or not host.up
    assert any("super.users lacks " in line and says in line for line in cluster.log)


def test_a_name_that_no_rule_takes_does_not_get_in() -> None:
    rules = "RULE:^CN=(node.*|client)$/$1/"
    cluster = Cluster(nodes=1, config={**TLS_EVERYWHERE, "ssl.principal.mapping.rules": rules}, tls=True)
    assert cluster.asked_by(None, tls=True, name="client-9") is None
    (refused,) = cluster.seen(MalformedRequest)
    assert "No rules apply to CN=client-9" in refused.problem


def test_certificates_that_nobody_accepts_and_clients_without_tls_do_not_get_in() -> None:
    cluster = Cluster(nodes=1, config=TLS_EVERYWHERE, tls=True)
    cluster.world.network.certificates.distrusted.add("mallory")
    assert cluster.asked_by(None, tls=True, name="mallory") is None
    assert cluster.asked_by(None, name="plain") is None
    assert cluster.asked_by(None, name="plain-2", port=CONTROLLER_PORT) is None
    assert cluster.asked_by(None, tls=True, name="alice") == "User:CN=alice"


def test_a_tls_client_at_a_listener_without_it_is_named() -> None:
    cluster = Cluster(nodes=1)
    assert cluster.asked_by(None, tls=True, name="alice") is None
    (refused,) = cluster.seen(MalformedRequest)
    assert refused.problem == "a TLS client came to a port without TLS, to listener PLAINTEXT"


def altered(cluster: Cluster, name: str, value: str) -> Any:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="1", configs=(config,))
    (response,) = cluster.ask(IncrementalAlterConfigsRequest(resources=(resource,)), 1).responses
    return response


def test_a_certificate_is_exchanged_by_alter_configs() -> None:
    cluster = Cluster(nodes=1, config=TLS_EVERYWHERE, tls=True)
    certificates = cluster.world.network.certificates
    certificates.unreadable.add("/broken.pem")
    name = "listener.name.plaintext.ssl.keystore.location"
    refused = altered(cluster, name, "/broken.pem")
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message == (
        "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of "
        "SSLFactory failed: ssl.keystore.location=/broken.pem cannot be read for configuration Invalid dynamic "
        "configuration"
    )
    taken = len(cluster.seen(CertificateTaken))
    certificates.subjects["node1"] = "CN=renewed"
    assert altered(cluster, name, "/new.pem").error_code == 0
    cluster.until(lambda: len(cluster.seen(CertificateTaken)) == taken + 1)
    assert cluster.seen(CertificateTaken)[-1].subject == "CN=renewed"
    # The same value again: the file has changed.
    assert altered(cluster, name, "/new.pem").error_code == 0
    cluster.until(lambda: len(cluster.seen(CertificateTaken)) == taken + 2)
    # What can no more be read after it was accepted leaves the present one in place.
    assert altered(cluster, "listener.name.plaintext.ssl.client.auth", "requested").error_code == 0
    cluster.until(lambda: len(cluster.seen(CertificateTaken)) == taken + 3)
    certificates.unreadable.add("/new.pem")
    cluster.host(1).kill()
    cluster.host(1).start()
    cluster.until(lambda: bool(cluster.seen(CertificateRefused)))
    assert cluster.seen(CertificateRefused)[0].listener == "PLAINTEXT"
    cluster.until(cluster.world.ready)
    assert cluster.asked_by(None, tls=True, name="alice") == "User:CN=alice"


def test_no_key_is_shown_by_a_description() -> None:
    cluster = Cluster(nodes=1, config=TLS_EVERYWHERE, tls=True)
    names = ("ssl.keystore.key", "ssl.key.password", "ssl.truststore.password")
    for name in names:
        assert altered(cluster, f"listener.name.plaintext.{name}", "hidden-secret").error_code == 0
    request = DescribeConfigsRequest(
        resources=(DescribeConfigsResource(resource_type=BROKER_RESOURCE, resource_name="1"),), include_synonyms=True
    )
    (result,) = cluster.ask(request, 4).results
    shown = {each.name: each for each in result.configs}
    for name in names:
        entry = shown[f"listener.name.plaintext.{name}"]
        assert (entry.value, entry.is_sensitive) == (None, True)
    assert "hidden-secret" not in repr(result)
    assert "hidden-secret" not in "".join(cluster.log) + repr(cluster.seen(Event))


def test_an_advertised_host_that_the_certificate_does_not_name_is_warned_of() -> None:
    more = {"advertised.listeners": "PLAINTEXT://elsewhere.example:9092"}
    cluster = Cluster(nodes=1, config=TLS_EVERYWHERE, per_node={1: more})
    (warned,) = cluster.seen(AdvertisedHostNotInCertificate)
    assert (warned.listener, warned.host, warned.names) == ("PLAINTEXT", "elsewhere.example", ("node1",))


@pytest.mark.parametrize(
    ("names", "host", "covered"),
    [
        (("a.example",), "A.example", True),
        (("*.example",), "a.example", True),
        (("*.example",), "a.b.example", False),
        (("*.example",), "example", False),
        (("10.0.0.1", "::1"), "::1", True),
        ((), "localhost", False),
    ],
)
def test_which_hosts_a_certificate_covers(names: tuple[str, ...], host: str, covered: bool) -> None:
    assert covers(names, host) is covered


BASE = {
    "process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER",
    "listeners": "SSL://h:9092,CONTROLLER://h:9093", "listener.security.protocol.map": "SSL:SSL,CONTROLLER:SSL",
    "controller.quorum.voters": "1@h:9093", "log.dirs": "/data", "inter.broker.listener.name": "SSL",
}  # fmt: skip


def test_profiles_of_a_node() -> None:
    config = NodeConfig.from_properties(BASE)
    assert config.tls.profiles == ("SSL", "CONTROLLER")
    assert (config.tls.to_brokers, config.tls.to_controllers) == ("SSL", "CONTROLLER")
    assert config.warnings == ()
    controller = {**BASE, "process.roles": "controller", "listeners": "CONTROLLER://h:9093"}
    del controller["inter.broker.listener.name"]
    tls = NodeConfig.from_properties(controller).tls
    assert (tls.profiles, tls.to_brokers) == (("CONTROLLER",), "CONTROLLER")
    plain = {**BASE, "listener.security.protocol.map": "SSL:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    assert NodeConfig.from_properties(plain).tls.profiles == ()
    with pytest.raises(ConfigError, match="Invalid rule"):
        NodeConfig.from_properties({**BASE, "ssl.principal.mapping.rules": "nonsense"})


def test_a_certificate_that_expires_soon_is_warned_of_each_day() -> None:
    cluster = Cluster(nodes=1, config=TLS_EVERYWHERE, tls=True)
    assert cluster.seen(CertificateExpires) == []
    wall_ms = cluster.node(1).context.clock.wall_ms()
    cluster.world.network.certificates.expires_ms = wall_ms + 36 * 3_600_000
    cluster.host(1).kill()
    cluster.host(1).start()
    cluster.until(lambda: len(cluster.seen(CertificateExpires)) == 2)
    assert {each.listener for each in cluster.seen(CertificateExpires)} == {"PLAINTEXT", "CONTROLLER"}
    assert all(0 < each.left_ms <= 36 * 3_600_000 for each in cluster.seen(CertificateExpires))
    cluster.host(1).kill()
    cluster.world.network.certificates.expires_ms = wall_ms - 1
    cluster.host(1).start()
    cluster.until(lambda: len(cluster.seen(CertificateExpires)) == 4)
    assert cluster.seen(CertificateExpires)[-1].left_ms <= 0


def test_what_is_taken_and_what_expires_while_the_node_runs_is_said_then() -> None:
    cluster = Cluster(nodes=1, config=TLS_EVERYWHERE, tls=True)
    clock = cluster.node(1).context.clock
    cluster.run(3_600_000)
    cluster.world.network.certificates.expires_ms = clock.wall_ms() + 60_000
    assert altered(cluster, "listener.name.plaintext.ssl.keystore.location", "/new.pem").error_code == 0
    cluster.run(20_000)
    (soon,) = cluster.seen(CertificateExpires)
    assert (soon.listener, 0 < soon.left_ms <= 60_000) == ("PLAINTEXT", True)
    cluster.run(60_000)
    (_, ended) = cluster.seen(CertificateExpires)
    assert (ended.listener, -1_000 < ended.left_ms <= 0) == ("PLAINTEXT", True)
    cluster.run(3_600_000)
    assert len(cluster.seen(CertificateExpires)) == 2, "once a day"


def test_when_certificates_expire_is_a_metric() -> None:
    cluster = Cluster(nodes=1, config=TLS_EVERYWHERE, tls=True)
    cluster.world.network.certificates.expires_ms = 1_800_000_000_000
    assert altered(cluster, "listener.name.plaintext.ssl.keystore.location", "/new.pem").error_code == 0
    cluster.until(lambda: cluster.seen(CertificateTaken)[-1].expires_ms == 1_800_000_000_000)
    shown = parse(scrape(cluster.node(1).components).render())["tanist_certificate_expires_seconds"].samples
    assert shown[(("listener", "PLAINTEXT"),)] == 1_800_000_000
    assert set(shown) == {(("listener", name),) for name in ("PLAINTEXT", "CONTROLLER")}
