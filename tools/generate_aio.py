"""Write `src/tanist/testing/aio.py`, the asynchronous side of `tanist.testing`, from the synchronous one.

    python tools/generate_aio.py

Each public method of a class in `MIRRORED` becomes a coroutine that runs it in a thread. It has the same parameters and
the same text. A property stays a property. An object of such a class that a method gives is wrapped.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from tanist.testing.cluster import Cluster
from tanist.testing.namespace import Kafka
from tanist.testing.operations import Operations
from tanist.testing.request_faults import InjectedFault, RequestFaultBuilder
from tanist.testing.security import Security

TARGET = Path(__file__).resolve().parents[1] / "src" / "tanist" / "testing" / "aio.py"

MIRRORED: dict[type, str] = {
    InjectedFault: "`InjectedFault`, awaited.",
    RequestFaultBuilder: "`RequestFaultBuilder`, whose triggers are awaited.",
    Security: "`Security`, awaited.",
    Operations: "`Operations`, awaited.",
    Cluster: "`Cluster` as an asynchronous context manager.",
    Kafka: "`Kafka`, awaited: the cluster as one test sees it.",
}
"""The classes, bases first, and what their asynchronous sides say."""
USERS_MAKE = {"Cluster"}
"""Its asynchronous side has the same constructor. The others wrap what there is."""
ASYNC_NAMES = {each.__name__: f"Async{each.__name__}" for each in MIRRORED}

AT_ONCE = {"__str__", "client", "security", "topic", "group"}
"""Methods that ask no node, like all that give a `RequestFaultBuilder`: nobody awaits them."""
SPECIAL = {"__enter__": "__aenter__", "__exit__": "__aexit__", "__str__": "__str__"}
LEFT_OUT = {"backend", "clean_up", "did", "named_topics", "own_topics"}
"""What the fixture `kafka` and its report use, and no test."""

HEADER = '''"""`AsyncCluster`: the same cluster for asyncio. Each operation runs in a thread, and the loop goes on.

Written by tools/generate_aio.py; do not edit.
"""

from __future__ import annotations

import asyncio
'''


def module(mirrored: dict[type, str] = MIRRORED) -> str:
    """The text of `aio.py`."""
    text = "\n\n".join(_class(each, doc) for each, doc in mirrored.items())
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    imports = {line for each in mirrored for name, line in _importable(each).items() if name in used}
    text = "\n".join([HEADER, *sorted(imports), text])
    for step in (["check", "--select=I", "--fix", "-q"], ["format"]):
        command = [sys.executable, "-m", "ruff", *step, "--stdin-filename", str(TARGET), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text


def _importable(mirrored: type) -> dict[str, str]:
    """How to import each name that the class's module imports or defines."""
    here = mirrored.__module__
    found: dict[str, str] = {}
    for node in ast.parse(inspect.getsource(sys.modules[here])).body:
        if isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"from {node.module} import {ast.unparse(each)}" for each in node.names}
        elif isinstance(node, ast.ClassDef):
            found[node.name] = f"from {here} import {node.name}"
        elif isinstance(node, ast.AnnAssign):
            found[ast.unparse(node.target)] = f"from {here} import {ast.unparse(node.target)}"
    return found


def _class(mirrored: type, doc: str) -> str:
    name = mirrored.__name__
    base = "".join(f"({ASYNC_NAMES[each.__name__]})" for each in mirrored.__bases__ if each in MIRRORED)
    head = f'class Async{name}{base}:\n    """{doc}"""\n\n    sync: {name}\n    """The same without asyncio."""\n'
    source = textwrap.dedent(inspect.getsource(mirrored))
    definition = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    methods = [node for node in definition.body if isinstance(node, ast.FunctionDef)]
    parts = [_method(node, name, source, vars(sys.modules[mirrored.__module__])) for node in methods]
    if name not in USERS_MAKE:
        given = re.split("(?=[A-Z])", name)[-1].lower()
        parts.insert(0, f"    def __init__(self, {given}: {name}) -> None:\n        self.sync = {given}\n")
    return "\n".join([head, *filter(None, parts)])


def _method(node: ast.FunctionDef, owner: str, source: str, values: dict[str, Any]) -> str:
    """Nothing for a method that has no asynchronous side. `values`: the names of the module, for defaults."""
    name = node.name
    made = name == "__init__" and owner in USERS_MAKE
    if name in LEFT_OUT or (name.startswith("_") and name not in SPECIAL and not made):
        return ""
    for defaults in (node.args.defaults, node.args.kw_defaults):
        for index, default in enumerate(defaults):
            if isinstance(default, ast.Name):
                defaults[index] = ast.Constant(values[default.id])
    gives = ast.unparse(node.returns) if node.returns else ""
    result = ASYNC_NAMES.get(gives, gives)
    if result == gives and ASYNC_NAMES.keys() & set(re.findall(r"\w+", gives)):
        raise ValueError(f"{owner}.{name}: there is no rule for {gives}")
    parameters = _passed_on(node.args)
    called = f"self.sync.{name}({', '.join(parameters)})"
    awaited = f"await asyncio.to_thread({', '.join([f'self.sync.{name}', *parameters])})"
    kind = " ".join(ast.unparse(each) for each in node.decorator_list)
    word = "async def"
    if made:
        word, body = "def", f"self.sync = {owner}({', '.join(parameters)})"
    elif kind == "property":
        word, body = "def", f"return self.sync.{name}"
    elif kind == "classmethod" and gives == owner:
        connected = awaited.replace("self.sync.", f"{owner}.")
        body = f"found = cls()\n        found.sync = {connected}\n        return found"
    elif kind:
        raise ValueError(f"{owner}.{name}: there is no rule for @{kind}")
    elif name == "__enter__":
        body = f"{awaited}\n        return self"
    elif name in AT_ONCE or gives == "RequestFaultBuilder":
        word, body = "def", f"return {called if result == gives else f'{result}({called})'}"
    elif gives == "None":
        body = awaited
    else:
        body = f"return {awaited if result == gives else f'{result}({awaited})'}"
    decorator = [f"@{kind}"] if kind else []
    lines = [*decorator, f"{word} {SPECIAL.get(name, name)}({ast.unparse(node.args)}) -> {result}:"]
    lines += [f"    {doc}"] if (doc := _doc(node, source)) else []
    return "".join(f"    {line}\n" for line in [*lines, f"    {body}"])


def _doc(node: ast.FunctionDef, source: str) -> str:
    """As it is written, with examples that await."""
    text = ast.get_source_segment(source, node.body[0]) if ast.get_docstring(node) else None
    return re.sub(r"(?m)^( +)kafka\.", r"\1await kafka.", text or "")


def _passed_on(args: ast.arguments) -> list[str]:
    """The parameters without `self`, as a call passes them on."""
    given = [each.arg for each in args.args[1:]]
    given += [f"*{args.vararg.arg}"] if args.vararg else []
    given += [f"{each.arg}={each.arg}" for each in args.kwonlyargs]
    return given + ([f"**{args.kwarg.arg}"] if args.kwarg else [])


if __name__ == "__main__":
    TARGET.write_text(module())
