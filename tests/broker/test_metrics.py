"""The metrics of nodes in a cluster: what they say of it in good times and bad."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.broker.counters import WINDOW_MS, Latency
from tanist.broker.metrics.catalog import (
    BROKER_METRICS,
    CONTROLLER_METRICS,
    DEFINITIONS,
    NODE_METRICS,
    PARTITION_METRICS,
    PROCESS_METRICS,
)
from tanist.broker.metrics.definition import Definition, Kind
from tanist.broker.metrics.node import queues
from tanist.broker.metrics.scrape import scrape, scrape_partitions
from tanist.broker.metrics.text import Exposition
from tanist.client.admin import ElectionType, elect_request
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tests.broker.cluster_rig import TLS_BETWEEN_CONTROLLERS, Cluster
from tests.broker.groups_rig import Client, groups_cluster
from tests.broker.prometheus_text import parse
from tests.broker.transactions_rig import TransactionalProducer

DOCS = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
REPLICAS = "kafka_server_replicamanager_"
TRAFFIC = "kafka_server_brokertopicmetrics_"
CONTROLLER = "kafka_controller_kafkacontroller_"
STATS = "kafka_controller_controllerstats_"
UNDER_MIN_ISR = "kafka_controller_global_under_min_isr_partition_count"

RECOVERING = "kafka_controller_unclean_recovery_partitions_count"
RECOVERED = "kafka_controller_unclean_recovery_finished_count"
MANUAL = "kafka_controller_manual_leader_election_required_partition_count"


def value(cluster: Cluster, node_id: int, name: str, **labels: str) -> float:
    samples = parse(scrape(cluster.node(node_id).components).render())[name].samples
    return samples[tuple(labels.items())]


def total(cluster: Cluster, name: str, **labels: str) -> float:
    return sum(value(cluster, node.node_id, name, **labels) for node in cluster.world.nodes())


def until_seen(cluster: Cluster, condition: Callable[[], bool], within_ms: int = 30_000) -> None:
    """Looks each 50 ms of virtual time: to render all metrics after each event is most of what such a test computes."""
    for _ in range(within_ms // 50):
        if condition():
            return
        cluster.run(50)
    raise AssertionError("it does not come true")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(
        config={"min.insync.replicas": "2", "tanist.client.metrics.enable": "true", **TLS_BETWEEN_CONTROLLERS}
    )


def five(**config: str) -> Cluster:
    """Five controllers, so that two brokers may die and the rest decides; the topic lies on 4 and 5."""
    settings = {"min.insync.replicas": "2"} | {name.replace("_", "."): value for name, value in config.items()}
    cluster = Cluster(nodes=5, config=settings)
    cluster.create_topic("t", assignment=[[4, 5]])
    assert cluster.produce("t", [b"x"]).error_code == 0
    return cluster


# -- the format and the names -----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.text(max_size=20), st.integers() | st.floats(-1e300, 1e300)), unique_by=lambda s: s[0]))
def test_any_label_and_value_can_be_reported(samples: list[tuple[str, float]]) -> None:
    out = Exposition()
    for label, number in samples:
        out.add("tanist_queue_depth", number, label)
    families = parse(out.render())
    found = families["tanist_queue_depth"].samples if samples else {}
    assert found == {(("queue", label),): pytest.approx(float(number)) for label, number in samples}


def test_a_metric_that_is_not_in_the_catalog_is_a_mistake() -> None:
    out = Exposition()
    with pytest.raises(KeyError):
        out.add("kafka_no_such_thing", 1)
    with pytest.raises(ValueError, match="labels"):
        out.add("tanist_queue_depth", 1)


def test_names_tell_counters_from_gauges() -> None:
    for definition in DEFINITIONS.values():
        if definition.kind is Kind.GAUGE:
            assert not definition.name.endswith("_total"), definition
        else:
            # The JMX exporter's and the KIP's own names, where they are not Prometheus' custom.
            assert definition.name.endswith(("_total", "_count", "_sum", "_newactivecontrollerscount")), definition
        assert definition.help.endswith("."), definition


def test_everything_in_the_catalog_is_reported_and_nothing_else(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.produce("t", [b"x"])
    reported: set[str] = set()
    for node in cluster.world.nodes():
        reported |= parse(scrape(node.components).render()).keys()
    assert reported == {each.name for each in (*BROKER_METRICS, *CONTROLLER_METRICS, *NODE_METRICS)}
    single: set[str] = set()
    for node in cluster.world.nodes():
        single |= parse(scrape_partitions(node.components).render()).keys()
    assert single == {each.name for each in PARTITION_METRICS}


def documented(group: tuple[Definition, ...]) -> str:
    """The metrics of a group, as docs/metrics.md has them: Kafka's own are listed, the others are explained."""
    kafkas = [each for each in group if each.kafka and not each.kafka.endswith("(KIP-966)")]
    ours = [each for each in group if each not in kafkas]
    listed = f"Kafka's: {', '.join(map(_shown, kafkas))}.\n" if kafkas else ""
    explained = "".join(f"* {_shown(each)}: {each.help}\n" for each in ours)
    return listed + ("\n" if listed and explained else "") + explained


