"""`tanist features`: what the cluster has agreed to be able to do, as `kafka-features.sh`."""

from __future__ import annotations

from pathlib import Path

import click

from tanist.cli.options import client_options, connect, feature_option, json_option
from tanist.cli.output.alerts import warn_of_age
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.tree import Group
from tanist.client.admin import UpgradeType
from tanist.controller.features import metadata_version_name
from tanist.controller.image.image import METADATA_VERSION
from tanist.runtime.client.client import Address
from tanist.runtime.client.features import Feature, describe_features, update_features
from tanist.runtime.client.quorum import metadata_age_ms

_dry_run_option = click.option("--dry-run", is_flag=True, help="Ask whether it would be allowed; change nothing.")


@click.group("features", cls=Group)
def features_command() -> None:
    """Show and change the levels of the cluster's features.

    `metadata.version` is the format of the metadata log. `eligible.leader.replicas.version` is KIP-966: at 1 the
    cluster keeps eligible leader replicas, and the ISR may become empty; at 0 it elects as Kafka before KIP-966.
    """


@features_command.command("describe")
@client_options
@json_option
def describe_command(bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Show each feature and its levels.

    MIN and MAX are the levels that the brokers support. FINALIZED is the current level (0: off).
    """
    with connect(bootstrap, folder) as client:
        warn_of_age(metadata_age_ms(client), as_json)
        found = describe_features(client)
    if as_json:
        print_json(
            {
                "epoch": found.epoch,
                "features": [
                    {
                        "feature": each.name,
                        "min_supported": each.min_supported,
                        "max_supported": each.max_supported,
                        "level": each.level,
                    }
                    for each in found.features
                ],
            }
        )
        return
    rows = [(each.name, each.min_supported, each.max_supported, _shown(each), found.epoch) for each in found.features]
    print_table(("FEATURE", "MIN", "MAX", "FINALIZED", "EPOCH"), rows)


@features_command.command("upgrade")
@feature_option("A feature and the level to raise it to. Repeatable.", required=True)
@_dry_run_option
@client_options
@json_option
def upgrade_command(
    features: tuple[tuple[str, int], ...],
    dry_run: bool,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Raise features to a level: all that are named, or none.

    Raising eligible.leader.replicas.version also sets min.insync.replicas for the whole cluster and removes it from
    single brokers, so that all brokers agree on it.
    """
    _update(features, UpgradeType.UPGRADE, dry_run, bootstrap, folder, as_json)


@features_command.command("downgrade")
@feature_option("A feature and the level to lower it to; 0 switches it off. Repeatable.", required=True)
@click.option("--unsafe", is_flag=True, help="Allow it even if metadata of the higher level is lost.")
@_dry_run_option
@client_options
@json_option
def downgrade_command(
    features: tuple[tuple[str, int], ...],
    unsafe: bool,
    dry_run: bool,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Lower features to a level: all that are named, or none."""
    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    _update(features, kind, dry_run, bootstrap, folder, as_json)


def _update(
    features: tuple[tuple[str, int], ...],
    kind: UpgradeType,
    dry_run: bool,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    levels = dict(features)
    with connect(bootstrap, folder) as client:
        update_features(client, levels, kind, validate_only=dry_run)
    if as_json:
        print_json({"levels": levels, "dry_run": dry_run})
        return
    for name, level in levels.items():
        click.echo(f"{name} {'can be set' if dry_run else 'was set'} to {level}")


def _shown(feature: Feature) -> str:
    """A level as people know it: that of metadata.version has a name."""
    if feature.name == METADATA_VERSION:
        try:
            return metadata_version_name(feature.level)
        except ValueError:  # of a cluster that is newer than we are
            return str(feature.level)
    return str(feature.level)
