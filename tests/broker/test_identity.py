"""Whose a node's folders are, as its start finds it: nothing that is not there is taken for new."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tanist.broker.assembly import identify
from tanist.broker.config import ConfigError, NodeConfig
from tanist.log.checkpoints import MetaProperties
from tanist.sim.world.clock import SimRandom, stream
from tanist.sim.world.scheduler import Process
from tanist.sim.world.world import Host, World
from tanist.wire.ids import ZERO_UUID

PATHS = {"log.dirs": "/data/1,/data/2", "metadata.log.dir": "/metadata"}
META = "meta.properties"


@pytest.fixture
def host() -> Host:
    return World(1, nodes=1, config=PATHS).hosts[1]


def start(host: Host) -> dict[str, MetaProperties]:
    config = NodeConfig.from_properties(host.properties, hostname=host.name)
    return identify(config, host.disk.view(Process("start")), SimRandom(stream(1, "start")))[1]


def without_directory_id(meta: MetaProperties) -> bytes:
    return b"\n".join(line for line in meta.encode().split(b"\n") if not line.startswith(b"directory.id="))


def as_version_0(meta: MetaProperties) -> bytes:
    return f"#\nversion=0\nbroker.id={meta.node_id}\ncluster.id={meta.cluster_id}\n".encode()


@pytest.mark.parametrize("older", [without_directory_id, as_version_0])
def test_a_folder_of_an_older_kafka_gets_an_id_and_keeps_it(
    host: Host, older: Callable[[MetaProperties], bytes]
) -> None:
    before = start(host)
    view = host.disk.view(Process("operator"))
    for path in ("/data/1", "/metadata"):
        view.write_file(f"{path}/{META}", older(before[path]))
    found = start(host)
    assert found["/data/2"] == before["/data/2"]
    assert len({meta.directory_id for meta in found.values()} - {ZERO_UUID}) == 3
    assert start(host) == found


@pytest.mark.parametrize("gone", ["/data/1", "/data/2", "/metadata"])
@pytest.mark.parametrize("how", ["its file", "its disk"])
def test_a_folder_that_is_not_formatted_beside_others_is_not_mounted(host: Host, gone: str, how: str) -> None:
    """Apache Kafka 4.3.1: "No `meta.properties` found in ... (have you run `kafka-storage.sh` ...?)"."""
    if how == "its disk":
        host.disk.replace(gone)
    else:
        host.disk.view(Process("operator")).remove(f"{gone}/{META}")
    with pytest.raises(ConfigError, match=rf"^{gone} is not formatted, and /.* is: mount .*--ignore-formatted"):
        start(host)
    assert f"{gone}/{META}" not in host.disk.paths()
