"""`tanist status`: the nodes of a cluster on this machine, and first of all what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tanist.cli.options import data_option, json_option
from tanist.cli.output.alerts import quorum_lines, salvage_lines
from tanist.cli.output.tables import print_json, print_table
from tanist.runtime.client.salvage_reports import SalvageNews, salvage_news
from tanist.runtime.cluster.cluster import Cluster
from tanist.runtime.cluster.status import CRASHED, ClusterStatus


@click.command("status")
@data_option
@json_option
def status_command(folder: Path, as_json: bool) -> None:
    """Show the cluster's nodes and the active controller.

    Also shows a missing quorum (first), and records that were cut from logs and saved (last).

    \b
    running      a member of the cluster
    starting     its process runs, but it has not joined the cluster yet
    fenced       it runs, but hears from no controller; the cluster goes on
    unreachable  its process runs, but does not answer
    paused       by `tanist pause`
    stopped      shut down cleanly
    crashed      its process ended otherwise; a line below the table says why
    """
    status = Cluster(folder).status()
    news = salvage_news(folder)
    if as_json:
        print_json(status_json(status) | {"salvage": [_news_json(each) for each in news]})
        return
    for line in quorum_lines(status):
        click.echo(line)
    rows = [
        (
            node.node_id,
            "+".join(node.roles),
            f"{node.host}:{node.port}",
            node.state + (", controller" if node.node_id == status.controller else ""),
            node.pid,
            node.rack,
            node.metrics,
        )
        for node in status.nodes
    ]
    print_table(("NODE", "ROLES", "ADDRESS", "STATE", "PID", "RACK", "METRICS"), rows)
    for node in status.nodes:
        if node.why is not None:
            click.echo(f"node {node.node_id} {'has' if node.state == CRASHED else 'is'} {node.state}: {node.why}")
    for line in salvage_lines(news, folder):
        click.echo(line)


def status_json(status: ClusterStatus) -> dict[str, Any]:
    def described(role: str) -> list[dict[str, Any]]:
        return [
            {
                "id": node.node_id,
                "host": node.host,
                "port": node.port,
                "pid": node.pid,
                "state": node.state,
                "why": node.why,
                "rack": node.rack,
                "metrics": None if node.metrics is None else f"http://{node.metrics}/metrics",
            }
            for node in status.nodes
            if (role == "broker") == ("broker" in node.roles)
        ]

    return {
        "bootstrap": status.bootstrap,
        "controller": status.controller,
        "metadata_age_ms": status.metadata_age_ms,
        "warnings": quorum_lines(status),
        "brokers": described("broker"),
        "controllers": described("controller"),
    }


def _news_json(news: SalvageNews) -> dict[str, Any]:
    return {
        "topic": news.topic,
        "topic_id": news.topic_id,
        "partition": news.partition,
        "brokers": list(news.brokers),
        "records": news.records,
        "exact": news.exact,
        "leader_epoch": None if news.leader_epoch < 0 else news.leader_epoch,
        "when_ms": news.wall_ms,
    }
