"""Moments, chosen and drawn: to the character."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from tanist.lab.replay.diagram import Diagram, drawn
from tanist.lab.replay.moments import Moment, Weight
from tanist.lab.replay.selection import Choice, Shown, choose, lanes_of

LANES = ("broker 1", "broker 2", "client", "operator")
TEXTS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=200)
EVERYTHING = Choice(least=Weight.DETAIL, whole=True)


def _drawn(*moments: Moment, about: str | None = None, width: int = 80) -> list[str]:
    return list(drawn(choose(moments, EVERYTHING), LANES, width, about))


def test_lanes_arrows_and_marks() -> None:
    assert _drawn(
        Moment("0.1", "broker 1", "leads"),
        Moment("0.1", "broker 1", "go", to="client"),
        Moment("0.2", "broker 2", "ask", to="broker 1"),
        Moment("0.3", "broker 1", "killed", alive=False),
        Moment("0.4", "broker 2", "waits"),
        Moment("0.5", "broker 1", "starts", alive=True),
        Moment("0.6", "broker 2", "S1 does not hold", broken=True),
    ) == [
        "          broker broker client opera-",
        "            1      2            tor",
        "     0.1    o      │      │      │    leads",
        "            ├────────────>│      │    go",
        "     0.2    │<─────┤      │      │    ask",
        "     0.3    ┴      │      │      │    killed",
        "     0.4    ·      o      │      │    waits",
        "     0.5    ┬      │      │      │    starts",
        "     0.6    │      X      │      │    S1 does not hold",
    ]


def test_a_message_to_oneself_is_an_event() -> None:
    assert (
        _drawn(Moment("1", "broker 2", "registers", to="broker 2"))[2]
        == "       1    │      o      │      │    registers"
    )


def test_a_remark_between_moments_has_no_mark() -> None:
    assert _drawn(Moment("1", "", "… 7 more"))[2] == "       1    │      │      │      │    … 7 more"


def test_the_reason_stands_below_and_is_not_said_again_soon() -> None:
    first = Moment("1", "broker 1", "HW 1 → 2", why="all have it")
    rows = _drawn(first, replace(first, at="2"), replace(first, at="3", lane="broker 2"))
    assert [row[37:].strip() for row in rows[2:]] == [
        "HW 1 → 2",
        "why: all have it",
        "HW 1 → 2",
        "HW 1 → 2",
        "why: all have it",
    ]


def test_the_reason_is_said_again_when_it_may_be_forgotten() -> None:
    moment = Moment("1", "broker 1", "HW", why="all have it")
    rows = _drawn(*(moment for _ in range(41)))
    assert sum("why: all have it" in row for row in rows) == 2


def test_a_partition_is_named_unless_all_is_about_it() -> None:
    moment = Moment("1", "broker 1", "leads", about="events-0")
    assert _drawn(moment)[-1].endswith("events-0: leads")
    assert _drawn(moment, about="events-0")[-1].endswith("│    leads")


def test_long_diagrams_repeat_their_heading() -> None:
    rows = _drawn(*(Moment(str(at), "client", "waits") for at in range(130)))
    assert [number for number, row in enumerate(rows) if "broker" in row] == [0, 62, 124]


@given(
    st.lists(
        st.builds(
            Moment,
            at=st.floats(0, 99_999).map("{:.3f}".format),
            lane=st.sampled_from(("", *LANES)),
            text=TEXTS,
            to=st.sampled_from((None, *LANES)),
            why=st.none() | TEXTS,
            broken=st.booleans(),
            alive=st.sampled_from((None, True, False)),
        ),
        max_size=10,
    ),
    st.integers(60, 200),
)
@example([Moment("0.000", "", "0" * 31)], 69)
@example([Moment("0.000", "", "", why="0" * 25)], 61)
@example([Moment("10000.000", "", "0" * 31)], 80)
def test_no_row_is_wider_than_asked_for(moments: list[Moment], width: int) -> None:
    for row in _drawn(*moments, width=width):
        assert len(row) <= width
        assert row == row.rstrip()


def test_a_time_of_hours_has_fewer_decimals() -> None:
    times = ("9999.999", "10000.000", "12345678.9", "123456789.1", "1234567890")
    rows = [_drawn(Moment(at, "broker 1", "leads"))[-1] for at in times]
    assert [row.split()[0] for row in rows] == ["9999.999", "10000.00", "12345678", "123456789", "1234567890"]


def test_however_many_lanes_there_are_text_has_space() -> None:
    diagram = Diagram([f"broker {n}" for n in range(12)], 100)
    [row] = diagram.draw(Shown(Moment("1", "broker 0", "leads"), frozenset()))
    assert row.endswith("leads")
    assert len(row) <= 100


# -- which are shown


def _texts(choice: Choice, *moments: Moment) -> list[str]:
    return [shown.moment.text for shown in choose(moments, choice)]


def test_a_quiet_stretch_is_cut_and_says_so() -> None:
    quiet = [Moment(f"{n}.0", "broker 1", f"quiet {n}") for n in range(20)]
    turn = Moment("20.0", "broker 1", "elected", weight=Weight.TURN)
    assert _texts(Choice(), *quiet, turn) == [
        "quiet 0",
        "quiet 1",
        "… 13 more like these, 2.0 to 14.0 (--all shows them)",
        *(f"quiet {n}" for n in range(15, 20)),
        "elected",
    ]
    assert len(_texts(Choice(whole=True), *quiet, turn)) == 21


def test_more_is_shown_of_what_led_to_the_end() -> None:
    quiet = [Moment(f"{n}.0", "broker 1", f"quiet {n}") for n in range(40)]
    shown = _texts(Choice(), *quiet, Moment("40.0", "broker 1", "S1", broken=True))
    assert shown[2].startswith("… 14 more")
    assert shown[3:-1] == [f"quiet {n}" for n in range(16, 40)]


def test_the_instant_in_which_it_broke_is_shown_whole() -> None:
    detail = Moment("1.0", "client", "asks", weight=Weight.DETAIL)
    broken = Moment("2.0", "client", "S19", broken=True)
    assert _texts(Choice(), detail, replace(detail, at="2.0", text="is asked"), broken) == ["is asked", "S19"]


def test_what_is_about_another_partition_is_not_shown() -> None:
    moments = [Moment("1", "broker 1", name, about=name) for name in ("events-0", "events-1")]
    fault = Moment("2", "broker 1", "killed")
    assert _texts(Choice(partition="events-1"), *moments, fault) == ["events-1", "killed"]


def test_lanes_are_chosen_by_who_speaks_or_is_spoken_to() -> None:
    moments = [
        Moment("1", "broker 1", "one"),
        Moment("2", "broker 2", "two"),
        Moment("3", "broker 2", "three", to="broker 1"),
        Moment("4", "broker 2", "broken", broken=True),
    ]
    assert _texts(Choice(lanes=frozenset({"broker 1"})), *moments) == ["one", "three", "broken"]


def test_a_part_of_the_time() -> None:
    moments = [Moment(at, "broker 1", at) for at in ("1", "2.5", "3", "11")]
    assert _texts(Choice(since_s=2.5, until_s=3), *moments) == ["2.5", "3"]


def test_who_is_down_is_known_through_what_is_left_out() -> None:
    killed = Moment("1", "broker 1", "killed", weight=Weight.DETAIL, alive=False)
    [shown] = choose([killed, Moment("2", "broker 2", "leads", weight=Weight.TURN)], Choice(least=Weight.TURN))
    assert shown.down == {"broker 1"}


def test_the_order_of_lanes() -> None:
    names = ("operator", "broker 10", "client", "controller", "broker 2", "controller 11", "")
    assert lanes_of(Moment("1", name, "") for name in names) == (
        "broker 2",
        "broker 10",
        "controller 11",
        "controller",
        "client",
        "operator",
    )
