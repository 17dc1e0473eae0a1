"""Unclean Recovery (KIP-966, second part) on whole nodes in virtual time: who is waited for, asked and elected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from tanist.broker.network.client_connection import ClientConnection
from tanist.client.admin import elect_request
from tanist.events.metadata import LogInfoUnanswered, LogInfoUnsupported, UncleanElection
from tanist.events.process import MalformedRequest
from tanist.sim.world.world import PRIVATE_REQUESTS
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.messages.get_replica_log_info_request import GetReplicaLogInfoRequest
from tanist.wire.messages.get_replica_log_info_request import TopicPartitions as LogsOf
from tests.broker.cluster_rig import Cluster

LONGEST_LOG_AGGRESSIVE, LONGEST_LOG_BALANCED, DESIGNATION = 2, 3, 4


def degraded(config: Mapping[str, str] | None = None, **topic: Any) -> Cluster:
    """Seven controllers, a topic on three of them. 3 has left at "one"; 2 at "two"; 1 lost power, and "two" with it.

    So nobody is in ISR or ELR once 1 and 2 have come back: 2 alone has both committed records.
    """
    for seed in range(1, 20):  # what a loss of power takes is the seed's choice
        cluster = Cluster(nodes=7, seed=seed, config={"min.insync.replicas": "2", **(config or {})})
        cluster.create_topic("t", assignment=[[1, 2, 3]], config=topic)
        degrade(cluster)
        if b"two" not in cluster.host(1).disk.content("/data/t-0/00000000000000000000.log"):
            return cluster
    raise AssertionError("no loss of power took the record")


def degrade(cluster: Cluster) -> None:
    hosts = cluster.world.hosts
    assert cluster.produce("t", [b"one"]).error_code == 0
    cluster.run(40_000)  # by then the page cache is written back: a loss of power does not take the file itself
    hosts[3].kill()
    cluster.until(lambda: cluster.partition("t").isr == (1, 2))
    assert cluster.produce("t", [b"two"]).error_code == 0
    hosts[2].kill()
    cluster.until(lambda: (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), (2,)))
    hosts[1].lose_power()
    cluster.until(lambda: not cluster.partition("t").has_leader)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((), (1, 2))


def elect(cluster: Cluster, kind: int, desired: int | None = None, timeout_ms: int = 5_000) -> tuple[int, str | None]:
    desired_leaders = None if desired is None else (desired,)
    request = elect_request(kind, "t", desired=desired_leaders, timeout_ms=timeout_ms)
    response: Any = cluster.ask(request, 3, to=5, timeout_ms=timeout_ms + 5_000)
    assert response.error_code == 0
    result = response.replica_election_results[0].partition_result[0]
    return result.error_code, result.error_message


def test_balanced_waits_for_all_of_last_known_elr_and_elects_the_longest_log() -> None:
    cluster = degraded()
    hosts = cluster.world.hosts
    hosts[1].start()
    cluster.until(lambda: cluster.partition("t").last_known_elr == (1,))
    assert cluster.partition("t").elr == (2,)
    hosts[3].start()
    cluster.run(20_000)
    assert not cluster.partition("t").has_leader  # 2 may be clean for all that is known
    hosts[2].start()
    cluster.until(lambda: cluster.partition("t").has_leader)
    assert cluster.partition("t").leader == 2
    cluster.until(lambda: set(cluster.partition("t").isr) == {1, 2, 3})
    assert (cluster.partition("t").elr, cluster.partition("t").last_known_elr, cluster.partition("t").recovering) == (
        (),
        (),
        False,
    )
    assert cluster.values("t") == [b"one", b"two"]
    assert [(each.partition, each.leader, each.strategy) for each in cluster.seen(UncleanElection)] == [
        ("t-0", 2, "Balanced")
    ]


def test_balanced_does_not_take_the_replica_that_is_back_first() -> None:
    cluster = degraded()
    hosts = cluster.world.hosts
    hosts[1].start()
    hosts[2].start()
    cluster.until(lambda: cluster.partition("t").has_leader)
    assert cluster.partition("t").leader == 2
    cluster.until(lambda: set(cluster.partition("t").isr) == {1, 2})
    assert cluster.values("t") == [b"one", b"two"]


def test_aggressive_does_without_those_that_do_not_come_back() -> None:
    cluster = degraded(None, **{"unclean.leader.election.enable": "true"})
    began_ms = cluster.world.now_ms
    cluster.host(3).start()
    cluster.until(lambda: cluster.partition("t").has_leader)
    assert cluster.partition("t").leader == 3
    assert cluster.world.now_ms - began_ms < 8_000
    assert cluster.seen(UncleanElection)[0].strategy == "Aggressive"


def test_aggressive_gives_the_others_time_to_come_back() -> None:
    cluster = degraded(None, **{"unclean.recovery.strategy": "Aggressive"})
    cluster.host(3).start()
    cluster.host(1).start()
    cluster.run(2_000)
    assert not cluster.partition("t").has_leader
    cluster.host(2).start()
    cluster.until(lambda: cluster.partition("t").has_leader)
    assert cluster.partition("t").leader == 2
    cluster.until(lambda: len(cluster.partition("t").isr) == 3)
    assert cluster.values("t") == [b"one", b"two"]


def test_an_eligible_member_that_returns_ends_the_recovery() -> None:
    cluster = Cluster(nodes=7, config={"min.insync.replicas": "2"})
    cluster.create_topic("t", assignment=[[1, 2, 3]], config={"unclean.recovery.strategy": "Aggressive"})
    assert cluster.produce("t", [b"one"]).error_code == 0
    hosts = cluster.world.hosts
    hosts[3].kill()
    cluster.until(lambda: cluster.partition("t").isr == (1, 2))
    hosts[2].stop(lambda: None)
    cluster.until(lambda: not hosts[2].up and cluster.partition("t").elr == (2,))
    hosts[1].lose_power()
    cluster.until(lambda: not cluster.partition("t").has_leader)
    hosts[3].start()
    cluster.run(1_000)
    hosts[2].start()  # cleanly stopped: still eligible
    cluster.until(lambda: cluster.partition("t").has_leader)
    assert cluster.partition("t").leader == 2
    assert cluster.seen(UncleanElection) == []
    cluster.run(10_000)
    assert cluster.partition("t").leader == 2


def test_none_waits_for_an_operator_who_designates() -> None:
    cluster = degraded(None, **{"unclean.recovery.strategy": "None"})
    hosts = cluster.world.hosts
    for node_id in (1, 2, 3):
        hosts[node_id].start()
    cluster.until(lambda: cluster.partition("t").last_known_elr == (1, 2))
    cluster.run(20_000)
    assert not cluster.partition("t").has_leader
    assert elect(cluster, DESIGNATION, 6)[0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert elect(cluster, DESIGNATION, 2) == (ErrorCode.NONE, None)
    assert cluster.partition("t").leader == 2
    assert elect(cluster, DESIGNATION, 1)[0] == ErrorCode.ELECTION_NOT_NEEDED
    cluster.until(lambda: len(cluster.partition("t").isr) == 3)
    assert cluster.values("t") == [b"one", b"two"]
    assert [(each.asked_for, each.asked_by) for each in cluster.seen(UncleanElection)] == [
        ("a designation", "User:ANONYMOUS at 127.0.0.1, client 'client'")
    ]


def test_the_longest_log_is_elected_on_request_whatever_is_configured() -> None:
    cluster = degraded(None, **{"unclean.recovery.strategy": "None"})
    hosts = cluster.world.hosts
    hosts[1].start()
    cluster.until(lambda: cluster.partition("t").last_known_elr == (1,))
    error, message = elect(cluster, LONGEST_LOG_BALANCED, timeout_ms=1_000)
    assert error == ErrorCode.REQUEST_TIMED_OUT
    assert "a member of the ISR or the ELR is waited for" in (message or "")
    hosts[2].start()
    cluster.until(lambda: cluster.partition("t").last_known_elr == (1, 2))
    cluster.run(5_000)
    assert not cluster.partition("t").has_leader  # the wish has ended with its request
    assert elect(cluster, LONGEST_LOG_BALANCED)[0] == ErrorCode.NONE
    assert cluster.partition("t").leader == 2
    (election,) = cluster.seen(UncleanElection)
    assert (election.strategy, election.asked_for) == ("Balanced", "an election by the longest log")
    assert election.asked_by == "User:ANONYMOUS at 127.0.0.1, client 'client'"


def test_a_recovery_survives_the_controller() -> None:
    cluster = degraded(None, **{"unclean.recovery.strategy": "Aggressive"})
    cluster.host(3).start()
    cluster.run(2_000)
    assert not cluster.partition("t").has_leader
    controller = cluster.controller()
    assert controller not in (1, 2, 3)
    cluster.host(controller).kill()
    cluster.until(lambda: cluster.partition("t").has_leader)
    assert cluster.partition("t").leader == 3
    assert len(cluster.seen(UncleanElection)) == 1


def test_without_the_manager_the_last_leader_is_elected_when_it_returns() -> None:
    """The KIP's first phase, as Apache ships it: the records that 1 has lost are lost."""
    cluster = degraded(config={"unclean.recovery.manager.enabled": "false"})
    hosts = cluster.world.hosts
    assert cluster.partition("t").last_known_elr == (1,)
    hosts[2].start()
    cluster.until(lambda: cluster.partition("t").elr == (1,))
    hosts[1].start()
    cluster.until(lambda: cluster.partition("t").has_leader)
    assert cluster.partition("t").leader == 1
    assert (cluster.seen(UncleanElection)[0].partition, cluster.seen(UncleanElection)[0].leader) == ("t-0", 1)


