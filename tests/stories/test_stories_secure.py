"""A secure cluster of real processes (TLS, SCRAM and ACLs everywhere): its nodes are killed, its certificates change.

One round by default; more by `pytest -m "stories and slow"`, or `python -m tests.faults.rounds --secure`.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.layout import node_folder
from tests.clients import install
from tests.faults import rounds
from tests.faults.load import Load
from tests.interop.cluster import ROOT, interrupt_on_sigterm, raw_client
from tests.interop.secure_cluster import SecureCluster
from tests.interop.tanist_cluster import node_metrics
from tests.interop.waiting import wait_for

interrupt_on_sigterm()
pytestmark = pytest.mark.stories

_RULE = re.compile(r"(?P<metric>\w+) <= time\(\)")
_EXPIRED = "TanistCertificateExpired"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureCluster]:
    install.activate()
    made = SecureCluster(tmp_path_factory.mktemp("secure"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def judge(report: rounds.Report) -> None:
    assert report.violations == [], report
    assert report.delivery_errors == [], report
    assert report.verdict.acknowledged > 500


def test_certificates_are_exchanged_under_load_and_no_request_fails(cluster: SecureCluster) -> None:
    """The producer tries nothing twice; clients come all the time, and each gets in."""
    rounds.create_topic(cluster, "exchanged")
    load = Load(cluster, "exchanged", rounds.PARTITIONS, 200, {"enable.idempotence": False, "retries": 0})
    stopping, came, failed = threading.Event(), 0, list[BaseException]()

    def come_and_go() -> None:
        nonlocal came
        try:
            while not stopping.is_set():
                raw_client(cluster, cluster.node_ids[came % 3]).close()
                came += 1
        except BaseException as error:
            failed.append(error)

    newcomers = threading.Thread(target=come_and_go)
    load.start()
    newcomers.start()
    try:
        for _ in range(2):
            cluster.rotate_certificates()
    finally:
        stopping.set()
        newcomers.join(30)
        load.stop()
    assert (failed, load.errors) == ([], [])
    assert came > 10
    assert len(load.acks) == sum(load.sent.values()) > 200


def test_nothing_acknowledged_is_lost_when_a_node_is_killed(cluster: SecureCluster) -> None:
    judge(rounds.run(cluster, fault="crash", rounds=1, seed=7))


def test_an_expired_certificate_is_what_log_status_and_alerts_say(cluster: SecureCluster) -> None:
    assert alarmed(cluster) == {1: False, 2: False, 3: False}
    cluster.security.expire_certificate(2)
    wait_for(lambda: alarmed(cluster) == {1: False, 2: True, 3: False}, "the alert of node 2 alone", timeout_s=30)
    for listener in ("SASL_SSL", "CONTROLLER"):
        until_logged(cluster, 2, f"the certificate of listener {listener} (CN=node-2) has expired at ")
    assert "the certificate node-2.pem has expired: `tanist certs renew 2`" in cluster.tanist("status").splitlines()
    shown = {Path(each["file"]).name: each["days_left"] for each in status(cluster)["certificates"]}
    assert (shown["node-2.pem"], shown["node-1.pem"] > 300) == (-1, True)
    with pytest.raises(OSError, match="expired"):
        raw_client(cluster, 2)
    cluster.tanist("certs", "renew", "2")
    wait_for(lambda: alarmed(cluster) == {1: False, 2: False, 3: False}, "no alert any more", timeout_s=30)

    def gets_in() -> bool:
        raw_client(cluster, 2).close()
        return True

    wait_for(gets_in, "the renewed certificate is served")
    assert "expired" not in cluster.tanist("status")


@pytest.mark.slow
def test_more_rounds_with_certificates_exchanged_in_between(tmp_path: Path) -> None:
    install.activate()
    cluster = SecureCluster(tmp_path)
    try:
        cluster.start()
        report = rounds.run(cluster, fault="crash", rounds=12, seed=11, before_each=cluster.rotate_certificates)
    finally:
        cluster.stop()
    judge(report)


def until_logged(cluster: SecureCluster, node_id: int, text: str) -> None:
    path = node_folder(cluster.directory, node_id) / "node.log"
    wait_for(lambda: text in path.read_text(errors="replace"), f"{text!r} in the log", timeout_s=30)


def status(cluster: SecureCluster) -> Any:
    return json.loads(cluster.tanist("status", "--json"))


def alarmed(cluster: SecureCluster) -> dict[int, bool]:
    """Of each node, whether the rule for expired certificates holds for all of its listeners, on its page of now."""
    document = yaml.safe_load((ROOT / "examples" / "monitoring" / "tanist.rules.yml").read_text())
    (rule,) = (each for group in document["groups"] for each in group["rules"] if each.get("alert") == _EXPIRED)
    parsed = _RULE.fullmatch(rule["expr"])
    assert parsed is not None
    found = {}
    for node_id in cluster.node_ids:
        shown = node_metrics(load_existing(cluster.directory), node_id, timeout_s=20)
        ends = [value for name, value in shown.items() if name.partition("{")[0] == parsed["metric"]]
        assert len(ends) == 2
        holds = {value <= time.time() for value in ends}
        found[node_id] = holds == {True}
    return found
