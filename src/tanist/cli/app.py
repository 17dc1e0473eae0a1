"""The tree of commands: which there are, in the order of `tanist --help`, each loaded when it is needed.

A new command is a line of `TREE`; its module has it as `NAME_command`. Errors become words in `tanist.cli.errors`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from tanist.cli import closed_output, errors
from tanist.cli.tree import Group

TREE: dict[str, dict[str, str]] = {
    "First steps": {
        "demo": "tanist.cli.commands.demo",
        "incident": "tanist.cli.commands.incident",
    },
    "Cluster": {
        "up": "tanist.cli.commands.clusters",
        "down": "tanist.cli.commands.clusters",
        "reset": "tanist.cli.commands.clusters",
        "status": "tanist.cli.commands.status",
        "top": "tanist.cli.commands.top",
        "ui": "tanist.cli.commands.ui",
        "wait": "tanist.cli.commands.wait",
        "logs": "tanist.cli.commands.logs",
        "events": "tanist.cli.commands.events",
        "start": "tanist.cli.commands.clusters",
        "stop": "tanist.cli.commands.clusters",
        "features": "tanist.cli.commands.features",
        "migrate": "tanist.cli.commands.migrate",
    },
    "Topics and records": {
        "topics": "tanist.cli.commands.topics",
        "reassign": "tanist.cli.commands.reassign",
        "configs": "tanist.cli.commands.configs",
        "quotas": "tanist.cli.commands.quotas",
        "produce": "tanist.cli.commands.records",
        "consume": "tanist.cli.commands.consume",
        "account": "tanist.cli.commands.account",
    },
    "Groups": {
        "groups": "tanist.cli.commands.groups",
        "transactions": "tanist.cli.commands.transactions",
    },
    "Security": {
        "acls": "tanist.cli.commands.acls",
        "users": "tanist.cli.commands.users",
        "tokens": "tanist.cli.commands.tokens",
        "certs": "tanist.cli.commands.certs",
    },
    "Faults": {
        "crash": "tanist.cli.commands.clusters",
        "pause": "tanist.cli.commands.faults",
        "resume": "tanist.cli.commands.faults",
        "partition": "tanist.cli.commands.faults",
        "slow": "tanist.cli.commands.faults",
        "disk": "tanist.cli.commands.faults",
        "heal": "tanist.cli.commands.faults",
        "faults": "tanist.cli.commands.fault_injection",
    },
    "Recovery": {
        "recovery": "tanist.cli.commands.recovery",
        "elect": "tanist.cli.commands.elect",
        "salvage": "tanist.cli.commands.salvage",
    },
    "Lab": {
        "lab": "tanist.cli.lab.group",
        "what-if": "tanist.cli.lab.what_if",
        "jepsen": "tanist.cli.lab.jepsen",
    },
    "Pipeline": {
        "spark": "tanist.cli.spark.group",
    },
    "Nodes": {
        "format": "tanist.cli.commands.nodes",
        "serve": "tanist.cli.commands.nodes",
        "random-uuid": "tanist.cli.commands.nodes",
    },
    "Shell": {
        "completion": "tanist.cli.commands.completion",
    },
}
"""Sections of the help: names, and the modules that have them."""

COMMANDS = {name: module for section in TREE.values() for name, module in section.items()}


class Commands(Group):
    """The root: its commands are imported when they are needed, and all errors end here."""

    def sections(self, ctx: click.Context) -> Mapping[str, Sequence[str]]:
        return {title: list(section) for title, section in TREE.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name])
        command = getattr(module, cmd_name.replace("-", "_") + "_command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name]} has no command {cmd_name}")
        return command

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        arguments = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(arguments, prog_name, complete_var, standalone_mode=False, **extra)
        except Exception as error:
            if not standalone_mode or closed_output.behind(error):
                raise
            _fail(error, as_json="--json" in arguments)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def _fail(error: Exception, *, as_json: bool) -> NoReturn:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        sys.exit(error.exit_code)
    problem = errors.problem_of(error)
    if problem is None:
        raise error
    errors.show(problem, as_json=as_json)
    sys.exit(problem.exit_code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tanist", prog_name="tanist")
def app() -> None:
    """A Kafka-compatible cluster to run, to use and to break.

    `tanist up` starts a cluster of three brokers on this machine. Any Kafka client works with it, and so do the
    commands below. `tanist crash 2` kills a broker; then `tanist topics describe NAME` shows its partitions' new
    leaders.
    """