def says_nothing_of_its_logs(monkeypatch: pytest.MonkeyPatch, *node_ids: int) -> None:
    """As a broker that has neither request: it closes the connection of a controller that asks what it has."""
    served = ClientConnection._general

    def serve(connection: ClientConnection, api_key: int, version: int, frame: memoryview) -> None:
        owner: Any = connection._owner
        if api_key == ApiKey.API_VERSIONS and owner._context.node_id in node_ids:
            raise WireError(f"api {api_key} is not served")
        served(connection, api_key, version, frame)

    monkeypatch.setattr(ClientConnection, "_general", serve)


def test_brokers_with_kafkas_requests_only_are_asked_by_list_offsets_and_fetch() -> None:
    cluster = degraded({"unclean.recovery.timeout.ms": "20000"})
    hosts = cluster.world.hosts
    for node_id in (1, 2, 3):
        hosts[node_id].properties[PRIVATE_REQUESTS] = "false"
    hosts[1].start()
    hosts[2].start()
    cluster.until(lambda: cluster.partition("t").has_leader)
    assert cluster.partition("t").leader == 2
    hosts[3].start()
    cluster.until(lambda: set(cluster.partition("t").isr) == {1, 2, 3})
    assert cluster.values("t") == [b"one", b"two"]
    assert LogInfoUnsupported(2) in cluster.seen(LogInfoUnsupported)
    assert cluster.seen(MalformedRequest) == []


