"""What-if: what is known to be true comes out, every loss can be played, and what is no question is refused."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.controller.partitions.recovery_strategy import Strategy
from tanist.lab.model.partition.losses import Until
from tanist.lab.model_scenario import moments
from tanist.lab.what_if import Question, QuestionError, Table, answer, report
from tanist.lab.what_if.question import SETTINGS

ROWS = {setting.name: setting for setting in SETTINGS}


@pytest.fixture(scope="module")
def three() -> Table:
    """Three replicas, of which two have to be in sync; not very far."""
    return answer(Question(unclean=2, states=1_200))


def _lost(table: Table, row: str) -> list[int]:
    return [cell.lost for cell in table.row(ROWS[row])]


# -- what is known to be true -----------------------------------------------------------------------------------------


def test_acks_1_loses_without_any_unclean_shutdown(three: Table) -> None:
    assert min(_lost(three, "acks-1")) >= 1


def test_before_elr_one_unclean_shutdown_is_enough(three: Table) -> None:
    """KIP-966's motivation."""
    without, one, two = _lost(three, "before-elr")
    assert (without, one >= 1, two >= 1) == (0, True, True)


def test_with_elr_one_unclean_shutdown_is_safe_and_as_many_as_min_isr_are_not(three: Table) -> None:
    without, one, two = _lost(three, "elr")
    assert (without, one, two >= 1) == (0, 0, True)


def test_balanced_is_safe_with_one_where_aggressive_is_not(three: Table) -> None:
    assert _lost(three, "balanced")[:2] == [0, 0]
    assert _lost(three, "aggressive")[1] >= 1


def test_before_elr_the_last_replica_is_waited_for(three: Table) -> None:
    assert all(Until.CANDIDATE in cell.waits for cell in three.row(ROWS["before-elr"]))


@pytest.mark.parametrize(("replicas", "min_isr"), [(2, 2), (2, 1), (1, 1)])
def test_balanced_loses_with_as_many_as_min_isr_and_not_with_fewer(replicas: int, min_isr: int) -> None:
    question = Question(replicas, min_isr, unclean=min_isr, states=2_500)
    *fewer, as_many = answer(question, settings=[ROWS["balanced"]]).cells
    assert [cell.lost for cell in fewer] == [0] * min_isr
    assert as_many.lost >= 1


@pytest.mark.slow
def test_balanced_of_three_loses_with_two_and_not_with_one() -> None:
    cells = answer(Question(unclean=2, states=16_000), settings=[ROWS["balanced"]]).cells
    assert [cell.lost >= 1 for cell in cells] == [False, False, True]


def test_a_cell_can_be_exhausted() -> None:
    (cell,) = answer(Question(2, 2, unclean=0, states=20_000), settings=[ROWS["elr"]]).cells
    assert (cell.depth, cell.lost, report.verdict(cell)) == (None, 0, "safe")


def test_races_are_schedules_too() -> None:
    """What is lost when all arrives in time is lost when it may be late."""
    question = Question(2, 1, unclean=1, depth=3, races=True)
    cells = answer(question, settings=[ROWS["before-elr"]]).cells
    assert [cell.lost >= 1 for cell in cells] == [False, True]
    *_, last = moments(cells[1].scenario or {})
    assert last.broken


# -- what is shown ----------------------------------------------------------------------------------------------------


def test_every_loss_can_be_played(three: Table) -> None:
    losing = [cell for cell in three.cells if cell.lost]
    assert len(losing) >= 9
    for cell in losing:
        *_, last = moments(json.loads(json.dumps(cell.scenario)))
        assert last.broken
        lost, _, acknowledged = last.text.partition(" of ")
        assert len(lost.split(", ")) == cell.lost
        assert acknowledged.startswith(f"{cell.acknowledged} acknowledged: lost.")


def test_more_shutdowns_are_never_better(three: Table) -> None:
    for setting in SETTINGS:
        lost = _lost(three, setting.name)
        assert lost == sorted(lost)
        waits = [cell.waits for cell in three.row(setting)]
        assert all(fewer <= more for fewer, more in pairwise(waits))


