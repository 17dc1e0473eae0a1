"""What a job reads or writes, as an option or an argument: a path of this machine, or an address in an object store."""

from __future__ import annotations

from typing import Any

import click

from tanist.runtime.cluster.layout import DEFAULT_DATA


class Place(click.Path):
    """As `click.Path`; an address is a text, and what is there is asked by the job."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from tanist.spark.stores import is_stored, path_of

        return str(value) if is_stored(value) else super().convert(path_of(value), param, ctx)


replicas_option = click.option(
    "--data",
    "folder",
    type=Place(file_okay=False),
    default=DEFAULT_DATA,
    show_default=True,
    envvar="TANIST_DATA",
    show_envvar=True,
    help="The folder of a cluster, a node or a log directory; or of a copy in an object store: s3://BUCKET/PATH.",
)
