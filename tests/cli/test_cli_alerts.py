"""What is said before and beside what was asked for: the words, without a cluster."""

from __future__ import annotations

import json
import time
from pathlib import Path
from uuid import UUID

import pytest

from tanist.cli.output.alerts import salvage_clause, salvage_lines, warn_of_age
from tanist.log.salvage.manifest import SalvageReason
from tanist.runtime.client.salvage_reports import SalvageNews
from tanist.runtime.cluster.status import ClusterStatus, NodeStatus
from tanist.text import span
from tanist.wire.ids import KNOWS_NOTHING_MS


def status(*states: str, controller: int | None = None, age_ms: int | None = None) -> ClusterStatus:
    nodes = tuple(
        NodeStatus(number, ("broker", "controller"), "127.0.0.1", 9091 + number, None, state, None, None)
        for number, state in enumerate(states, 1)
    )
    return ClusterStatus("127.0.0.1:9092", controller, nodes, age_ms)


def news(partition: int = 0, topic: str = "orders", records: int = 37, epoch: int = 4, **more: object) -> SalvageNews:
    values = {"brokers": (2,), "exact": True, "why": SalvageReason.CLEAN_ELECTION} | more
    values.setdefault("wall_ms", round(time.time() * 1000) - 5_000)
    return SalvageNews(
        topic=topic, topic_id=UUID(int=1), partition=partition, records=records, leader_epoch=epoch,
        **values,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_cluster_that_is_well_or_down_needs_no_word_about_quorums() -> None:
    assert status("running", "running", "crashed", controller=1).without_quorum == []
    assert status("stopped", "crashed", "stopped").without_quorum == []


@pytest.mark.parametrize(
    ("states", "line"),
    [
        (("running", "crashed", "stopped"), "1 of 3 controllers works, and 2 are needed: `tanist start 2`"),
        (("paused", "paused", "running"), "1 of 3 controllers works, and 2 are needed: `tanist resume 1`"),
        (("running",) * 3, "3 of 3 controllers work, and none is active: `tanist faults` shows what is cut or slow"),
    ],
)
def test_why_there_is_no_quorum_and_what_to_do(states: tuple[str, ...], line: str) -> None:
    assert status(*states, age_ms=12_300).without_quorum == [
        f"no quorum: {line}",
        "no leader can be elected, and no topic or setting can change",
        "the brokers' metadata is 12 s old",
    ]


def test_brokers_that_have_started_without_a_quorum_serve_no_clients() -> None:
    lines = status("starting", "crashed", "crashed", age_ms=KNOWS_NOTHING_MS).without_quorum
    assert lines[-1] == "brokers have started without a quorum, and serve no clients until there is one"


def test_the_warning_is_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_age(None, False)
    warn_of_age(8_183, False)
    warn_of_age(8_183, True)
    out, err = capsys.readouterr()
    assert out == ""
    *text, line = err.splitlines()
    assert text == [
        "Warning: no quorum: no broker has heard from a controller for 8.2 s; what is below is as old. "
        "See `tanist status`",
    ]
    assert json.loads(line)["warning"]["metadata_age_ms"] == 8_183


def test_what_was_cut_is_counted_and_the_next_command_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANIST_DATA", str(tmp_path))
    assert salvage_lines([], tmp_path) == []
    assert salvage_lines([news()], tmp_path) == [
        "salvage: 37 records of orders-0, cut from the log of broker 2 5.0 s ago",
        "what a topic lacks of them: `tanist salvage export --topic orders --to topic --dry-run`",
    ]
    several = [news(number, f"t{number}", brokers=(1, 3), exact=False) for number in range(7)]
    lines = salvage_lines(several, tmp_path / "other")
    assert len(lines) == 7
    assert lines[0] == "salvage: about 37 records of t0-0, cut from the log of brokers 1, 3 5.0 s ago"
    assert lines[5] == "salvage: records of 2 more partitions: `tanist salvage list`"
    assert lines[6].endswith(f"--all --to topic --dry-run --data {tmp_path / 'other'}`")


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (SalvageReason.CLEAN_ELECTION, "did not have (committed, and lost by a clean election) were cut"),
        (SalvageReason.UNCLEAN_ELECTION, "did not have (an unclean election) were cut"),
        (SalvageReason.FOLLOWER_TRUNCATION, "did not have (not known to be committed) were cut"),
        (SalvageReason.OUT_OF_RANGE, "did not have (its log begins later) were cut"),
    ],
)
def test_a_clean_election_that_lost_something_is_not_silent(why: SalvageReason, words: str, tmp_path: Path) -> None:
    """`--explain` says why as `salvage list` does: by the entry, and by nothing else."""
    clause = salvage_clause(news(why=why), tmp_path)
    assert clause.startswith(
        f"37 records that the leader of epoch 4 {words} from the log of broker 2 5.0 s ago, into the salvage: "
        "`tanist salvage"
    )


def test_what_stood_behind_damage_has_no_leader(tmp_path: Path) -> None:
    clause = salvage_clause(news(records=1, epoch=-1, why=SalvageReason.RECOVERY_CUT), tmp_path)
    assert clause.startswith("1 record that stood behind damage was cut from the log of broker 2 ")


@pytest.mark.parametrize(
    ("age_ms", "said"),
    [(40, "0.0 s"), (9_940, "9.9 s"), (12_300, "12 s"), (180_000, "3 min"), (18_000_000, "5 h"), (2e8, "2 days")],
)
def test_spans(age_ms: float, said: str) -> None:
    assert span(age_ms) == said
