"""The table of `make coverage`: packages, sums, percentages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "measure_coverage.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_coverage", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module  # a dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def file(statements: int, covered: int, branches: int = 0, covered_branches: int = 0) -> dict[str, Any]:
    summary = {
        "num_statements": statements,
        "covered_lines": covered,
        "num_branches": branches,
        "covered_branches": covered_branches,
    }
    return {"summary": summary}


def test_files_are_summed_by_package_and_in_all(tool: ModuleType) -> None:
    files = {
        "src/tanist/ports.py": file(1_000, 500),
        "src/tanist/log/log.py": file(100, 90, 10, 5),
        "src/tanist/broker/api/fetch.py": file(10, 10, 4, 4),
        "src/tanist/broker/api/produce.py": file(10, 5, 4, 2),
        "src/tanist/broker/node.py": file(10, 10),
    }
    assert list(tool.table(tool.per_package(files))) == [
        "| Package | Lines | run | Branches | run |",
        "|---|---:|---:|---:|---:|",
        "| (top) | 1,000 | 50.0 % | 0 | - |",
        "| broker | 30 | 83.3 % | 8 | 75.0 % |",
        "| log | 100 | 90.0 % | 10 | 50.0 % |",
        "| all | 1,130 | 54.4 % | 18 | 61.1 % |",
    ]


def test_a_deep_package_counts_with_the_first(tool: ModuleType) -> None:
    assert tool.package_of("src/tanist/lab/model/deep/module.py") == "lab"