def _shown(metric: Definition) -> str:
    evident = metric.name.endswith(("_total", "_sum"))
    counter = " (counter)" if metric.kind is Kind.COUNTER and not evident else ""
    return f"`{metric.name}{'{' + ', '.join(metric.labels) + '}' if metric.labels else ''}`{counter}"


def test_kafkas_name_follows_from_prometheus_name_as_the_documentation_says() -> None:
    of_kip_966 = [each for each in DEFINITIONS.values() if each.kafka.endswith("(KIP-966)")]
    assert len(of_kip_966) == 5
    for each in DEFINITIONS.values():
        if each.name.startswith("kafka_") and each not in of_kip_966:
            found = re.match(r"([\w.]+):type=([\w-]+)(?:.* |,)(?:name=)?([\w-]+)", each.kafka)
            assert found, each
            expected = re.sub(r"\W", "", "".join(found.groups())).lower()
            ending = each.name.replace("_", "").removeprefix(expected.removesuffix("persec"))
            assert ending in ("", "count", "sum", "total"), each
            assert expected.endswith("persec") <= (ending == "total"), each
        else:
            assert each in of_kip_966 or (not each.kafka and each.name.startswith(("tanist_", "process_"))), each


@pytest.mark.parametrize(
    "group", [BROKER_METRICS, CONTROLLER_METRICS, NODE_METRICS, PROCESS_METRICS, PARTITION_METRICS]
)
def test_the_documentation_has_the_catalogs_tables(group: tuple[Definition, ...]) -> None:
    assert documented(group) in DOCS.read_text(encoding="utf-8"), documented(group)


# -- replicas and traffic ---------------------------------------------------------------------------------------------


def test_a_cluster_in_good_order(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]])
    assert [value(cluster, node, REPLICAS + "partitioncount") for node in (1, 2, 3)] == [4, 4, 4]
    assert [value(cluster, node, REPLICAS + "leadercount") for node in (1, 2, 3)] == [2, 1, 1]
    for name in ("underminisrpartitioncount", "atminisrpartitioncount", "underreplicatedpartitions"):
        assert total(cluster, REPLICAS + name) == 0
    assert total(cluster, CONTROLLER + "activecontrollercount") == 1
    for node in (1, 2, 3):
        assert value(cluster, node, "kafka_server_kafkaserver_brokerstate") == 3
        assert value(cluster, node, CONTROLLER + "globaltopiccount") == 1
        assert value(cluster, node, CONTROLLER + "globalpartitioncount") == 4
        assert value(cluster, node, CONTROLLER + "activebrokercount") == 3
        assert value(cluster, node, CONTROLLER + "brokerregistrationstate", broker=str(node)) == 30
        assert value(cluster, node, CONTROLLER + "preferredreplicaimbalancecount") == 0
        assert value(cluster, node, "kafka_controller_electable_leaders_count") == 12
        by_count = "tanist_controller_partitions_by_electable_leaders"
        assert value(cluster, node, by_count, electable="3") == 4


