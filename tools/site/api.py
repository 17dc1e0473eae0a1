"""Reference pages of the Python API, from signatures and docstrings. The sources are read, not imported."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Page:
    """A page, and the names on it: module -> public classes and functions, all of them if none is named."""

    name: str
    title: str
    text: str
    modules: tuple[tuple[str, tuple[str, ...]], ...]


PAGES = (
    Page(
        "testing",
        "API: tanist.testing",
        "`from tanist.testing import ...`. [tanist in your tests](../testing.md) has examples of all of it.",
        (
            ("tanist.testing.cluster", ("Cluster",)),
            ("tanist.testing.operations", ("Operations",)),
            ("tanist.testing.namespace", ("Kafka",)),
            (
                "tanist.testing.aio",
                ("AsyncOperations", "AsyncCluster", "AsyncKafka", "AsyncRequestFaultBuilder", "AsyncInjectedFault"),
            ),
            ("tanist.testing.request_faults", ("RequestFaultBuilder", "InjectedFault")),
            ("tanist.testing.conditions", ("in_sync", "led")),
            ("tanist.testing.observations", ("PartitionState", "SalvageEntry", "SalvagedRecord")),
            ("tanist.testing.errors", ("NotAvailable", "NotInTime")),
            ("tanist.runtime.cluster.cluster_file", ("ClusterError",)),
        ),
    ),
    Page(
        "client",
        "API: the client",
        "The client of tanist's own commands, in blocking calls, for any Kafka. It is small, and no replacement for a "
        "client library: one connection a broker, no batching of your own, no transactions.",
        (
            ("tanist.runtime.client.client", ()),
            ("tanist.runtime.client.admin", ()),
            ("tanist.runtime.client.records", ()),
            ("tanist.runtime.client.groups", ()),
        ),
    ),
    Page(
        "spark",
        "API: tanist.spark",
        "Needs the extra `spark`. [The pages on Spark](../spark.md) list the formats and their options.",
        (
            ("tanist.spark.local_session", ()),
            ("tanist.spark.topic_source", ("TopicDataSource",)),
            ("tanist.spark.segments.source", ("SegmentsDataSource",)),
            ("tanist.spark.metadata.source", ("MetadataDataSource",)),
        ),
    ),
)


def write(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    for page in PAGES:
        parts = [f"# {page.title}", page.text]
        for module, names in page.modules:
            file = source.joinpath(*module.split(".")).with_suffix(".py")
            tree = ast.parse(file.read_text())
            parts.append(f"## {module}")
            parts.append(_prose(ast.get_docstring(tree)))
            parts += _definitions(tree, module, names)
        (folder / f"{page.name}.md").write_text("\n\n".join(part for part in parts if part) + "\n")


def _definitions(tree: ast.Module, module: str, names: Sequence[str]) -> Iterator[str]:
    there = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    if missing := [name for name in names if name not in there]:
        raise LookupError(f"{module} has no {', '.join(missing)}")
    for name, node in there.items():
        if name in names or (not names and not name.startswith("_") and ast.get_docstring(node)):
            yield _class(node, module) if isinstance(node, ast.ClassDef) else _function(node, module)


def _class(node: ast.ClassDef, module: str) -> str:
    members = [each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    made = next((each for each in members if each.name == "__init__"), None)
    signature = _signature(made, bound=True) if made is not None else _fields(node)
    parts = [_prose(ast.get_docstring(node)), _prose(ast.get_docstring(made) if made is not None else None)]
    for each in members:
        if not each.name.startswith("_"):
            parts.append(_member(each))
    return _directive("class", f"{module}.{node.name}{signature}", parts, "`````")


def _fields(node: ast.ClassDef) -> str:
    """Of a dataclass: its fields."""
    if not any("dataclass" in ast.unparse(each) for each in node.decorator_list):
        return ""
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    texts = [
        f"{ast.unparse(each.target)}: {ast.unparse(each.annotation)}"
        + (f" = {ast.unparse(each.value)}" if each.value is not None and isinstance(each.value, ast.Constant) else "")
        for each in fields
    ]
    return f"({', '.join(texts)})"


def _member(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    decorators = {ast.unparse(each) for each in node.decorator_list}
    doc = [_prose(ast.get_docstring(node))]
    if "property" in decorators:
        kind = f"\n:type: {ast.unparse(node.returns)}" if node.returns is not None else ""
        return _directive("property", f"{node.name}{kind}", doc, "````")
    if isinstance(node, ast.AsyncFunctionDef):
        doc.insert(0, "A coroutine.")
    kind = next((each for each in ("classmethod", "staticmethod") if each in decorators), "")
    flag = f"\n:{kind}:" if kind else ""
    return _directive("method", f"{node.name}{_signature(node, bound=kind != 'staticmethod')}{flag}", doc, "````")


def _function(node: ast.FunctionDef, module: str) -> str:
    signature = _signature(node, bound=False)
    return _directive("function", f"{module}.{node.name}{signature}", [_prose(ast.get_docstring(node))], "````")


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, *, bound: bool) -> str:
    arguments = ast.unparse(node.args)
    if bound:
        arguments = re.sub(r"^(self|cls)(, )?", "", arguments)
    return f"({arguments})" + (f" -> {ast.unparse(node.returns)}" if node.returns is not None else "")


def _directive(kind: str, head: str, parts: Sequence[str], fence: str) -> str:
    body = "\n\n".join(part for part in parts if part)
    signature, newline, options = head.partition("\n")
    return f"{fence}{{py:{kind}}} {signature}{newline}{options}\n\n{body}\n{fence}"


def _prose(text: str | None) -> str:
    """Docstrings are plain text with code in backquotes; an indented block is code."""
    if not text:
        return ""
    blocks = []
    for block in text.split("\n\n"):
        if block.startswith("  "):
            blocks.append(f"```python\n{textwrap.dedent(block)}\n```")
        else:
            blocks.append(re.sub(r"(?m)^\\b$\n?", "", block))
    return "\n\n".join(blocks)
