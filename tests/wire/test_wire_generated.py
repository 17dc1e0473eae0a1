"""The committed messages are what the generator writes."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tanist.wire.schema import Array, Message, Struct

pytest.importorskip("kio")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_messages", ROOT / "tools" / "generate_messages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fresh(generator: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the generator writes."""
    folder = tmp_path_factory.mktemp("messages")
    generator.write(folder)
    return folder


def test_committed_files_are_the_generators_output(generator: Any, fresh: Path) -> None:
    assert generator.differences(generator.TARGET, fresh) == []


def test_a_changed_and_a_missing_file_are_noticed(generator: Any, fresh: Path, tmp_path: Path) -> None:
    for path in generator.TARGET.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "vote_request.py").unlink()
    changed = tmp_path / "fetch_request.py"
    changed.write_text(changed.read_text().replace("max_wait_ms", "max_wait"))
    (tmp_path / "left_over_request.py").write_text(f'"""{generator.BANNER}"""\n')
    assert generator.differences(tmp_path, fresh) == ["fetch_request.py", "left_over_request.py", "vote_request.py"]


def test_field_tables_agree_with_the_class(message_class: type[Message]) -> None:
    """One table entry per field, versions inside the message's, tags unique, and objects that need no arguments."""

    def check(struct: type[Struct]) -> None:
        assert [field.name for field in struct.FIELDS] == [d.name for d in dataclasses.fields(struct)]
        assert struct() == struct()
        tags = [field.tag for field in struct.FIELDS if field.tag is not None]
        assert len(tags) == len(set(tags))
        for field in struct.FIELDS:
            first, last = field.versions
            assert message_class.VERSIONS[0] <= first <= last <= message_class.VERSIONS[1]
            for part in (field.nullable, field.tagged):
                assert part is None or (first <= part[0] <= part[1] <= last)
            assert (field.tag is None) == (field.tagged is None)
            kind = field.type.element if isinstance(field.type, Array) else field.type
            if not isinstance(kind, str):
                check(kind)

    check(message_class)
