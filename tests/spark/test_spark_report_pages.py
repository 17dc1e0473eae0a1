"""The reports: what they say, and that they need nothing else. No Spark session is made."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

import tanist.lab.pages
from tanist.lab.anomalies import OF_AUDITS, Anomaly
from tanist.lab.pages.chart import spaced
from tanist.log.salvage.manifest import Manifest, SalvageReason
from tanist.spark.jobs.audit.facts import EpochRange, PartitionFacts
from tanist.spark.jobs.audit.findings import Finding, merged
from tanist.spark.jobs.audit.log_files import Known
from tanist.spark.jobs.audit.metadata import Change, Metadata
from tanist.spark.jobs.audit.result import AuditResult, HighWatermarkPoint
from tanist.spark.jobs.seeds.lots import Lot, ReplicationSettings
from tanist.spark.jobs.seeds.summary import Estimate, Summary, Violations
from tanist.spark.jobs.seeds.table import SeedTable
from tanist.spark.report import audit_page, replica_bars, seeds_page

PLACE = ("orders", 0)
STYLE = Path(tanist.lab.pages.__file__).with_name("chart.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+):\s*(#\w+)", part)) for part in STYLE[: STYLE.index("svg svg")].split("@media")
)
LOST = [
    Finding(
        Anomaly.LOST_WRITE,
        "orders",
        0,
        offset,
        offset,
        1,
        (1,),
        (2,),
        f"<value {offset}>",
        "p",
        "above",
        "leader epoch 4: …",
    )
    for offset in range(500, 620)
]
MISSING = Finding(Anomaly.MISSING, "orders", 0, 100, 149, 50, (), (3,), None, None, "held by 1,2", None)


def result(findings: list[Finding]) -> AuditResult:
    manifest = Manifest(
        "1795-2-1", 2, "orders", UUID(int=1), 0, SalvageReason.FOLLOWER_TRUNCATION, 1_790_000_000_000, 4, 500, 500, 620,
        ((1, 500),), (),
    )  # fmt: skip
    made = AuditResult(
        findings=findings,
        epoch_ranges=[EpochRange("orders", 0, replica, 0, 0, 499, 500) for replica in (1, 2, 3)],
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
    made = result([*LOST, MISSING])
    page = audit_page.page(made, title="t")
    assert "120 acknowledged records are lost." in page
    assert "500 to 619" in page
    assert "elected uncleanly" in page
    assert "1795-2-1" in page
    assert "120 offsets saved: follower-truncation" in page


def test_without_a_history_agreeing_replicas_are_no_proof() -> None:
    clean = result([])
    assert "The replicas agree" in audit_page.page(clean, title="t")
    assert "Nothing is wrong" not in audit_page.page(clean, title="t")
    clean.has_history = True
    assert "Nothing is wrong" in audit_page.page(clean, title="t")


def test_expired_records_are_distinguished_from_lost_ones() -> None:
    made = result([])
    made.facts[PLACE] = replace(made.facts[PLACE], start=100)
    made.expired = 90
    assert "older records have expired: 90 acknowledged sends from there are not judged" in audit_page.page(
        made, title="t"
    )


def test_findings_are_named_by_what_they_mean_and_lost_acknowledged_records_come_first() -> None:
    every = [replace(MISSING, kind=kind) for kind in reversed(OF_AUDITS)]
    page = audit_page.page(result(merged(every)), title="t")
    cells = re.findall(r'<td class="name"[^>]*><span>([^<]+)</span>', page[: page.index("</table>")])
    named = [html.unescape(cell) for cell in cells]
    assert named == [kind.title for kind in OF_AUDITS]
    assert named[0] == "lost acknowledged records"
    assert len(set(named)) == len(OF_AUDITS)


def marks(drawn: str, kind: str) -> list[tuple[float, float]]:
    """Where marks of a kind are, and how wide, in per cent."""
    found = re.findall(r'<rect x="([\d.]+)%" y="[\d.]+" width="([\d.]+)%" height="[\d.]+" class="([\w -]+)"', drawn)
    return [(float(x), float(width)) for x, width, each in found if each == kind]


def test_the_rails_show_each_thing_where_it_is() -> None:
    made = result([*LOST, MISSING])
    window = replica_bars.whole(made, PLACE)
    assert (window.first, window.last) == (0, 620)
    assert replica_bars.closer(made, PLACE, window) is None
    picture = "".join(row.strip for row in replica_bars.rows(made, PLACE, window))
    left, right = 100 * window.x(500), 100 * window.x(620)
    assert marks(picture, "lost") == [(pytest.approx(left, abs=0.01), pytest.approx(right - left, abs=0.01))]
    assert [x for x, _ in marks(picture, "saved")] == [pytest.approx(left, abs=0.01)]
    assert [x for x, _ in marks(picture, "missing")] == [pytest.approx(100 * window.x(100), abs=0.01)]


def test_a_partition_of_which_all_is_lost_has_a_picture() -> None:
    made = result([replace(each, first_offset=each.first_offset - 500, last_offset=None) for each in LOST[:5]])  # type: ignore[operator]
    made.epoch_ranges, made.known = [], Known()
    made.facts[PLACE] = PartitionFacts((1, 2, 3), 3, 0, 0, {1: 0, 2: 0, 3: 0}, True)
    assert replica_bars.whole(made, PLACE) == replica_bars.Window(0, 5)
    page = audit_page.page(made, title="t")
    assert marks(page, "lost") == [(0.0, 100.0)]
    assert marks(page, "held a") == []


def test_a_partition_without_a_replica_is_shown_without_a_picture() -> None:
    page = audit_page.page(result([replace(LOST[0], topic="gone")]), title="t")
    assert "<h2>gone-0</h2><p>No replica of this partition is here.</p>" in page


@pytest.mark.parametrize(
    ("kinds", "marked"),
    [
        ([Anomaly.LOST_WRITE], {"lost", "saved"}),
        ([Anomaly.MISSING, Anomaly.DAMAGED], {"missing", "damaged", "saved"}),
        ([Anomaly.DIVERGENT], {"divergent", "saved"}),
        ([], {"saved"}),
    ],
)
def test_the_legend_has_what_occurs_and_nothing_else(kinds: list[Anomaly], marked: set[str]) -> None:
    page = audit_page.page(result([replace(MISSING, kind=kind) for kind in kinds]), title="t")
    always = {"held a", "high-watermark", "unclean", "way"}
    entries = re.findall(r'<li data-mark="([\w -]+)">', page)
    assert set(entries) == marked | always
    assert len(entries) == len(set(entries))
    drawn = page[page.index("<h2>") :]
    for kind in replica_bars.MARKS:
        assert (f'class="{kind}"' in drawn) is (kind in entries)


def test_nothing_that_is_sound_has_a_legend() -> None:
    made = result([])
    made.known = Known()
    page = audit_page.page(made, title="t")
    assert "data-mark" not in page
    assert "1 partition with nothing to show" in page


def pages() -> list[str]:
    made = result([*LOST, MISSING])
    return [audit_page.page(made, title="t"), seeds_page.page(SeedTable(Path("table")), [KIND, setting(20, 1, 3)])]


KIND = Summary(
    Lot.of("groups"), 300, 4_000_000, 5_000_000, 1_000.0, violations=[Violations("L2", 2, 7, "L2 at 3 s: <stuck>")],
    growth=[(1, 20), (2, 25), (40, 31), (300, 31)], never={"losses": "none <so far>"},
)  # fmt: skip


def setting(runs: int, lost: int, out: int, *, least: int = 1, strategy: str = "Aggressive", acked: int = 9) -> Summary:
    lot = Lot.of_setting(ReplicationSettings(3, least, strategy))
    return Summary(lot, runs, acknowledged=acked, loss=Estimate(lost, runs), outage=Estimate(out, runs))


@pytest.mark.parametrize("number", [0, 1])
def test_a_page_takes_the_width_that_there_is(number: int) -> None:
    page = pages()[number]
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "@media (max-width:899px){" in page
    # Pictures have their widths and places in per cent; a number without a unit would be pixels.
    for tag in re.findall(r"<(?:svg|rect|line|text|circle)\b[^>]*>", page[page.index("</style>") :]):
        if 'width="22"' in tag or 'x1="12"' in tag or 'x2="24"' in tag:
            continue  # of the legend's icons
        for name, value in re.findall(r' (x|x1|x2|cx|width)="([^"]+)"', tag):
            assert value.endswith("%") or float(value) == 0, (name, tag)
    style = page[page.index("<style>") : page.index("</style>")]
    assert re.findall(r"(?<![-\w])width:\s*\d{3,}px", style) == []
    assert re.findall(r"min-width", style) == []


@pytest.mark.parametrize("number", [0, 1])
def test_a_page_has_colours_for_the_dark_and_no_colour_but_those(number: int) -> None:
    page = pages()[number]
    assert "color-scheme:light dark" in page
    assert "@media (prefers-color-scheme:dark){:root{" in page
    assert set(LIGHT) == set(DARK)
    style_end = page.index("</style>")
    assert re.findall(r'(?:fill|stroke|color)="?#', page[style_end:]) == []
    used = set(re.findall(r"var\(--([\w-]+)\)", page[:style_end]))
    assert used == set(LIGHT)


def contrast(one: str, other: str) -> float:
    """As WCAG has it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_text_can_be_read_on_its_ground(colours: dict[str, str]) -> None:
    for text in ("ink", "quiet", "bad", "good"):
        assert contrast(colours[text], colours["paper"]) >= 4.5, text
    for shade in ("held-a", "held-b"):
        assert contrast(colours["on-held"], colours[shade]) >= 4.5, shade
    for drawn in ("lost", "saved", "line", "outage"):
        assert contrast(colours[drawn], colours["paper"]) >= 3, drawn