def test_brokers_of_both_kinds_are_compared() -> None:
    cluster = degraded()
    cluster.host(2).properties[PRIVATE_REQUESTS] = "false"
    cluster.host(1).start()
    cluster.host(2).start()
    cluster.until(lambda: cluster.partition("t").has_leader)
    assert cluster.partition("t").leader == 2
    assert cluster.seen(UncleanElection)[0].logs == ((1, 0, 1), (2, 0, 2))


def test_a_replica_that_says_nothing_of_its_logs_is_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = degraded({"unclean.recovery.timeout.ms": "60000"})
    says_nothing_of_its_logs(monkeypatch, 3)
    cluster.host(3).start()
    cluster.until(lambda: cluster.image.brokers[3].active)
    for host in (1, 2):
        cluster.host(host).start()
    cluster.run(50_000)
    assert not cluster.partition("t").has_leader  # 3 could have more than 2 has
    cluster.until(lambda: cluster.partition("t").has_leader)
    assert cluster.partition("t").leader == 2
    assert cluster.values("t") == [b"one", b"two"]
    refused = [each for each in cluster.seen(MalformedRequest) if "api 18 is not served" in each.problem]
    assert 5 <= len(refused) <= 12  # after 0.5, 1, 2, 4, 8 and then each 10 seconds
    assert [each.broker_id for each in cluster.seen(LogInfoUnanswered) if not each.again] == [3]


def test_balanced_waits_for_a_member_of_last_known_elr_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = degraded({"unclean.recovery.timeout.ms": "5000"})
    says_nothing_of_its_logs(monkeypatch, 1)
    for host in (1, 2, 3):
        cluster.host(host).start()
    cluster.run(30_000)
    assert 1 in cluster.partition("t").last_known_elr
    assert not cluster.partition("t").has_leader
    assert elect(cluster, DESIGNATION, 2) == (0, None)  # the way out
    assert cluster.partition("t").leader == 2


def test_replicas_answer_for_what_they_host_up_to_the_limit() -> None:
    cluster = Cluster(nodes=3)
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    assert cluster.produce("t", [b"one", b"two"]).error_code == 0
    topic_id = cluster.image.topic_ids["t"]
    response = cluster.ask(
        GetReplicaLogInfoRequest(
            broker_id=1,
            topic_partitions=(
                LogsOf(topic_id=topic_id, partitions=(0, 1)),
                LogsOf(topic_id=UUID(int=7), partitions=tuple(range(1_000))),
            ),
        ),
        0,
    )
    assert response.broker_epoch == cluster.node(1).lifecycle.broker_epoch
    ours, others = response.topic_partition_log_info_list
    info, unknown = ours.partition_log_info
    assert (info.log_end_offset, info.last_written_leader_epoch, info.current_leader_epoch) == (2, 0, 0)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    errors = [each.error_code for each in others.partition_log_info]
    assert errors == [ErrorCode.UNKNOWN_TOPIC_ID] * 998 + [ErrorCode.REQUEST_LIMIT_REACHED] * 2
