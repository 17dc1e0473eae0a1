"""The reports: what they say, and that they need nothing else. No Spark session is made."""

from __future__ import annotations

import re
from dataclasses import replace
from uuid import UUID

import pytest

from tanist.log.salvage_manifest import Manifest, Why
from tanist.spark.jobs.audit import AuditResult, HighWatermarkPoint
from tanist.spark.jobs.audit_logs import Known
from tanist.spark.jobs.audit_metadata import Change, Metadata
from tanist.spark.jobs.audit_replicas import PartitionFacts, Rail
from tanist.spark.jobs.durability import DurabilityResult, Estimate, Row, Setting, Weather
from tanist.spark.jobs.findings import Finding, Kind
from tanist.spark.report import audit_page, durability_page, rails

PLACE = ("orders", 0)
LOST = [
    Finding(
        Kind.LOST, "orders", 0, offset, offset, 1, (1,), (2,), f"<value {offset}>", "p", "above", "leader epoch 4: …"
    )
    for offset in range(500, 620)
]
MISSING = Finding(Kind.MISSING, "orders", 0, 100, 149, 50, (), (3,), None, None, "held by 1,2", None)


def result(findings: list[Finding]) -> AuditResult:
    manifest = Manifest(
        "1795-2-1", 2, "orders", UUID(int=1), 0, Why.FOLLOWER_TRUNCATION, 1_790_000_000_000, 4, 500, 500, 620,
        ((1, 500),), (),
    )  # fmt: skip
    made = AuditResult(
        findings=findings,
        rails=[Rail("orders", 0, replica, 0, 0, 499, 500) for replica in (1, 2, 3)],
        facts={PLACE: PartitionFacts((1, 2, 3), 3, 0, 500, {1: 0, 2: 0, 3: 0}, True)},
        known=Known(salvage=(manifest,)),
        metadata=Metadata({PLACE: [Change(40, 1_790_000_000_000, 3, 4, (1, 2, 3), (3,), (), True)]}),
        high_watermarks=[HighWatermarkPoint("orders", 0, (1_790_000_000 + n) * 10**9, 100 * n) for n in range(5)],
    )
    for each in findings:
        key = (each.kind, each.topic, each.partition)
        made.counts[key] = made.counts.get(key, 0) + each.records
    return made


def test_the_page_stands_alone_and_escapes_what_came_from_a_cluster() -> None:
    page = audit_page.page(result([*LOST, MISSING]), title="<cluster>")
    assert re.findall(r"https?://[^\"]+", page.replace("http://www.w3.org/2000/svg", "")) == []
    assert not re.search(r"<(script|link|img|iframe)\b|@import|url\(", page)
    assert "&lt;cluster&gt;" in page
    assert "<cluster>" not in page
    assert "&lt;value 500&gt; … &lt;value 619&gt;" in page


def test_it_says_what_was_lost_where_and_since_when() -> None:
    page = audit_page.page(result([*LOST, MISSING]), title="t")
    assert "120 acknowledged records are lost." in page
    assert "500 to 619" in page
    assert "elected uncleanly" in page
    assert "1795-2-1" in page
    assert "120 offsets saved: follower-truncation" in page
    assert "Nothing is wrong" in audit_page.page(replace(result([])), title="t")


def test_the_rails_show_each_thing_where_it_is() -> None:
    made = result([*LOST, MISSING])
    window = rails.whole(made, PLACE)
    assert (window.first, window.last) == (0, 620)
    assert rails.closer(made, PLACE, window) is None
    picture = rails.picture(made, PLACE, window, "t")
    left, right = window.x(500), window.x(620)
    marks = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="[\d.]+" fill="(#\w+)"', picture)
    lost = [(float(x), float(width)) for x, width, fill in marks if fill == rails.LOST]
    assert lost == [(pytest.approx(left, abs=0.1), pytest.approx(right - left, abs=0.1))]
    saved = [float(x) for x, _, fill in marks if fill == rails.SAVED]
    assert saved == [pytest.approx(left, abs=0.1)]
    missing = re.findall(r'<rect x="([\d.]+)"[^>]*stroke="#D00000"', picture)
    assert [float(x) for x in missing] == [pytest.approx(window.x(100), abs=0.1)]


def test_what_is_small_beside_the_whole_is_shown_closer() -> None:
    made = result([replace(MISSING, first_offset=100, last_offset=104)])
    near = rails.closer(made, PLACE, rails.whole(made, PLACE))
    assert near == rails.Window(90, 115)


def test_a_picture_has_a_bounded_number_of_marks_however_much_is_wrong() -> None:
    many = [replace(MISSING, first_offset=10 * n, last_offset=10 * n, records=1) for n in range(100_000)]
    made = result(many)
    made.rails = [replace(rail, last_offset=1_000_000) for rail in made.rails]
    assert rails.picture(made, PLACE, rails.whole(made, PLACE), "t").count("<rect") < 2_000
    assert audit_page.page(made, title="t").count("<tr>") < 400


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (1, 200, 0.0009, 0.0278), (0, 0, 0.0, 1.0)],
)
def test_wilsons_interval_is_that_of_the_tables(hits: int, runs: int, low: float, high: float) -> None:
    assert Estimate(hits, runs).interval == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_the_durability_page_shows_each_setting_and_how_to_replay() -> None:
    rows = [
        Row(Setting(3, 1, "Aggressive"), Estimate(20, 200), Estimate(3, 200), 1000, 40, 0.01, [5, 9]),
        Row(Setting(3, 2, "Balanced"), Estimate(0, 200), Estimate(30, 200), 900, 0, 0.08, [], {7: "L2: <stuck>"}),
    ]
    page = durability_page.page(DurabilityResult(Weather(), range(1, 201), rows))
    assert "RF 3, min ISR 1, Aggressive lost records with the seeds 5, 9" in page
    assert "10.0 % (6.6 to 14.9)" in page
    assert "L2: &lt;stuck&gt;" in page
    assert page.count("<circle") == 4
