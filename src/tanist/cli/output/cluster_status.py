"""The output of `tanist status`: the nodes as a table, what is wrong around it, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tanist.cli.output.alerts import salvage_lines
from tanist.cli.output.lines import say, say_all
from tanist.cli.output.tables import print_table
from tanist.events.process import CERTIFICATE_SOON_DAYS
from tanist.runtime.client.salvage_reports import SalvageNews
from tanist.runtime.cluster.status import CRASHED, ClusterStatus
from tanist.text import counted


def print_status(status: ClusterStatus, news: Sequence[SalvageNews], folder: Path) -> None:
    """First a missing quorum, then the nodes, then what was cut from logs and saved."""
    say_all(status.without_quorum)
    rows = [
        (
            node.node_id,
            "+".join(node.roles) + ("*" if node.node_id == status.controller else ""),
            f"{node.host}:{node.port}",
            node.state,
            node.pid,
            node.rack,
            node.metrics,
        )
        for node in status.nodes
    ]
    print_table(("NODE", "ROLES", "ADDRESS", "STATE", "PID", "RACK", "METRICS"), rows)
    if status.controller is not None:
        click.echo(f"* node {status.controller} is the active controller")
    for node in status.nodes:
        if node.why is not None:
            say(f"node {node.node_id} {'has' if node.state == CRASHED else 'is'} {node.state}: {node.why}")
    say_all(_certificate_lines(status))
    say_all(salvage_lines(news, folder))


def _certificate_lines(status: ClusterStatus) -> Iterator[str]:
    """Of those that have expired, or will soon."""
    now = datetime.now(UTC)
    for each in status.certificates:
        node = each.path.stem.removeprefix("node-")
        remedy = f": `tanist certs renew {node}`" if node.isdecimal() else ""
        if each.expires <= now:
            yield f"the certificate {each.path.name} has expired{remedy}"
        elif each.days_left(now) < CERTIFICATE_SOON_DAYS:
            yield f"the certificate {each.path.name} expires in {counted(each.days_left(now), 'day')}{remedy}"


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
        "warnings": status.without_quorum,
        "brokers": described("broker"),
        "controllers": described("controller"),
        "certificates": [
            {
                "file": str(each.path),
                "expires": each.expires.isoformat(),
                "days_left": each.days_left(datetime.now(UTC)),
            }
            for each in status.certificates
        ],
    }


def news_json(news: SalvageNews) -> dict[str, Any]:
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
