"""`tanist status`: the nodes of a cluster on this machine, and first of all what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import click

from tanist.cli.options import data_option, json_option
from tanist.cli.output.cluster_status import news_json, print_status, status_json
from tanist.cli.output.tables import print_json
from tanist.runtime.client.salvage_reports import salvage_news
from tanist.runtime.cluster.cluster import LocalCluster


@click.command("status")
@data_option
@json_option
def status_command(folder: Path, as_json: bool) -> None:
    """Show the cluster's nodes and the active controller.

    Also shows a missing quorum (first), certificates that expire within 14 days, and records that were cut from logs
    and saved (last).

    \b
    running      a member of the cluster
    starting     its process runs, but it has not joined the cluster yet
    fenced       it runs, but hears from no controller; the cluster goes on
    unreachable  its process runs, but does not answer
    paused       by `tanist pause`
    stopped      shut down cleanly
    crashed      its process ended otherwise; a line below the table says why
    """
    status = LocalCluster(folder).status()
    news = salvage_news(folder)
    if as_json:
        print_json(status_json(status) | {"salvage": [news_json(each) for each in news]})
        return
    print_status(status, news, folder)
