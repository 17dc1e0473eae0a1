"""The tree of commands, each loaded when it is called or asked about, and what every command shares.

Errors: what the user can mend is said in one or two lines on standard error (what is wrong, what to do), with exit
code 1, or 2 where the command line itself is wrong. A traceback is a bug.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from tanist.runtime.client import KafkaError, Unreachable, Unsupported
from tanist.runtime.cluster_file import ClusterError
from tanist.runtime.format import FormatError

_COMMANDS = {
    "up": "tanist.cli.clusters",
    "down": "tanist.cli.clusters",
    "status": "tanist.cli.clusters",
    "crash": "tanist.cli.clusters",
    "stop": "tanist.cli.clusters",
    "start": "tanist.cli.clusters",
    "pause": "tanist.cli.faults",
    "resume": "tanist.cli.faults",
    "partition": "tanist.cli.faults",
    "slow": "tanist.cli.faults",
    "disk": "tanist.cli.faults",
    "heal": "tanist.cli.faults",
    "faults": "tanist.cli.faults",
    "topics": "tanist.cli.topics",
    "configs": "tanist.cli.configs",
    "groups": "tanist.cli.groups",
    "elect": "tanist.cli.elect",
    "features": "tanist.cli.features",
    "produce": "tanist.cli.records",
    "consume": "tanist.cli.records",
    "salvage": "tanist.cli.salvage",
    "demo": "tanist.cli.demo",
    "tour": "tanist.cli.tour",
    "jepsen": "tanist.cli.jepsen",
    "what-if": "tanist.cli.what_if",
    "lab": "tanist.cli.lab",
    "spark": "tanist.cli.spark",
    "format": "tanist.cli.nodes",
    "random-uuid": "tanist.cli.nodes",
    "serve": "tanist.cli.nodes",
}
"""In the order of `tanist --help`: what is wanted first stands first."""


class Commands(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(_COMMANDS[cmd_name])
        command = getattr(module, cmd_name.replace("-", "_") + "_command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{_COMMANDS[cmd_name]} has no command {cmd_name}")
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (ClusterError, FormatError, KafkaError) as error:
            raise click.ClickException(str(error)) from error
        except Unreachable as error:
            raise click.ClickException(
                f"no broker answers ({error}). Is the cluster up? `tanist status` tells"
            ) from error
        except Unsupported as error:
            raise click.ClickException(f"{error}: this cluster is too old, or too new, for the command") from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tanist", prog_name="tanist")
def app() -> None:
    """A Kafka-compatible cluster to run, to use and to break.

    `tanist up` starts a cluster of three brokers on this machine. Any Kafka client works with it, and so do the
    commands below. `tanist crash 2` kills a broker; `tanist topics describe NAME` shows what becomes of its partitions.
    """
