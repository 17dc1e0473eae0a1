"""Reference pages of the commands, from click: one for each section of `tanist --help`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from tanist.cli.app import TREE, app


def write(folder: Path) -> None:
    folder.mkdir(parents=True)
    names = []
    for section, commands in TREE.items():
        name = section.lower().replace(" ", "-")
        names.append(name)
        root = click.Context(app, info_name="tanist")
        parts = [f"# {section}", *(part for each in commands for part in _command(root, app, each, 2))]
        (folder / f"{name}.md").write_text("\n\n".join(parts) + "\n")
    toctree = "```{toctree}\n:maxdepth: 2\n\n" + "\n".join(names) + "\n```"
    text = f"# Commands\n\nWritten from the commands' own help.\n\n{toctree}\n"
    (folder / "index.md").write_text(text)


def _command(parent: click.Context, group: click.Group, name: str, level: int) -> Iterator[str]:
    command = group.get_command(parent, name)
    assert command is not None
    ctx = click.Context(command, parent=parent, info_name=name)
    yield f"{'#' * level} {ctx.command_path}"
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    yield f"```console\n$ {usage}\n```"
    yield from _prose(command.help or "")
    rows = [record for parameter in command.get_params(ctx) if (record := parameter.get_help_record(ctx)) is not None]
    if rows := [row for row in rows if not row[0].startswith("-h,")]:
        yield "\n".join(
            ["| Option | |", "|---|---|", *(f"| `{_cell(name)}` | {_cell(_text(text))} |" for name, text in rows)]
        )
    if isinstance(command, click.Group):
        for each in command.list_commands(ctx):
            yield from _command(ctx, command, each, min(level + 1, 5))


def _prose(text: str) -> Iterator[str]:
    """Paragraphs; those after a line with a backspace keep their lines, as click keeps them."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r"\f.*", "", text, flags=re.DOTALL).strip()):
        first, _, rest = paragraph.partition("\n")
        if first.strip() == "\b":
            yield f"```text\n{rest}\n```"
        else:
            yield _text(" ".join(paragraph.split()))


def _text(text: str) -> str:
    """What Markdown would take for markup, as text; code stays."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>\[\]])", r"\\\1", part) for part in parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
