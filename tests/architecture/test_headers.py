"""The docstring of a module that serves or encodes an API names it, its key and its versions, and they are true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tanist.broker.api.table import BROKER_TABLE, CONTROLLER_TABLE, INTER_BROKER_TABLE, TELEMETRY_TABLE
from tanist.wire.apis import ApiKey

ROOT = Path(__file__).resolve().parents[2]
API = ROOT / "src" / "tanist" / "broker" / "api"
WIRE = ROOT / "src" / "tanist" / "wire"

SEVERAL = {
    "__init__": "the package",
    "table": "all of them",
    "controller_apis": "every request that the active controller decides",
    "produce_transactional": "the part of Produce that waits for coordinators",
    "follower_fetch": "the part of Fetch that answers followers in a session",
    "authorized_operations": "a field that several answers have",
}
"""Modules of `broker/api` that are not about one API."""
BY_HAND = {
    "produce": ApiKey.PRODUCE,
    "fetch_request": ApiKey.FETCH,
    "fetch_response": ApiKey.FETCH,
    "fetch_reply": ApiKey.FETCH,
}
"""Modules of `wire` that encode an API by hand; `wire/messages` is generated."""

_STATED = re.compile(r"\(key (\d+)(?:, ours)?\), versions? (\d+)(?:-(\d+))?")


def stated(path: Path) -> dict[int, tuple[int, int]]:
    """The versions of each key in the first paragraph of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return {int(key): (int(least), int(most or least)) for key, least, most in _STATED.findall(paragraph)}


def served(key: int) -> tuple[int, int]:
    handlers = (BROKER_TABLE, CONTROLLER_TABLE, INTER_BROKER_TABLE, TELEMETRY_TABLE)
    return next((table[key][0], table[key][1]) for table in handlers if key in table)


def of_apis() -> list[Path]:
    return sorted(path for path in API.glob("*.py") if path.stem not in SEVERAL)


@pytest.mark.parametrize("path", of_apis(), ids=lambda path: path.stem)
def test_an_api_module_names_its_keys_and_versions(path: Path) -> None:
    found = stated(path)
    assert ApiKey[path.stem.upper()] in found
    assert found == {key: served(key) for key in found}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_codec_by_hand_names_its_key_and_versions(name: str) -> None:
    key = BY_HAND[name]
    assert stated(WIRE / f"{name}.py") == {key: served(key)}


def test_no_exception_is_left_over() -> None:
    assert {path.stem for path in API.glob("*.py")} >= SEVERAL.keys()
