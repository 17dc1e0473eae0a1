"""Transactional producers of each library: where there are no transactions yet, each says so at once and for good.

On Apache Kafka the same producers commit a record.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients import builds, install
from tests.clients.topics import create_topics
from tests.interop import apache, target
from tests.interop.cluster import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

PATIENCE_S = 60.0
"""Of the whole process, on a busy machine."""
AT_ONCE_S = 10.0
"""A client that asks again takes 30 s or more before it gives up."""
REFUSED = {
    "confluent": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "kafka-python": "TransactionalIdAuthorizationFailedError",
    "aiokafka": "TransactionalIdAuthorizationFailed",
    "kafkajs": "KafkaJSGroupCoordinatorNotFound",
    "franz": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}


def reported(library: str, bootstrap: str, topic: str) -> dict[str, Any]:
    environment: Mapping[str, str] = {}
    if library == "kafkajs":
        if (reason := builds.missing_node()) is not None:
            pytest.skip(reason)
        command = ["node", str(builds.KAFKAJS / "transactional.js")]
        environment = {"NODE_PATH": str(builds.node_modules()), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    elif library == "franz":
        if (reason := builds.missing_go()) is not None:
            pytest.skip(reason)
        command = [str(builds.franz("transactional"))]
    else:
        command = [sys.executable, str(Path(__file__).with_name("transactional.py")), library]
        environment = {"PYTHONPATH": str(install.install())}
    done = subprocess.run(
        [*command, bootstrap, topic],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("library", list(REFUSED))
def test_a_transactional_producer_hears_at_once(library: str, cluster: Cluster, topic_name: str) -> None:
    create_topics(cluster, topic_name, partitions=1)
    found = reported(library, cluster.bootstrap, topic_name)
    if target.chosen() == "apache":
        assert found["error"] is None
        return
    assert REFUSED[library] in found["error"]
    assert found["fatal"] is not False
    assert found["seconds"] < AT_ONCE_S
    if library == "confluent":
        assert found["fatal"]
        assert "tanist has no transactions yet" in found["error"]


@pytest.mark.usefixtures("java")
def test_javas_transactional_producer_hears_at_once(cluster: Cluster, topic_name: str) -> None:
    create_topics(cluster, topic_name, partitions=1)
    done = apache.try_tool(
        apache.PRODUCER_PERFORMANCE, "--bootstrap-server", cluster.bootstrap, "--topic", topic_name,
        "--num-records", "1", "--record-size", "10", "--throughput", "-1",
        "--transactional-id", "tx-java", "--transaction-duration-ms", "100",
        timeout_s=AT_ONCE_S + 20,
    )  # fmt: skip
    if target.chosen() == "apache":
        assert done.returncode == 0, done
        return
    assert done.returncode != 0
    assert "TransactionalIdAuthorizationException" in done.stdout + done.stderr, done
