"""Java's clients of older versions: an application that creates a topic, writes to it, and reads in a group.

Versions before 3.9 read ApiVersions more strictly than later ones do.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.clients import builds
from tests.interop.cluster import Cluster

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(builds.missing_maven() is not None, reason=str(builds.missing_maven())),
]


@pytest.mark.parametrize("version", ["2.8.2", "3.4.1", "3.8.1", "3.9.1"])
def test_an_older_version_writes_and_reads(version: str, cluster: Cluster, new_topic_name: Callable[[], str]) -> None:
    program = builds.HERE / "java_old" / "OldClient.java"
    command = ["java", "-cp", f"{builds.java_client(version)}/*", str(program), cluster.bootstrap, new_topic_name()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    *said, committed = done.stdout.splitlines()
    assert said == ["nodes 3", "read 300"], done.stdout + done.stderr
    # The marker at each partition's end may be behind what was read.
    assert committed in [f"committed {300 + markers}" for markers in range(4)]
