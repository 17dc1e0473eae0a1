"""The one class of all groups of commands: help in whole sentences, and a suggestion for a misspelt name.

A group lists a command by the first sentence of its help, which is short enough for a line of 80 columns (a test holds
it) and never cut off. Subgroups get the same class by themselves. Options suggest for themselves (click).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import click

_SENTENCE_MAX = 1000
"""More than any sentence has: click cuts off what is longer than this."""


class NoSuchCommand(click.UsageError):
    """A name that no command has, and those that it may have meant."""

    def __init__(self, name: str, meant: Iterable[str], ctx: click.Context) -> None:
        names = [f"`{each}`" for each in meant]
        suggestion = f"; did you mean {' or '.join(names)}?" if names else f": `{ctx.command_path} --help` lists all"
        super().__init__(f"no such command '{name}'{suggestion}", ctx)


class Group(click.Group):
    """A group of commands."""

    group_class = type
    """Groups that are made below this one are of its class."""

    def sections(self, ctx: click.Context) -> Mapping[str, Iterable[str]]:
        """The commands in the order of the help, below headings."""
        return {"Commands": self.list_commands(ctx)}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = {
            title: [(name, found) for name in names if (found := self.get_command(ctx, name)) and not found.hidden]
            for title, names in self.sections(ctx).items()
        }
        width = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), short_help(command)) for name, command in rows])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            raise NoSuchCommand(name, self._meant(ctx, name), ctx)
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, name: str) -> list[str]:
        """Names like this one here; else this very name, or one like it, in a group below."""
        prefix = f"{ctx.command_path} "
        if near := get_close_matches(name, self.list_commands(ctx), n=2):
            return [prefix + each for each in near]
        below: dict[str, list[str]] = {}
        for group_name in self.list_commands(ctx):
            group = self.get_command(ctx, group_name)
            if isinstance(group, click.Group):
                for each in group.list_commands(ctx):
                    below.setdefault(each, []).append(f"{prefix}{group_name} {each}")
        return [path for each in get_close_matches(name, below, n=1) for path in below[each]][:3]


def short_help(command: click.Command) -> str:
    """The first sentence of its help, whole."""
    return command.get_short_help_str(_SENTENCE_MAX)