def test_records_and_bytes_are_counted_where_they_pass(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    for _ in range(3):
        cluster.produce("t", [b"x"] * 10)
    cluster.until(lambda: all(hosted.log.log_end_offset == 30 for hosted in cluster.hosted("t").values()))
    size = cluster.hosted("t")[1].log.size_bytes
    assert [value(cluster, node, TRAFFIC + "messagesin_total") for node in (1, 2, 3)] == [30, 0, 0]
    assert [value(cluster, node, TRAFFIC + "bytesin_total") for node in (1, 2, 3)] == [size, 0, 0]
    assert [value(cluster, node, TRAFFIC + "replicationbytesin_total") for node in (1, 2, 3)] == [0, size, size]
    assert [value(cluster, node, TRAFFIC + "replicationbytesout_total") for node in (1, 2, 3)] == [2 * size, 0, 0]
    assert value(cluster, 1, TRAFFIC + "totalproducerequests_total") == 3
    assert value(cluster, 1, "kafka_network_requestmetrics_requests_total", request="Produce") == 3
    reported = [
        parse(scrape(node.components).render())["kafka_network_requestmetrics_requests_total"]
        for node in cluster.world.nodes()
    ]
    assert sum(family.samples.get((("request", "CreateTopics"),), 0) for family in reported) >= 1

    cluster.until(lambda: cluster.hosted("t")[1].replica.high_watermark == 30)
    failed = value(cluster, 1, TRAFFIC + "failedfetchrequests_total")
    assert cluster.fetch("t").error_code == 0
    assert value(cluster, 1, TRAFFIC + "bytesout_total") == size
    assert value(cluster, 1, TRAFFIC + "failedfetchrequests_total") == failed
    assert cluster.fetch("t", 999).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert value(cluster, 1, TRAFFIC + "failedfetchrequests_total") == failed + 1
    assert cluster.produce("t", [b"x"], to=2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert value(cluster, 2, TRAFFIC + "failedproducerequests_total") == 1


def test_records_of_a_leadership_that_has_ended_stay_counted(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.produce("t", [b"x"] * 10)
    cluster.host(1).stop(lambda: None)
    cluster.until(lambda: cluster.leader("t") in (2, 3) and not cluster.host(1).up)
    second = cluster.leader("t")
    assert second is not None
    cluster.produce("t", [b"x"] * 5)
    assert value(cluster, second, TRAFFIC + "messagesin_total") == 5
    cluster.host(1).start()
    cluster.until(lambda: len(cluster.hosted("t")) == 3 and len(cluster.hosted("t")[second].leader.isr) == 3)
    assert cluster.ask(elect_request(ElectionType.PREFERRED, "t"), 2, to=2).error_code == 0
    cluster.until(lambda: cluster.leader("t") == 1)
    cluster.until(lambda: cluster.hosted("t")[second].leader is None)
    cluster.produce("t", [b"x"] * 2)
    assert value(cluster, second, TRAFFIC + "messagesin_total") == 5
    assert value(cluster, 1, TRAFFIC + "messagesin_total") == 2  # a new process, which counts from 0


def test_what_waits_is_reported(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    until_seen(
        cluster, lambda: value(cluster, 1, purgatory, delayedOperation="Fetch") == 2
    )  # the followers' long polls
    assert value(cluster, 1, purgatory, delayedOperation="Produce") == 0
    for node in (2, 3):
        cluster.host(node).freeze()
    assert cluster.produce("t", [b"x"], timeout_ms=200).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert value(cluster, 1, "kafka_server_delayedproducemetrics_expires_total") == 1
    depths = {name: depth for name, depth, _ in queues(cluster.node(1).components)}
    assert depths["metadata_uncommitted"] >= 0
    bounds = {name: bound for name, _, bound in queues(cluster.node(1).components)}
    assert bounds["unanswered_requests"] == 256
    assert value(cluster, 1, "tanist_queue_limit", queue="controller_pending") == 10_000


def test_the_lag_of_a_follower_is_what_its_leader_has_committed_beyond_its_log(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    for _ in range(3):
        cluster.produce("t", [b"x"])
    follower = cluster.hosted("t")[2]
    cluster.until(lambda: follower.leader_high_watermark == 3)
    lag = "kafka_server_replicafetchermanager_maxlag"
    assert value(cluster, 2, lag, clientId="Replica") == 0
    follower.leader_high_watermark += 7
    assert value(cluster, 2, lag, clientId="Replica") == 7
    single = parse(scrape_partitions(cluster.node(2).components).render())[
        "kafka_server_fetcherlagmetrics_consumerlag"
    ].samples
    assert single == {(("clientId", "ReplicaFetcherThread-0-1"), ("topic", "t"), ("partition", "0")): 7}


def test_each_replica_by_itself(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3], [2, 3, 1]])
    cluster.produce("t", [b"x"] * 3)
    families = parse(scrape_partitions(cluster.node(1).components).render())
    first, second = (("topic", "t"), ("partition", "0")), (("topic", "t"), ("partition", "1"))
    assert families["kafka_cluster_partition_insyncreplicascount"].samples == {first: 3}
    assert families["kafka_log_log_logendoffset"].samples == {first: 3, second: 0}
    assert families["tanist_partition_electable_leaders"].samples == {first: 3, second: 3}


def test_malformed_requests(cluster: Cluster) -> None:
    before = value(cluster, 1, "tanist_malformed_requests_total")
    cluster.node(1).components.connections.malformed_request("a client", "nonsense")
    assert value(cluster, 1, "tanist_malformed_requests_total") == before + 1


# -- degraded ---------------------------------------------------------------------------------------------------------


def test_isrs_below_their_minimum() -> None:
    cluster = five()
    expands = value(cluster, 4, REPLICAS + "isrexpands_total")
    cluster.host(5).kill()
    until_seen(cluster, lambda: value(cluster, 4, REPLICAS + "underminisrpartitioncount") == 1)
    assert value(cluster, 4, REPLICAS + "underreplicatedpartitions") == 1
    assert value(cluster, 4, REPLICAS + "atminisrpartitioncount") == 0
    for node in (1, 2, 3, 4):
        cluster.until(lambda node=node: value(cluster, node, UNDER_MIN_ISR) == 1)  # type: ignore[misc]
        assert value(cluster, node, CONTROLLER + "fencedbrokercount") == 1
        assert value(cluster, node, CONTROLLER + "brokerregistrationstate", broker="5") == 10
        # ISR [4] and ELR [5]: as many electable leaders as before.
        assert value(cluster, node, "kafka_controller_electable_leaders_count") == 2
    assert value(cluster, 4, REPLICAS + "isrshrinks_total") == 1
    cluster.host(5).start()
    until_seen(cluster, lambda: value(cluster, 4, REPLICAS + "underminisrpartitioncount") == 0)
    assert value(cluster, 4, REPLICAS + "isrexpands_total") == expands + 1
    until_seen(cluster, lambda: value(cluster, 4, REPLICAS + "atminisrpartitioncount") == 1)
    until_seen(cluster, lambda: value(cluster, 1, UNDER_MIN_ISR) == 0)


def test_an_election_from_the_elr_is_a_clean_one() -> None:
    cluster = five()
    before = {node: value(cluster, node, STATS + "leaderelectionrateandtimems_count") for node in (1, 2, 3)}
    cluster.host(5).kill()
    until_seen(cluster, lambda: value(cluster, 4, REPLICAS + "underminisrpartitioncount") == 1)
    cluster.host(4).stop(lambda: None)
    cluster.until(lambda: value(cluster, 1, CONTROLLER + "offlinepartitionscount") == 1 and not cluster.host(4).up)
    assert total(cluster, MANUAL) == 0
    cluster.host(4).start()
    cluster.until(lambda: cluster.leader("t") == 4)
    for node in (1, 2, 3):
        cluster.until(
            lambda node=node: value(cluster, node, STATS + "electionfromeligibleleaderreplicas_total") == 1  # type: ignore[misc]
        )
        assert value(cluster, node, STATS + "uncleanleaderelections_total") == 0
        assert value(cluster, node, STATS + "leaderelectionrateandtimems_count") >= before[node] + 1
        assert value(cluster, node, CONTROLLER + "offlinepartitionscount") == 0
    assert total(cluster, RECOVERED) == 0


def all_lost(cluster: Cluster) -> None:
    """Both replicas have lost power: ISR and ELR are empty, and LastKnownElr has both once they are back."""
    cluster.host(5).lose_power()
    until_seen(cluster, lambda: value(cluster, 1, UNDER_MIN_ISR) == 1)
    cluster.host(4).lose_power()
    until_seen(cluster, lambda: value(cluster, 1, CONTROLLER + "offlinepartitionscount") == 1)


def test_an_unclean_recovery_is_counted_while_it_waits_and_when_it_is_done() -> None:
    cluster = five()
    all_lost(cluster)
    assert total(cluster, RECOVERING) == 0  # an ELR that may return is waited for, and is no recovery
    cluster.host(4).start()
    until_seen(
        cluster, lambda: total(cluster, RECOVERING) == 0 and value(cluster, 1, CONTROLLER + "fencedbrokercount") == 1
    )
    cluster.host(5).start()
    until_seen(cluster, lambda: total(cluster, RECOVERED) == 1, within_ms=60_000)
    cluster.until(lambda: cluster.leader("t") in (4, 5))
    assert total(cluster, RECOVERING) == 0
    for node in (1, 2, 3):
        cluster.until(lambda node=node: value(cluster, node, STATS + "uncleanleaderelections_total") == 1)  # type: ignore[misc]
    assert total(cluster, MANUAL) == 0


def test_a_partition_that_waits_for_last_known_members_is_under_recovery() -> None:
    cluster = five()
    all_lost(cluster)
    cluster.host(4).start()
    image = cluster.node(1).metadata.image
    cluster.until(lambda: image.topics[image.topic_ids["t"]].partitions[0].elr == (5,))
    cluster.host(4).kill()
    cluster.host(5).start()
    # 5 may lack records, and so may 4, which is not there to be asked (KIP-966 4b).
    until_seen(cluster, lambda: total(cluster, RECOVERING) == 1)
    cluster.run(5_000)
    assert (total(cluster, RECOVERING), total(cluster, RECOVERED), total(cluster, MANUAL)) == (1, 0, 0)
    cluster.host(4).start()
    until_seen(cluster, lambda: total(cluster, RECOVERED) == 1)
    assert total(cluster, RECOVERING) == 0


def test_strategy_none_waits_for_an_operator() -> None:
    cluster = five(unclean_recovery_strategy="None")
    all_lost(cluster)
    for node in (4, 5):
        cluster.host(node).start()
    until_seen(cluster, lambda: total(cluster, MANUAL) == 1)
    cluster.run(5_000)
    assert (total(cluster, MANUAL), total(cluster, RECOVERING), total(cluster, RECOVERED)) == (1, 0, 0)
    answer = cluster.ask(elect_request(ElectionType.DESIGNATION, "t", desired=(5,)), 3)
    assert answer.replica_election_results[0].partition_result[0].error_code == 0
    cluster.until(lambda: cluster.leader("t") == 5)
    until_seen(cluster, lambda: total(cluster, MANUAL) == 0)


def test_counters_do_not_count_history_again() -> None:
    cluster = five()
    cluster.host(5).kill()
    until_seen(cluster, lambda: value(cluster, 1, UNDER_MIN_ISR) == 1)
    cluster.host(5).start()
    until_seen(cluster, lambda: value(cluster, 1, UNDER_MIN_ISR) == 0)
    for _ in range(3):
        victim = cluster.leader("t")
        assert victim is not None
        cluster.host(victim).kill()
        cluster.until(lambda victim=victim: cluster.leader("t") not in (None, victim))  # type: ignore[misc]
        cluster.host(victim).start()
        until_seen(cluster, lambda: value(cluster, 1, UNDER_MIN_ISR) == 0)
    assert value(cluster, 1, STATS + "leaderelectionrateandtimems_count") >= 3
    cluster.host(1).kill()
    cluster.run(100)
    cluster.host(1).start()
    cluster.until(cluster.world.ready)
    assert value(cluster, 1, STATS + "leaderelectionrateandtimems_count") == 0
    assert value(cluster, 1, CONTROLLER + "lastappliedrecordoffset") > 20


def test_the_place_in_the_quorum(cluster: Cluster) -> None:
    prefix = "kafka_server_raftmetrics_"
    leader = cluster.node(1).quorum.leader_id
    assert leader is not None
    for node in (1, 2, 3):
        assert value(cluster, node, prefix + "current_leader") == leader
        role = "leader" if node == leader else "follower"
        assert value(cluster, node, prefix + "current_state", state=role) == 1
        assert value(cluster, node, prefix + "number_of_voters") == 3
    assert total(cluster, prefix + "current_state", state="leader") == 1
    cluster.create_topic("t")
    assert value(cluster, leader, prefix + "commit_latency_max") >= value(
        cluster, leader, prefix + "commit_latency_avg"
    )
    assert value(cluster, leader, CONTROLLER + "newactivecontrollerscount") >= 1


# -- a latency in windows ---------------------------------------------------------------------------------------------


def test_a_latency_is_forgotten_after_two_windows() -> None:
    latency = Latency()
    assert latency.average_ms(0) is None
    latency.record(10, 0)
    latency.record(20, 1_000)
    assert (latency.average_ms(1_000), latency.max_ms(1_000)) == (15, 20)
    latency.record(3, WINDOW_MS)
    assert (latency.average_ms(WINDOW_MS), latency.max_ms(WINDOW_MS)) == (11, 20)
    assert (latency.average_ms(2 * WINDOW_MS), latency.max_ms(2 * WINDOW_MS)) == (3, 3)
    assert latency.average_ms(3 * WINDOW_MS) is None
    latency.record(7, 100 * WINDOW_MS)
    assert latency.max_ms(100 * WINDOW_MS) == 7


# -- groups and the cleaner -------------------------------------------------------------------------------------------


def test_groups_and_their_partitions() -> None:
    cluster = groups_cluster(partitions=5)
    cluster.create_topic("t")
    prefix = "kafka_server_group_coordinator_metrics_"
    assert total(cluster, prefix + "num_partitions", state="active") == 0
    for group in ("g", "h"):
        client = Client(cluster, group)
        assert client.commit(1) == 0
        client.join()
    assert total(cluster, prefix + "group_count", protocol="classic") == 2
    assert total(cluster, prefix + "group_count", protocol="consumer") == 0
    at_work = {Client(cluster, group).coordinator() for group in ("g", "h")}
    led = sum(cluster.leader(OFFSETS_TOPIC, index) in at_work for index in range(5))
    until_seen(cluster, lambda: total(cluster, prefix + "num_partitions", state="active") == led)
    assert total(cluster, prefix + "num_partitions", state="loading") == 0


def test_the_cleaner() -> None:
    config = {"log.cleaner.backoff.ms": "500"}
    cluster = Cluster(nodes=1, config=config)
    compacted = {"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.01"}
    cluster.create_topic("t", factor=1, config=compacted)
    prefix = "kafka_log_logcleanermanager_"
    for _ in range(3):
        assert cluster.produce("t", [b"v"], key=b"k").error_code == 0
        cluster.run(1_000)
    until_seen(cluster, lambda: value(cluster, 1, "tanist_log_cleaner_dropped_records_total") >= 1)
    assert value(cluster, 1, "tanist_log_cleaner_cleanings_total") >= 1
    assert value(cluster, 1, prefix + "uncleanable_partitions_count") == 0
    assert value(cluster, 1, prefix + "time_since_last_run_ms") <= 1_000
    assert 0 <= value(cluster, 1, prefix + "max_dirty_percent") <= 100


def test_transactions_are_counted_by_their_state_and_at_the_partition(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    producer = TransactionalProducer(cluster, bumps=False)
    producer.begin()
    ids = "tanist_transaction_coordinator_transactional_ids"
    assert total(cluster, ids, state="Empty") == 1
    producer.add("t", 0)
    assert total(cluster, ids, state="Ongoing") == 1
    producer.write("t", [b"x"])
    leader = cluster.leader("t")
    assert leader is not None
    lag = parse(scrape_partitions(cluster.node(leader).components).render())[
        "kafka_cluster_partition_laststableoffsetlag"
    ]
    assert lag.samples[("topic", "t"), ("partition", "0")] == 1
    assert value(cluster, leader, "kafka_server_addpartitionstotxnmanager_verificationtimems_count") == 1
    assert total(cluster, REPLICAS + "produceridcount") == 3
    producer.end(waits=False)
    until_seen(cluster, lambda: total(cluster, ids, state="CompleteCommit") == 1)
