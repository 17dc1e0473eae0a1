"""`bootstrap.checkpoint`, and what a cluster that begins without ELR does: as Kafka did before KIP-966."""

from __future__ import annotations

import pytest

from tanist.broker.endpoints import ConfigError
from tanist.broker.metadata.bootstrap import FILE_NAME, bootstrap_of, encode_bootstrap, read_bootstrap
from tanist.client.admin import update_feature_request
from tanist.controller.features import Bootstrap
from tanist.controller.image.image import ELR_VERSION
from tanist.events.event import Event
from tanist.events.stream import Events
from tanist.events.text import describe
from tanist.sim.world.clock import stream
from tanist.sim.world.disk import SimDisk
from tanist.sim.world.scheduler import Process, Scheduler
from tanist.wire.errors import ErrorCode
from tests.broker.cluster_rig import Cluster

OFF = {ELR_VERSION: 0}
UPGRADE, SAFE_DOWNGRADE = 1, 2

# As `kafka-storage format --feature eligible.leader.replicas.version=0` of Apache Kafka 4.3.1 wrote it.
APACHES = bytes.fromhex(
    "0000000000000000000000470000000002b6d20de9002000000000000001a1ff8fc7c1000001a1ff8fc7c1ffffffffffffffffff"
    "ffffffffff000000012a0000000800000003160000000000000000000000000000000000000001000000c30000000002869af1e8"
    "000000000004000001a1ff8fc8cc000001a1ff8fc8ccffffffffffffffffffffffffffff000000053a000000012e010c00116d65"
    "7461646174612e76657273696f6e001e0000340000020128010c000e67726f75702e76657273696f6e0001000034000004012801"
    "0c000e73686172652e76657273696f6e0001000038000006012c010c001073747265616d732e76657273696f6e00010000400000"
    "080134010c00147472616e73616374696f6e2e76657273696f6e0002000000000000000000060000003f0000000002113abd1500"
    "2000000000000001a1ff8fc8d2000001a1ff8fc8d2ffffffffffffffffffffffffffff000000011a000000080000000406000000"
    "00"
)
BATCHES = (0, 83, 290)


class Folder:
    """One folder on a disk, and what was said about it."""

    def __init__(self) -> None:
        self.disk = SimDisk(Scheduler(), stream(1, "disk")).view(Process("test"))
        self.disk.make_directory("/data")
        self.said: list[str] = []
        self.events = Events()
        self.events.subscribe(self._heard)

    def _heard(self, event: Event) -> None:
        self.said.append(" ".join(describe(event) or ()))

    def write(self, content: bytes) -> None:
        self.disk.write_file(f"/data/{FILE_NAME}", content)

    def read(self) -> Bootstrap | None:
        return read_bootstrap(self.disk, "/data", self.events)


@pytest.fixture
def folder() -> Folder:
    return Folder()


def test_a_folder_without_the_file_says_nothing(folder: Folder) -> None:
    assert folder.read() is None


@pytest.mark.parametrize("features", [{}, OFF, {"metadata.version": 23}, {"metadata.version": 23, ELR_VERSION: 1}])
def test_what_is_written_is_read(folder: Folder, features: dict[str, int]) -> None:
    wanted = bootstrap_of(features)
    folder.write(encode_bootstrap(wanted, wall_ms=1000))
    found = folder.read()
    assert found is not None
    assert (found.metadata_version, found.levels()) == (wanted.metadata_version, wanted.levels())
    assert found.levels().get(ELR_VERSION, 0) == features.get(ELR_VERSION, 0 if "metadata.version" in features else 1)