def test_what_was_enumerated_is_said(three: Table) -> None:
    written = {cell.name: f"{cell.name}.json" for cell in three.cells if cell.lost}
    reported = list(report.lines(three, written, 1.0))
    text = "\n".join(reported)
    assert "the ISR has 3, 2 or 1 members, with up to 1 more record, 1 fencing, 1 clean shutdown" in text
    assert "whatever is under way arrives before the next event" in text
    assert "  tanist lab replay before-elr-1.json" in reported
    assert [line[:2] for line in reported if line.endswith("=Balanced")] == ["> "]
    assert reported[-1].startswith("With strategy Balanced, ")
    row = reported[next(at for at, line in enumerate(reported) if "version=0" in line) + 1]
    assert [word in row for word in ("safe", "loses")] == [True, True]


def test_the_summary_is_of_the_strategy_that_is_asked_about(three: Table) -> None:
    bold = Table(Question(strategy=Strategy.AGGRESSIVE, unclean=2), three.cells)
    assert report.summary(bold) == (
        "With strategy Aggressive, acknowledged records can be lost without any unclean shutdown."
    )
    careful = Table(Question(strategy=Strategy.NONE, unclean=2), three.cells)
    assert report.summary(careful).startswith("With strategy None, 1 unclean shutdown costs no acknowledged record in")
    assert report.summary(careful).endswith("; 2 unclean shutdowns can cost 1 of 1.")


# -- the command ------------------------------------------------------------------------------------------------------


def test_nothing_is_said_of_what_no_schedule_was_long_enough_for() -> None:
    """A schedule of two events has at most two unclean shutdowns: of three it tells nothing."""
    table = answer(Question(unclean=3, states=600), settings=[ROWS["balanced"]])
    cells = table.cells
    assert [cell.depth for cell in cells] == [3, 2, 2, 2]
    assert [report.verdict(cell) for cell in cells] == ["safe to 3", "safe to 2", "safe to 2", "not known"]
    assert report.summary(table) == (
        "With strategy Balanced, 2 unclean shutdowns cost no acknowledged record in any schedule of up to 2 events; of "
        "3 unclean shutdowns nothing is known, for the schedules were too short for so many: more --states"
    )
    found = report.as_json(table, {}, 1.0)["cells"]
    assert [each["safe"] for each in found] == [True, True, True, None]
    legend = list(report.lines(table, {}, 1.0))
    assert any(line.startswith("not known ") for line in legend)
    tiny = answer(Question(unclean=0, states=1), settings=[ROWS["balanced"]])
    assert report.verdict(tiny.cells[0]) == "not known"
    assert report.summary(tiny) == "With strategy Balanced, nothing is known: no schedule was enumerated. More --states"


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["what-if", *arguments])


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "found"
    result = _run("--rf", "2", "--min-isr", "1", "--unclean", "1", "--depth", "3", "--out", str(out))
    assert result.exit_code == 0, result.stdout
    files = {file.name for file in out.iterdir()}
    assert "rf2-min1-before-elr-1.json" in files
    for file in out.iterdir():
        assert list(moments(json.loads(file.read_text())))[-1].broken
    assert f"tanist lab replay {out / 'rf2-min1-before-elr-1.json'}" in result.stdout


def test_json(tmp_path: Path) -> None:
    result = _run("--rf", "1", "--min-isr", "1", "--unclean", "1", "--depth", "2", "--json", "--out", str(tmp_path))
    reported = json.loads(result.stdout)
    assert [(cell["setting"], cell["unclean_shutdowns"]) for cell in reported["cells"][:3]] == [
        ("acks-1", 0),
        ("acks-1", 1),
        ("before-elr", 0),
    ]
    assert all((cell["scenario"] is not None) == (cell["lost"] > 0) for cell in reported["cells"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rf", "6"), "a replication factor of 6 is not enumerated: ask for 1 to 5"),
        (("--rf", "0"), "ask for 1 to 5"),
        (("--min-isr", "4"), "min.insync.replicas 4 is more than the 3 replicas"),
        (("--min-isr", "0"), "it is 1 or more"),
        (("--unclean", "4"), "ask for up to 3"),
        (("--states", "0"), "enumerates nothing"),
        (("--strategy", "bold"), "'bold' is not one of"),
    ],
)
def test_what_is_no_question(arguments: tuple[str, ...], said: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_a_question_is_refused_before_anything_is_searched() -> None:
    with pytest.raises(QuestionError):
        Question(replication_factor=3, min_isr=4)
