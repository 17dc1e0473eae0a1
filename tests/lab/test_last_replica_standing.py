"""The play of `tanist lab demo`: both endings, and the same bytes each time."""

from __future__ import annotations

import json

from click.testing import CliRunner

from tanist.cli.app import app
from tanist.lab.last_replica_standing import SEED, Ending, Scene, play, setup, steps
from tanist.lab.mutations.patching import replaced
from tanist.lab.stage import Stage


def played(*, elr: bool) -> tuple[list[Scene], Ending]:
    *scenes, ending = play(elr=elr)
    assert isinstance(ending, Ending)
    return [scene for scene in scenes if isinstance(scene, Scene)], ending


def test_without_elr_the_last_replica_takes_acknowledged_records_with_it() -> None:
    scenes, ending = played(elr=False)
    assert [scene.state.leader for scene in scenes] == [1, 2, 3, -1, -1, 3]
    assert all(scene.state.elr == () for scene in scenes)
    assert scenes[3].state.isr == scenes[4].state.isr == (3,)
    assert (ending.acknowledged, ending.refused) == (150, 10)
    assert ending.lost
    assert ending.consumed == 150 - len(ending.lost)
    assert ending.salvaged == len(ending.lost)


def test_with_elr_the_eligible_replica_leads_and_nothing_is_lost() -> None:
    scenes, ending = played(elr=True)
    assert [scene.state.leader for scene in scenes] == [1, 2, 3, -1, 2, 2]
    assert [scene.state.elr for scene in scenes] == [(), (), (2,), (2, 3), (), ()]
    assert (ending.acknowledged, ending.refused, ending.consumed, ending.lost) == (150, 10, 150, ())


def test_before_the_kip_the_high_watermark_does_not_wait_either() -> None:
    for elr in (False, True):
        stage = Stage(setup(elr=elr), SEED)
        with replaced(stage.setup.breaking):
            stage.begin()
            for when, _ in steps(stage):
                if when == "T2":
                    break
            assert stage.state.isr == (3,)
            hosted = stage.replica(3)
            assert hosted is not None
            assert hosted.leader is not None
            assert hosted.leader._may_advance() is not elr


def test_the_demo_says_which_high_watermark_it_shows() -> None:
    before, after = CliRunner().invoke(app, ["lab", "demo"]).output.split("KIP-966, as `tanist up` makes it")
    assert "goes on with those in sync (Kafka before KIP-966)" in " ".join(before.split())
    assert "stands still" not in before
    assert "the high watermark stands still (KIP-966 high watermark requirement)" in " ".join(after.split())


def test_the_demo_prints_the_same_bytes_each_time() -> None:
    first, second = (CliRunner().invoke(app, ["lab", "demo"]) for _ in range(2))
    assert first.exit_code == 0
    assert first.output == second.output
    assert "50 LOST (101 to 150)" in first.output
    assert "150 in the log: none lost" in first.output


def test_the_demo_prints_its_scenes_as_json() -> None:
    done = CliRunner().invoke(app, ["lab", "demo", "--json"])
    assert done.exit_code == 0
    shown = json.loads(done.stdout)
    assert [len(shown[name]) for name in ("without", "with")] == [7, 7]
    assert shown["without"][-1]["acknowledged"] == 150
    assert shown["with"][1]["state"]["isr"] == [2, 3]
