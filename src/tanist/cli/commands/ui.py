"""`tanist ui`: the live view in a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tanist.cli.options import addresses_given, client_options, cluster_given, json_option
from tanist.installed import add_extra
from tanist.runtime.client.client import Address

if TYPE_CHECKING:
    from tanist.web.source import Source

_NEEDS = ("starlette", "uvicorn", "anyio", "h11", "idna")


@click.command("ui")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    help="Serve the page on this port of 127.0.0.1. 0: any free port.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@client_options
@json_option
def ui_command(port: int, no_browser: bool, bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Watch replicas, fail-overs and losses in a browser.

    Serves one page on 127.0.0.1 until Ctrl-C: each replica's log with its leader epochs and offsets, what the
    controller decided and why, what is lost if a broker dies, salvage, groups, and buttons for faults. With --bootstrap
    it shows what any Kafka tells its clients.
    """
    try:
        from tanist.web.serving import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDS:
            raise
        raise click.ClickException(f"the live view needs Starlette and Uvicorn: {add_extra('ui')}") from None

    def ready(address: str) -> None:
        click.echo(json.dumps({"url": address}) if as_json else f"the live view is at {address}\nCtrl-C ends it")
        if not no_browser and not as_json:
            import webbrowser  # half a megabyte, and not for --no-browser

            webbrowser.open(address)

    try:
        serve(_source(bootstrap, folder), port, ready)
    except OSError as error:
        raise click.ClickException(f"port {port} cannot be used: {error.strerror}") from None


def _source(bootstrap: list[Address] | None, folder: Path) -> Source:
    if addresses_given(bootstrap):
        from tanist.web.bootstrap_source import BootstrapSource

        cluster = cluster_given(bootstrap, folder)
        return BootstrapSource(cluster.bootstrap, cluster.security)
    from tanist.web.folder_source import FolderSource

    return FolderSource(folder)
