"""`tanist format` with the first voters of a dynamic quorum (KIP-853): what is written, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tanist.broker.config import NodeConfig
from tanist.log.checkpoints import MetaProperties
from tanist.quorum.storage.batches import voter_records
from tanist.quorum.storage.voter_history import of_record
from tanist.quorum.voters import Voter
from tanist.runtime.first_voters import Choice, FirstVoters, FirstVotersError, parse_controllers
from tanist.runtime.format import FormatError, format_folders
from tanist.wire.control import KRaftVersionRecord, VotersRecord
from tanist.wire.ids import id_from_text

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
FIRST, SECOND = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"
STANDALONE, NONE_YET = FirstVoters(Choice.STANDALONE), FirstVoters(Choice.NONE_YET)


def config(folder: Path, node_id: int = 1, roles: str = "broker,controller", **more: str) -> NodeConfig:
    listeners = "PLAINTEXT://localhost:9092" + (",CONTROLLER://localhost:9093" if "controller" in roles else "")
    properties = {
        "process.roles": roles,
        "node.id": str(node_id),
        "listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "log.dirs": str(folder),
    }
    return NodeConfig.from_properties(properties | {name.replace("_", "."): value for name, value in more.items()})


def snapshot_of(folder: Path) -> tuple[int, tuple[Voter, ...]] | None:
    """kraft.version and the voters in the snapshot 0-0."""
    path = folder / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    if not path.exists():
        return None
    version, voters = (message for _, message in voter_records(memoryview(path.read_bytes())))
    assert isinstance(version, KRaftVersionRecord)
    assert isinstance(voters, VotersRecord)
    return version.k_raft_version, tuple(of_record(voters, "CONTROLLER"))


def meta(folder: Path) -> MetaProperties:
    path = folder / "meta.properties"
    return MetaProperties.decode(path.read_bytes(), str(path))


def test_standalone_names_this_controller_and_its_directory(tmp_path: Path) -> None:
    format_folders(config(tmp_path / "d"), CLUSTER_ID, voters=STANDALONE)
    found = snapshot_of(tmp_path / "d")
    assert found is not None
    level, (voter,) = found
    assert level == 1
    assert (voter.node_id, voter.directory_id) == (1, meta(tmp_path / "d").directory_id)
    assert (voter.host, voter.port, voter.listeners[0].name) == ("localhost", 9093, "CONTROLLER")


def test_a_list_gives_each_controller_its_directory(tmp_path: Path) -> None:
    listed = parse_controllers(f"1@one:9093:{FIRST},2@two:9094:{SECOND}")
    for node_id in (1, 2):
        format_folders(config(tmp_path / str(node_id), node_id), CLUSTER_ID, voters=listed)
    found = [snapshot_of(tmp_path / name) for name in "12"]
    assert found[0] is not None
    assert found[0] == found[1]
    assert [(voter.node_id, voter.host) for voter in found[0][1]] == [(1, "one"), (2, "two")]
    assert meta(tmp_path / "2").directory_id == id_from_text(SECOND)


def test_one_that_joins_later_has_no_snapshot(tmp_path: Path) -> None:
    format_folders(config(tmp_path / "d", 3), CLUSTER_ID, voters=NONE_YET)
    assert snapshot_of(tmp_path / "d") is None
    assert meta(tmp_path / "d").node_id == 3


def test_a_broker_needs_no_choice(tmp_path: Path) -> None:
    format_folders(config(tmp_path / "d", 7, "broker"), CLUSTER_ID)
    assert snapshot_of(tmp_path / "d") is None


def test_a_controller_without_voters_needs_one(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="say which the first voters are"):
        format_folders(config(tmp_path / "d"), CLUSTER_ID)
    assert not (tmp_path / "d").exists()


def test_static_voters_and_a_choice_exclude_each_other(tmp_path: Path) -> None:
    static = config(tmp_path / "d", controller_quorum_voters="1@localhost:9093")
    with pytest.raises(FormatError, match=r"controller\.quorum\.voters names the voters"):
        format_folders(static, CLUSTER_ID, voters=STANDALONE)
    with pytest.raises(FormatError, match=r"kraft\.version 1 needs"):
        format_folders(static, CLUSTER_ID, features={"kraft.version": 1})
    format_folders(static, CLUSTER_ID, features={"kraft.version": 0})


def test_a_dynamic_quorum_has_kraft_version_1(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"kraft\.version 0 needs"):
        format_folders(config(tmp_path / "d"), CLUSTER_ID, voters=STANDALONE, features={"kraft.version": 0})


def test_a_controller_that_the_list_lacks_is_refused(tmp_path: Path) -> None:
    listed = parse_controllers(f"1@one:9093:{FIRST}")
    with pytest.raises(FormatError, match="lacks node 2"):
        format_folders(config(tmp_path / "d", 2), CLUSTER_ID, voters=listed)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no controller is named"),
        ("1@one:9093", "write id@host:port:directory-id"),
        (f"1@one:9093:{FIRST},1@two:9093:{SECOND}", "stands there twice"),
    ],
)
def test_a_list_that_makes_no_sense(text: str, reason: str) -> None:
    with pytest.raises(FirstVotersError, match=reason):
        parse_controllers(text)
