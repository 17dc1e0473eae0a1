"""The parts of every page and picture: what is escaped, how numbers are written, and where marks go."""

from __future__ import annotations

from markupsafe import Markup

from tanist.lab.pages import chart


def test_text_and_attributes_are_escaped_and_markup_is_not() -> None:
    assert chart.element("text", "<a> & b", class_='x"y') == '<text class="x&#34;y">&lt;a&gt; &amp; b</text>'
    assert chart.strip(1, [chart.element("rect")]) == '<svg height="1"><rect/></svg>'
    assert isinstance(chart.element("rect"), Markup)


def test_an_attribute_that_is_empty_is_left_out() -> None:
    assert chart.element("g", class_="", text_anchor="end") == '<g text-anchor="end"/>'


def test_numbers_are_short() -> None:
    assert [chart.number(value) for value in (3.0, 2.96, 0.04, -1.25)] == ["3", "3", "0", "-1.2"]
    assert [chart.per_cent(value) for value in (0, 0.5, 1 / 3, 1)] == ["0%", "50%", "33.33%", "100%"]


def test_a_share_stays_within_the_chart() -> None:
    assert [chart.share(value, 10, 20) for value in (0, 10, 15, 20, 99)] == [0, 0, 0.5, 1, 1]
    assert chart.share(5, 5, 5) == 0


def test_axes_end_at_round_numbers() -> None:
    assert [chart.round_up(value) for value in (1, 1.1, 33, 99, 0.3)] == [1, 2, 50, 100, 0.5]
    assert [chart.round_up(value, chart.EVEN) for value in (3, 5, 0.0019)] == [4, 6, 0.002]


def test_spans_that_touch_are_one() -> None:
    assert chart.joined([(5, 9), (0, 3), (2, 4)]) == [(0, 4), (5, 9)]
    assert chart.joined([(5, 9), (0, 3), (2, 4)], gap=1) == [(0, 9)]


def test_a_stepped_line_keeps_a_value_until_the_next() -> None:
    assert chart.stepped([(0, 1), (2, 3), (4, 0)]) == [(0, 1), (2, 1), (2, 3), (4, 3), (4, 0)]
    assert chart.stepped([]) == []


def test_points_on_one_spot_are_drawn_once() -> None:
    assert chart.thinned([(0.1, 0.1), (0.4, 0.2), (9, 9)], 2.0) == [(0, 0), (8, 8)]


def test_a_bar_is_seen_however_small_it_is_and_stays_within() -> None:
    assert 'x="99.7%" y="0" width="0.3%"' in chart.bar(1, 1, 0, 5, "bar")
