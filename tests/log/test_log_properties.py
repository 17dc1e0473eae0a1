"""Properties files, and lists of folders in them, whatever a folder is called."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tanist.log.properties import encode_properties, join_paths, log_directories, parse_properties, split_paths

_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
_PATHS = st.lists(_NAMES.map(lambda name: f"/{name}/data"), min_size=1, max_size=3)


@given(_NAMES)
@example("a\u0130b\U0001f980 \\u0041")
@example(" \\ ")
def test_every_value_comes_back_and_the_file_is_ascii(value: str) -> None:
    """Java reads it as Latin-1."""
    text = encode_properties({"a": value, "b": "2"})
    assert text.isascii()
    assert parse_properties(text) == {"a": value, "b": "2"}


@given(_PATHS)
@example(["/label=linux,python=3.11/data", "/\\,/data", "/a\\/data"])
def test_every_list_of_folders_comes_back(paths: list[str]) -> None:
    assert split_paths(join_paths(paths)) == tuple(paths)
    assert log_directories(parse_properties(encode_properties({"log.dirs": join_paths(paths)}))) == tuple(paths)


@pytest.mark.parametrize("paths", [["/a\\", "/b"], ["/a\\\\", "/b\\"], ["/a,", "/b"]])
def test_backslashes_and_commas_at_an_end(paths: list[str]) -> None:
    assert split_paths(join_paths(paths)) == tuple(paths)


def test_without_a_comma_in_a_name_it_is_kafkas_list() -> None:
    assert join_paths(["/a b", "/c=d#e\\f"]) == "/a b,/c=d#e\\f"
    assert split_paths(" /a , /b\\c ") == ("/a", "/b\\c")
    assert split_paths("  ") == ()
    assert split_paths("/a,,/b") == ("/a", "", "/b")


def test_log_dirs_comes_before_log_dir() -> None:
    assert log_directories({"log.dirs": "/a,/b", "log.dir": "/c"}) == ("/a", "/b")
    assert log_directories({"log.dir": "/c,/d"}) == ("/c", "/d")
    assert log_directories({}) == ()
