"""`make proof`: a page has each judge's answer, and the exit code tells the worst of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tools import proof
from tools.proof import Judgement, Missing


def refuse() -> tuple[bool, str]:
    raise Missing("no network")


def judgement(name: str, ask: Callable[[], tuple[bool, str]], *, java: bool = False) -> Judgement:
    return Judgement(name, f"the claim of {name}, which is longer than its column", "a judge", ask, java)


AGREES = judgement("one", lambda: (True, "7 of 7 accepted"))
DISAGREES = judgement("two", lambda: (False, "6 of 7 accepted"))
MISSING = judgement("three", refuse)


@pytest.mark.parametrize(
    ("judgements", "code"),
    [((AGREES,), 0), ((AGREES, MISSING), 2), ((DISAGREES, MISSING, AGREES), 1)],
)
def test_the_worst_answer_is_the_exit_code(
    judgements: tuple[Judgement, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proof, "JUDGEMENTS", judgements)
    assert proof.main([]) == code
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 80
    assert ("7 of 7 accepted" in page) == (AGREES in judgements)
    assert ("NO: 6 of 7" in page) == (DISAGREES in judgements)
    assert ("three: no network" in page) == (MISSING in judgements)


def test_a_judge_who_needs_java_is_missing_without_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proof, "JUDGEMENTS", (judgement("four", lambda: (True, ""), java=True),))
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert proof.main([]) == 2
    assert "four: it needs Java" in capsys.readouterr().out


def test_some_can_be_asked_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert proof.main(["--list", "--only", "jepsen"]) == 0
    assert capsys.readouterr().out.startswith("jepsen ")


@pytest.mark.parametrize("said", ["a line\nno network\n", '{"error": {"kind": "failed", "message": "no network"}}\n'])
def test_what_a_command_says_of_its_failure_is_the_reason(said: str) -> None:
    assert proof._reason(said) == "no network"
