"""Nobody goes on after an exception of any kind without an event: what catches it says so, or hands it on.

`broker/unexpected.py` has the events, docs/operations.md what is done with state that may be torn.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tanist"
WATCHED = (
    "broker", "client", "controller", "coordinator", "log", "quorum", "replica",
    "runtime/ports", "runtime/process", "sim", "wire",
)  # fmt: skip
ANY = {"Exception", "BaseException"}
TELLS = {
    "crash", "fail", "failed", "failed_by", "fast_path_failed", "give_up", "handler_failed", "met", "refuse_waiting",
}  # fmt: skip
"""Functions that count and report an exception, give up what it may have torn, or end the process."""
HANDED_ON = {
    ("log/appender.py", "append_plain"): "the log is failed by it, and the next call says so",
    ("log/appender.py", "_append_examined"): "the log is failed by it, and the result says so",
    ("log/salvage/quarantine.py", "go_on"): "the result of the saving, to who waits for it",
    ("broker/storage/housekeeping.py", "write"): "the failure of its log, in the next turn",
    ("runtime/ports/workers.py", "_work"): "the result of the job, to who has given it",
    ("sim/world/disk.py", "work"): "the result of the job, to who has given it",
    ("broker/storage/cleaning.py", "_go_on"): "the result of the cleaning; `_leave_alone` tells",
    ("sim/run/chaos_run.py", "run"): "the violation of the run",
    ("runtime/process/launch.py", "_fork"): "printed, and the process ends",
}


def handlers(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.ExceptHandler]]:
    for node in ast.iter_child_nodes(tree):
        within = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(node, ast.ExceptHandler) and catches_any(node):
            yield function, node
        yield from handlers(node, within)


def catches_any(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in ANY) for kind in kinds)


def tells(handler: ast.ExceptHandler) -> bool:
    for node in ast.walk(handler):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.lstrip("_") in TELLS:
            return True
    return False


def found() -> Iterator[tuple[str, str, ast.ExceptHandler]]:
    for package in WATCHED:
        for path in sorted((SOURCE / package).rglob("*.py")):
            name = path.relative_to(SOURCE).as_posix()
            for function, handler in handlers(ast.parse(path.read_text(encoding="utf-8"))):
                yield name, function, handler


def test_what_catches_any_exception_tells_or_hands_it_on() -> None:
    silent = [
        f"{name}:{handler.lineno} in {function}"
        for name, function, handler in found()
        if not tells(handler) and (name, function) not in HANDED_ON
    ]
    assert silent == []


def test_none_is_listed_that_is_not_there() -> None:
    assert HANDED_ON.keys() <= {(name, function) for name, function, _ in found()}


def test_a_silent_one_is_found() -> None:
    (caught,) = handlers(
        ast.parse("def run():\n    try:\n        do()\n    except Exception as error:\n        pass\n")
    )
    assert caught[0] == "run"
    assert not tells(caught[1])
