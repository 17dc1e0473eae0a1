"""`tanist certs`: the certificates of a cluster that `tanist up --secure` has made."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from tanist.cli.options import data_option, json_option
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.tree import Group
from tanist.runtime.cluster.cluster_file import ClusterFile, load_existing, locked_existing
from tanist.runtime.cluster.secure_files import SecureFiles


@click.group("certs", cls=Group)
def certs_command() -> None:
    """Show and renew the certificates of a secure cluster."""


@certs_command.command("list")
@data_option
@json_option
def list_command(folder: Path, as_json: bool) -> None:
    """Show each certificate, and how many days it is good for."""
    from tanist.runtime.cluster.certificates import now_utc

    files = _files(load_existing(folder), folder)
    now = now_utc()
    found = [(each.path, each.expires, each.days_left(now)) for each in files.certificates()]
    if as_json:
        print_json(
            [
                {"file": str(path), "expires": expires.isoformat(), "days_left": days_left}
                for path, expires, days_left in found
            ]
        )
        return
    rows = [
        (path.stem, expires.strftime("%Y-%m-%d %H:%M UTC"), days_left if expires > now else "expired", path)
        for path, expires, days_left in found
    ]
    print_table(("NAME", "EXPIRES", "DAYS LEFT", "FILE"), rows)


@certs_command.command("renew")
@click.argument("nodes", nargs=-1, type=int)
@click.option("--days", type=click.IntRange(1, 3650), help="How long the new ones are good for.  [default: 365]")
@data_option
@json_option
def renew_command(nodes: tuple[int, ...], days: int | None, folder: Path, as_json: bool) -> None:
    """Give NODES, or all, new certificates.

    They are of the same authority and for the same hosts. Nodes that run take them within seconds, for connections that
    come then. Those that are open stay.
    """
    with locked_existing(folder) as cluster:
        files = _files(cluster, folder)
        chosen = [cluster.node(each) for each in nodes] if nodes else cluster.nodes
        renewed = files.renew([each.node_id for each in chosen], None if days is None else timedelta(days=days))
    if as_json:
        print_json({"renewed": renewed})
        return
    for path in renewed:
        click.echo(f"renewed {path}")


def _files(cluster: ClusterFile, folder: Path) -> SecureFiles:
    if not cluster.secure:
        raise click.ClickException(
            f"the cluster in {folder} has no certificates: `tanist up --secure` makes one that has"
        )
    return SecureFiles(folder.absolute())
