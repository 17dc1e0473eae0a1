"""The transcript engine: what it compares, what it writes anew, what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Perform = Callable[[str, "Echo"], str]


class Echo:
    def run(self, command: str) -> str:
        if command == "fail":
            raise ZeroDivisionError("as asked")
        return "" if command == "quiet" else f"{command}!\n\n  and again"


def test_output_is_written_below_its_command(transcript_perform: Perform) -> None:
    text = "# A story\n\n> hello\n    old\n        lines\n> quiet\nprose goes on\n\n> bye\n"
    assert transcript_perform(text, Echo()) == (
        "# A story\n\n> hello\n    hello!\n      and again\n> quiet\nprose goes on\n\n"
        "> bye\n    bye!\n      and again\n"
    )


def test_what_was_played_plays_the_same_again(transcript_perform: Perform) -> None:
    once = transcript_perform("> a\n\nprose\n> quiet\n", Echo())
    assert transcript_perform(once, Echo()) == once


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("only prose\n", "no command"),
        ("prose\n    indented\n", "line 2"),
        ("prose\n\n> fail\n", "line 3, `> fail`: ZeroDivisionError: as asked"),
    ],
)
def test_what_can_not_be_played_is_refused(transcript_perform: Perform, text: str, complaint: str) -> None:
    with pytest.raises(Exception, match=complaint):
        transcript_perform(text, Echo())
