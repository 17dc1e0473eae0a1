"""Files of scenarios: YAML with a list named `scenarios`.

Owns loading and the definition of a malformed file: it cannot be read, is not YAML, or lists an item without an id and
a kind. PyYAML comes with the extra `lab`; without it, `ScenarioFileError` says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tanist.installed import add_extra

Item = dict[str, Any]


class ScenarioFileError(Exception):
    """A file that holds no scenarios, or cannot be read. Says which, where, and what to do."""


def load(paths: Iterable[Path]) -> list[Item]:
    """All scenarios of some files, in order. Ids must be unique over all of them."""
    items: list[Item] = []
    seen: dict[str, Path] = {}
    for path in paths:
        for item in load_file(path):
            if item["id"] in seen:
                other = "it" if seen[item["id"]] == path else str(seen[item["id"]])
                raise ScenarioFileError(f"{path}: scenario {item['id']} is in {other} twice; an id is for one scenario")
            seen[item["id"]] = path
            items.append(item)
    return items


def load_file(path: Path) -> list[Item]:
    try:
        import yaml
    except ImportError as error:
        raise ScenarioFileError(f"scenarios are YAML, which needs PyYAML: {add_extra('lab')}") from error
    try:
        with path.open("rb") as file:
            document = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise ScenarioFileError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ScenarioFileError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    return _items(document, path)


def _items(document: object, path: Path) -> list[Item]:
    items = document.get("scenarios") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise ScenarioFileError(f"{path} has no list named `scenarios`")
    for at, item in enumerate(items, start=1):
        if not isinstance(item, dict):
            raise ScenarioFileError(f"{path}: scenario {at} is not a mapping")
        for name in ("id", "kind"):
            if not isinstance(item.get(name), str) or not item[name]:
                known = f" ({item['id']})" if isinstance(item.get("id"), str) else ""
                raise ScenarioFileError(f"{path}: scenario {at}{known} has no {name}")
    return items
