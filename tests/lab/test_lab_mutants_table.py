"""`tanist lab mutants`: its table, the page that it writes, and how it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.lab.mutations import table
from tanist.lab.mutations.catalogue import MUTANTS
from tanist.lab.mutations.examination import Counterexample, Row, Seen

SEEN = Seen("S4", 7, 123, "S4 at 1.5 s: …")
FOUND = Counterexample("S2", "one-outside", 5, 678, "S2: …")
BOTH = Row("A5", "any life may join", "", SEEN, 7, 1.25, "late_lives", FOUND, True, 0.5)
SIMULATED = Row("A36", "disks lie", "", SEEN, 7, 1.25)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["lab", "mutants", *arguments])


# -- rows


def test_a_row_begins_with_its_number() -> None:
    line_text = table.line(table.cells(BOTH))
    assert line_text == "* **A5** any life may join: S4 in `late_lives`; S2 in `one-outside`"


def test_what_was_not_asked_is_not_claimed() -> None:
    assert table.cells(SIMULATED)[3] == ""
    assert table.cells(replace(BOTH, model_asked=False, checked=None))[3] == "not asked"
    assert table.cells(replace(BOTH, seeds_tried=0, simulated=None))[2] == "not asked"


def test_what_was_not_caught_is_said() -> None:
    assert table.cells(replace(BOTH, simulated=None))[2] == "NOT CAUGHT in 7 seeds"
    assert table.cells(replace(BOTH, checked=None))[3] == "NOT CAUGHT"
    assert table.cells(replace(BOTH, simulated=None, equivalent="nobody asks"))[2] == "equivalent, nobody asks"
    assert table.cells(replace(BOTH, simulated=None, fault="seed 1: fails; anyway"))[2] == "seed 1, fails, anyway"


def test_the_sum_names_those_that_escaped() -> None:
    rows = [BOTH, SIMULATED]
    assert table.summary(rows, 3.2) == ("2 mutations: 2 by the simulator, 1 by the model checker; none escaped (3 s)")
    late = replace(SIMULATED, seeds_tried=0, simulated=None)
    assert not late.asked
    assert "; none of those escaped, 1 not examined (1 s)" in table.summary([BOTH, late], 1.0)
    assert "NOT CAUGHT: A36 (" in table.summary([BOTH, replace(SIMULATED, simulated=None)], 1.0)


# -- the page


def test_a_part_of_the_table_is_made_anew() -> None:
    empty = f"before\n{table.BEGIN}\n{table.END}\nafter"
    first = table.rewritten(empty, [SIMULATED, BOTH])
    assert first.splitlines() == [
        "before",
        table.BEGIN,
        table.line(table.cells(BOTH)),  # in the list's order
        table.line(table.cells(SIMULATED)),
        table.END,
        "after",
    ]
    other = replace(BOTH, simulated=replace(SEEN, property_id="S9"), model_asked=False, checked=None, model_seconds=0.0)
    second = table.rewritten(first, [other])
    assert table.line(table.cells(SIMULATED)) in second
    assert "* **A5** any life may join: S9 in `late_lives`; S2 in `one-outside`" in second
    assert table.rewritten(second, []) == second


@pytest.mark.parametrize("page", ["", table.BEGIN, f"{table.END} {table.BEGIN}"])
def test_a_page_without_a_table_stays_as_it_is(page: str) -> None:
    with pytest.raises(table.NoTable):
        table.rewritten(page, [BOTH])


def test_the_page_of_the_documentation_has_a_row_for_each() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mutations.md").read_text()
    for name in MUTANTS:
        (row,) = [line for line in page.splitlines() if line.startswith(f"* **{name}** ")]
        assert "NOT CAUGHT" not in row
        assert "not asked" not in row


# -- the command


def test_a_mutation_that_is_caught(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{table.BEGIN}\n{table.END}\n")
    result = _run("a11", "--seeds", "1..3", "--write", str(page))
    assert result.exit_code == 0
    *_, row, summary = result.stdout.splitlines()  # on stderr a slow machine has progress
    assert row.startswith("* **A11** a replica behind the high watermark joins the ISR: S2 in `")
    assert summary.startswith("1 mutations: 1 by the simulator, 1 by the model checker; none escaped (")
    assert row in page.read_text()


def test_the_rules_of_groups_are_tried_as_well() -> None:
    result = _run("g7", "--seeds", "1..3")
    assert result.exit_code == 0
    *_, row, summary = result.stdout.splitlines()  # on stderr a slow machine has progress
    assert row == "* **G7** a partition is given on before its owner has given it up: C3"
    assert summary.startswith("1 mutations: 1 by the simulator; none escaped (")


def test_json() -> None:
    result = _run("A5", "--by", "simulator", "--json")
    assert result.exit_code == 0
    (row,) = json.loads(result.output)["mutations"]
    assert row["name"] == "A5"
    assert row["simulated"]["property_id"] == "S14"
    assert not row["missed"]


@pytest.mark.parametrize(("equivalent", "status"), [("", 1), ("it changes nothing", 0)])
def test_a_mutation_that_is_not_caught(equivalent: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = replace(MUTANTS["A11"], patches=tuple, equivalent=equivalent)
    monkeypatch.setitem(MUTANTS, "A11", harmless)
    result = _run("A11", "--seeds", "2..2", "--by", "simulator")
    assert result.exit_code == status
    assert ("NOT CAUGHT: A11" in result.output) == (status == 1)


def test_no_time_is_no_proof() -> None:
    result = _run("A11", "--minutes", "0")
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "no time was left for A11"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["A0"], "no such mutation: A0; there are A1, A2"),
        (["--seeds", "9..3"], "9..3 is empty"),
        (["--seeds", "some"], "'some' is neither a seed nor a range A..B"),
        (["A36", "--by", "model"], "the model checker does not cover A36"),
        (["G1", "--by", "model"], "the model checker does not cover G1"),
        (["A1", "--write", __file__], "there is no table between"),
    ],
)
def test_what_makes_no_sense(arguments: list[str], message: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert message in result.output
