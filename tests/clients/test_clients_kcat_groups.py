"""kcat -G: groups of Debian's old librdkafka (2.0.2), which commits by itself."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.groups import Event, Group, Kind, new_group
from tests.clients.test_clients_groups import (  # noqa: F401
    test_a_group_that_comes_back_goes_on_where_it_was_when_its_coordinator_died,
    test_three_members_share_a_topic_one_leaves_and_one_is_killed,
)
from tests.interop.cluster import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

_REBALANCED = re.compile(r"% Group .+ rebalanced \(memberid .+\): (?P<what>assigned|revoked): (?P<partitions>.*)")
_PARTITION = re.compile(r"\[(\d+)\]")
_RECORD = re.compile(r"(?P<partition>\d+) (?P<offset>\d+)")


def understand(line: str) -> Event | None:
    line = line.strip()
    if found := _REBALANCED.fullmatch(line):
        partitions = [{"partition": int(index)} for index in _PARTITION.findall(found["partitions"])]
        return {"name": f"partitions_{found['what']}", "partitions": partitions}
    if found := _RECORD.fullmatch(line):
        return {"name": "record_data", "partition": int(found["partition"]), "offset": int(found["offset"])}
    return None


def kcat_kind(binary: str) -> Kind:
    def command(bootstrap: str, group: str, topic: str) -> tuple[str, ...]:
        return (
            binary, "-b", bootstrap, "-u", "-f", "%p %o\n", "-X", "auto.offset.reset=earliest",
            "-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=500", "-G", group, topic,
        )  # fmt: skip

    return Kind("kcat", command, understand=understand, tells_on_stderr=True)


@pytest.fixture
def group(cluster: Cluster, new_topic_name: Callable[[], str], tmp_path: Path) -> Iterator[Group]:
    binary = shutil.which("kcat") or shutil.which("kafkacat")
    if binary is None:
        pytest.skip("needs kcat (Debian: apt-get install kcat)")
    with new_group(kcat_kind(binary), cluster, new_topic_name(), tmp_path) as members:
        yield members
