"""The simulator's report: what it counts is what the seeds did, and a failure is in it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from tanist.lab.mutations.examination import Row, Seen
from tanist.lab.report import pages
from tanist.lab.report.facts import Facts, Played
from tanist.lab.simulation.properties import MEANINGS
from tanist.lab.simulation.running import Terms, Totals, play_seed
from tanist.sim.checkers.violation import Violation
from tanist.sim.run.chaos_run import SeedResult


def facts(*results: SeedResult, mutations: tuple[Row, ...] = ()) -> Facts:
    totals = Totals()
    for each in results:
        totals.add(each)
    seeds = range(results[0].seed, results[-1].seed + 1)
    return Facts("0.1", "abc", "2026-01-01", [Played("clusters", "", seeds, Terms(), totals, 1.0)], MEANINGS, mutations)


def test_a_report_of_one_seed_has_its_faults() -> None:
    result = play_seed(3, Terms())
    found = facts(result)
    counts = {kind: count for kind, _, count in found.faults()}
    assert sum(counts.values()) == result.faults
    assert counts == {kind: result.counts[f"fault: {kind}"] for kind in counts}
    page = pages.markdown(found, "p.svg")
    assert "`tanist lab run --seeds 3..3`" in page
    assert f"| clusters | 1 | 0 | {result.virtual_ms / 3_600_000:.2f} | {result.faults:,} |" in page
    assert "## Violations" not in page
    assert "## Broken rules" not in page
    assert f"checks {len(MEANINGS)} properties" in page
    reached = [name for name, _, count in found.played[0].situations if count]
    assert f"clusters: {len(reached)} of {len(found.played[0].situations)} situations reached." in page
    missing = page.partition(" Not reached: ")[2].partition(".\n")[0].split("; ")
    assert missing == [name for name, _, count in found.played[0].situations if not count]


def test_a_violation_is_named_with_its_seed() -> None:
    found = facts(SeedResult(7, violation=Violation("S4", 0, "why")))
    assert found.violations == ["seed 7 violates S4 (`tanist lab run --seeds 7..7`)"]
    assert "seed 7 violates S4" in pages.markdown(found, "p.svg")
    assert f"| S4 | {MEANINGS['S4']} |" in pages.markdown(found, "p.svg")
    assert "seed 7 violates S4" in pages.html(found)


def test_a_rule_that_nothing_notices_is_named() -> None:
    noticed = Row("A1", "one rule", simulated=Seen("S4", 1, 10, ""), seeds_tried=1)
    missed = Row("A2", "another", seeds_tried=100)
    same = Row("A3", "a third", equivalent="nothing changes", seeds_tried=100)
    page = pages.markdown(facts(SeedResult(1), mutations=(noticed, missed, same)), "p.svg")
    assert "1 of 2 noticed, 1 missed: A2; 1 more change nothing" in page
    assert "| A2 | another | 100 |" in page
    assert "| A1 |" not in page


def test_the_picture_has_a_bar_for_each_fault() -> None:
    drawn = pages.picture([("crash", "", 10), ("power-loss", "", 5), ("rot", "", 0)], "Faults & more")
    bars = [each for each in ElementTree.fromstring(drawn).iter() if each.get("class") == "bar"]
    crash, power_loss = (float(bar.attrib["width"].removesuffix("%")) for bar in bars)
    assert power_loss == crash / 2
    assert pages.picture([], "none")


def test_html_escapes_and_carries_its_picture() -> None:
    page = pages.html(facts(SeedResult(1), mutations=(Row("A1", "a < b", seeds_tried=1),)))
    assert "</text></svg></figure>" in page
    assert "a &lt; b" in page
    assert "http" not in page
