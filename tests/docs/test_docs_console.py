"""The comparison of a page with what commands print can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.console import Command, File, Shell, differs, steps

PAGE = """\
```console
$ echo one; echo two
one
two
$ false    # exit code 1
$ true
```

```python
# a.py
x = 1
```

```python
x = 2
```
"""


def test_a_page_is_commands_and_files() -> None:
    assert list(steps(PAGE)) == [
        Command("echo one; echo two", ["one", "two"]),
        Command("false    # exit code 1"),
        Command("true"),
        File("a.py", "# a.py\nx = 1\n"),
    ]
    assert [step.exit_code for step in steps(PAGE) if isinstance(step, Command)] == [0, 1, 0]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ([], "anything", True),
        (["one"], "one\n", True),
        (["one"], "two\n", False),
        (["one"], "one\ntwo\n", False),
        (["one", "..."], "one\n", True),
        (["one", "...", "four"], "one\ntwo\nthree\nfour\n", True),
        (["one", "...", "four"], "one\ntwo\n", False),
        (["ready in 0.9 s: ... brokers"], "ready in 17.35 s: 3 brokers", True),
        (["ready in 0.9 s"], "ready in 9 s", False),
        (["a  b\tc"], "a b c  ", True),
        (["1.*"], "1xx", False),
    ],
)
def test_the_comparison(shown: list[str], printed: str, same: bool) -> None:
    assert (differs(shown, printed) is None) is same


def test_the_shell_keeps_its_folder_and_says_how_a_command_ended(tmp_path: Path) -> None:
    with Shell(tmp_path, {"WHERE": "here"}) as shell:
        assert shell.run("mkdir a && cd a && false") == ("", 1)
        assert shell.run("pwd") == (f"{tmp_path}/a\n", 0)
        assert shell.run("echo $WHERE >&2; (exit 7)") == ("here\n", 7)


def test_commands_do_not_know_that_they_run_in_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("BUILD_NUMBER", "7")
    with Shell(tmp_path, {}) as shell:
        assert shell.run('echo "[$CI$BUILD_NUMBER]"') == ("[]\n", 0)