def test_apaches_file_is_read(folder: Folder) -> None:
    folder.write(APACHES)
    found = folder.read()
    assert found is not None
    others = {"share.version": 1, "streams.version": 1}
    assert (found.metadata_version, found.levels()) == (30, {"group.version": 1, "transaction.version": 2, **others})
    assert not [line for line in folder.said if "is kept" in line]


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ({"no.such.feature": 1}, "no.such.feature 1: does not support this feature"),
        ({ELR_VERSION: 2}, "only supports versions 0-1"),
        ({"metadata.version": 99}, "metadata.version 99 is not supported"),
        ({"metadata.version": 22, ELR_VERSION: 1}, "needs metadata.version 4.0-IV1"),
    ],
)
def test_levels_that_cannot_be_had_are_refused(folder: Folder, features: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bootstrap_of(features)
    levels = dict(features)
    folder.write(encode_bootstrap(Bootstrap(levels.pop("metadata.version", 30), levels), wall_ms=1000))
    with pytest.raises(ConfigError, match=said):
        folder.read()


@pytest.mark.parametrize("damage", range(0, len(APACHES), 7))
def test_a_damaged_file_is_refused(folder: Folder, damage: int) -> None:
    folder.write(APACHES[:damage] + bytes([APACHES[damage] ^ 0x10]) + APACHES[damage + 1 :])
    within = damage - max(start for start in BATCHES if start <= damage)
    if within < 8 or 12 <= within < 16:
        folder.read()  # offsets and epochs mean nothing here, and no CRC covers them
        return
    with pytest.raises(ConfigError, match="damaged"):
        folder.read()


@pytest.mark.parametrize("length", [0, 1, 60, 83, 100, 364])
def test_a_file_that_is_cut_off_is_refused(folder: Folder, length: int) -> None:
    folder.write(APACHES[:length])
    with pytest.raises(ConfigError, match=r"damaged|names no metadata\.version|ends within"):
        folder.read()


# -- a cluster without ELR --------------------------------------------------------------------------------------------


def state(cluster: Cluster, topic: str = "t") -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(leader, ISR, ELR, LastKnownElr) by the newest metadata that there is."""
    found = cluster.partition(topic)
    return found.leader, found.isr, found.elr, found.last_known_elr


def five(features: dict[str, int] | None) -> Cluster:
    """Five nodes, so that two may die without taking the quorum with them; the topic lies on 4 and 5."""
    cluster = Cluster(nodes=5, config={"min.insync.replicas": "2"}, features=features)
    cluster.create_topic("t", assignment=[[4, 5]])
    assert cluster.produce("t", [b"before"]).error_code == 0
    return cluster


def test_without_elr_the_last_member_stays_in_the_isr_and_is_waited_for() -> None:
    cluster = five(OFF)
    assert ELR_VERSION not in cluster.node(1).metadata.image.features
    cluster.host(5).kill()
    cluster.until(lambda: state(cluster) == (4, (4,), (), ()))
    # The high watermark rule is older than the feature, and not guarded by it (KIP, "compatibility").
    assert cluster.produce("t", [b"x"]).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.produce("t", [b"alone"], acks=1).error_code == 0
    assert cluster.values("t") == [b"before"]
    cluster.host(4).kill()
    cluster.until(lambda: state(cluster) == (-1, (4,), (), ()))
    cluster.host(5).start()
    cluster.run(3_000)
    assert state(cluster) == (-1, (4,), (), ())
    cluster.host(4).start()
    cluster.until(lambda: sorted(state(cluster)[1]) == [4, 5])
    cluster.until(lambda: cluster.values("t") == [b"before", b"alone"])


def test_with_elr_the_isr_becomes_empty_and_anyone_is_eligible_leads() -> None:
    cluster = five(None)
    cluster.host(5).kill()
    cluster.until(lambda: state(cluster) == (4, (4,), (5,), ()))
    cluster.host(4).kill()
    cluster.until(lambda: state(cluster)[:3] == (-1, (), (4, 5)))


def update(cluster: Cluster, level: int, kind: int) -> int:
    return int(cluster.ask(update_feature_request(ELR_VERSION, level, kind), 2).error_code)


def test_elr_is_switched_off_and_on_while_the_cluster_runs() -> None:
    cluster = five(None)
    assert update(cluster, 0, UPGRADE) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, 0, SAFE_DOWNGRADE) == 0
    cluster.host(5).kill()
    cluster.until(lambda: state(cluster) == (4, (4,), (), ()))
    cluster.host(4).kill()
    cluster.until(lambda: state(cluster) == (-1, (4,), (), ()))
    cluster.host(4).start()
    cluster.host(5).start()
    cluster.until(lambda: sorted(state(cluster)[1]) == [4, 5])
    assert update(cluster, 1, UPGRADE) == 0
    # Rule 58: the cluster's min.insync.replicas is pinned for all brokers alike.
    image = cluster.node(1).metadata.image
    cluster.until(lambda: image.cluster_config("min.insync.replicas") == "2")
    leader = state(cluster)[0]
    other = 9 - leader
    cluster.host(other).kill()
    cluster.until(lambda: state(cluster) == (leader, (leader,), (other,), ()))


def test_switching_off_forgets_an_elr_with_the_next_change() -> None:
    cluster = five(None)
    cluster.host(5).kill()
    cluster.until(lambda: state(cluster) == (4, (4,), (5,), ()))
    assert update(cluster, 0, SAFE_DOWNGRADE) == 0
    assert state(cluster) == (4, (4,), (5,), ())
    cluster.host(5).start()
    cluster.until(lambda: sorted(state(cluster)[1]) == [4, 5])
    assert state(cluster)[2] == ()