def test_labels_stand_beside_the_lines_or_before_them() -> None:
    page = pages()[0]
    for strip in re.findall(r'</div><svg height="[\d.]+">.*?</svg></div>', page, re.DOTALL):
        lines = [
            (float(top), float(bottom))
            for top, bottom in re.findall(r'<line [^>]*y1="([\d.]+)"[^>]* y2="([\d.]+)"', strip)
        ]
        for text, y, end in (
            (each[0], float(each[1]), each.end()) for each in re.finditer(r'<text [^>]*y="([\d.]+)"[^>]*>', strip)
        ):
            crossed = [line for line in lines if line[0] < y and line[1] > y - 9]
            # What a line may reach has a rim, and is drawn after every line.
            assert not crossed or ("halo" in text and "<line" not in strip[end:]), text


def test_labels_for_which_there_is_no_space_are_left_out() -> None:
    assert spaced([0.0, 0.125, 0.25, 0.375], 0.3, 0.125) == {0: "", 3: "", 1: "wide", 2: "wide"}
    assert spaced([0.5, 0.51], 0.2, 0.1) == {0: ""}
    assert spaced([0.5, 0.51], 0.2, 0.1, first={1}) == {1: ""}
    assert spaced([], 0.2, 0.1) == {}


def test_what_is_small_beside_the_whole_is_shown_closer() -> None:
    made = result([replace(MISSING, first_offset=100, last_offset=104)])
    near = replica_bars.closer(made, PLACE, replica_bars.whole(made, PLACE))
    assert near == replica_bars.Window(90, 115)


def test_a_picture_has_a_bounded_number_of_marks_however_much_is_wrong() -> None:
    many = [replace(MISSING, first_offset=10 * n, last_offset=10 * n, records=1) for n in range(100_000)]
    made = result(many)
    made.epoch_ranges = [replace(held, last_offset=1_000_000) for held in made.epoch_ranges]
    rows = replica_bars.rows(made, PLACE, replica_bars.whole(made, PLACE))
    assert sum(row.strip.count("<rect") for row in rows) < 2_000
    assert audit_page.page(made, title="t").count("<tr>") < 400


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (1, 200, 0.0009, 0.0278), (0, 0, 0.0, 1.0)],
)
def test_wilsons_interval_is_that_of_the_tables(hits: int, runs: int, low: float, high: float) -> None:
    assert Estimate(hits, runs).interval == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_the_page_of_seeds_shows_violations_coverage_and_cost() -> None:
    page = seeds_page.page(SeedTable(Path("table")), [KIND])
    assert "2 seeds violated a property." in page
    assert "L2 at 3 s: &lt;stuck&gt;" in page
    assert "every node comes to have all committed metadata" in page
    assert "none &lt;so far&gt;" in page
    assert "<span>4,000</span>" in page, "events per second of a core"
    assert "<span>0.93</span>" in page, "core hours for 1,000 seeds"
    assert f"31 of {KIND.expected} situations" in page
    (line,) = re.findall(r'<polyline points="([^"]+)" class="way"', page)
    assert line.startswith("0,")
    assert line.count(" ") == 2 * (len(KIND.growth) - 1)
    assert "What settings survive" not in page


def test_the_page_of_seeds_shows_each_setting() -> None:
    losing = setting(200, 20, 3)
    losing.losing_seeds = [5, 9]
    page = seeds_page.page(SeedTable(Path("table")), [losing, setting(200, 0, 30, least=2, strategy="Balanced")])
    assert "RF 3, min ISR 1, Aggressive lost records with the seeds 5, 9" in page
    assert "10.0 % (6.6 to 14.9)" in page
    assert page.count("<circle") == 4
    assert page.count("up to\n3 brokers down at once") == 1
    assert "Growth of coverage" not in page


def test_the_two_panels_have_one_scale() -> None:
    page = seeds_page.page(SeedTable(Path("table")), [setting(200, 2, 150)])
    assert page.count(">100 %</text>") == 2
    assert page.count(">50 %</text>") == 2
    (loss,), (outage,) = (
        re.findall(rf'<circle cx="([\d.]+)%"[^>]*class="{kind}"', page) for kind in ("loss", "outage")
    )
    assert (float(loss), float(outage)) == (pytest.approx(1 + 46 * 0.01), pytest.approx(53 + 46 * 0.75))


def test_the_chart_alone_is_a_file_of_its_own() -> None:
    alone = seeds_page.picture([setting(200, 2, 150)])
    assert alone.startswith('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 ')
    assert "prefers-color-scheme:dark" in alone


def test_a_setting_in_which_nothing_was_acknowledged_is_pointed_out() -> None:
    page = seeds_page.page(SeedTable(Path("table")), [setting(5, 0, 5, least=3, strategy="Balanced", acked=0)])
    assert "RF 3, min ISR 3, Balanced: no record was acknowledged, so none could be lost." in page
