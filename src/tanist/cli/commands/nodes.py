"""`tanist format`, `random-uuid`, `serve`: a single node, for those who write their own `server.properties`."""

from __future__ import annotations

from typing import Any

import click

from tanist.broker.config import ConfigError, PropertiesError
from tanist.cli.options import feature_option, json_option, key_value
from tanist.cli.output.tables import print_json
from tanist.runtime.first_voters import Choice, FirstVoters, FirstVotersError, parse_controllers
from tanist.runtime.format import format_folders, random_id


def _load(path: str, overrides: dict[str, str]) -> Any:
    from tanist.runtime.process.serve import load_config

    try:
        return load_config(path, overrides)
    except (ConfigError, PropertiesError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path}: {error}") from error
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror}") from error


@click.command("format")
@click.option("-c", "--config", "path", required=True, help="The node's properties file.")
@click.option("-t", "--cluster-id", required=True, help="The cluster's id: the same for all nodes. See `random-uuid`.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Skip folders that are formatted already.")
@feature_option("A feature and its level in a new cluster; 0: off. Repeatable.  [default: the latest of all]")
@click.option("-s", "--standalone", is_flag=True, help="This controller is the only voter, at first.")
@click.option(
    "-I",
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY-ID,...",
    help="The first voters: the same list for each of them. `random-uuid` makes directory ids.",
)
@click.option("-N", "--no-initial-controllers", is_flag=True, help="This controller joins the voters later.")
@click.option(
    "-S",
    "--add-scram",
    "scram",
    multiple=True,
    metavar="MECHANISM=[name=NAME,password=PASSWORD]",
    help="A user that the new cluster begins with. Repeatable.",
)
@json_option
def format_command(
    path: str,
    cluster_id: str,
    ignore_formatted: bool,
    features: tuple[tuple[str, int], ...],
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    scram: tuple[str, ...],
    as_json: bool,
) -> None:
    """Prepare a node's log folders, as `kafka-storage format`.

    Writes the cluster's id and the node's id into `meta.properties` in each folder of log.dirs. A node refuses to start
    in a folder that is not formatted, or is formatted for another node.

    With --feature eligible.leader.replicas.version=0 a new cluster elects as Kafka before KIP-966. Give all
    controllers the same features; `tanist features` changes those of an existing cluster.

    A controller whose file has no controller.quorum.voters needs one of --standalone, --initial-controllers and
    --no-initial-controllers: its cluster can add and remove voters while it runs (KIP-853).

    --add-scram 'SCRAM-SHA-512=[name=alice,password=alice-secret]' makes users before there is anybody who could:
    brokers that authenticate to each other by SCRAM need it. Give all controllers the same; iterations=, salt= and
    saltedpassword= (both in base64) may stand there too.
    """
    voters = _first_voters(standalone, initial_controllers, no_initial_controllers)
    done = format_folders(
        _load(path, {}),
        cluster_id,
        ignore_formatted=ignore_formatted,
        features=dict(features),
        voters=voters,
        scram=scram,
    )
    if as_json:
        print_json([{"folder": item.folder, "formatted": item.fresh} for item in done])
        return
    for item in done:
        click.echo(f"{item.folder}: {'formatted' if item.fresh else 'was formatted already'}")


def _first_voters(standalone: bool, listed: str | None, none_yet: bool) -> FirstVoters | None:
    if standalone + (listed is not None) + none_yet > 1:
        raise click.UsageError("choose one of --standalone, --initial-controllers and --no-initial-controllers")
    if listed is not None:
        try:
            return parse_controllers(listed)
        except FirstVotersError as error:
            raise click.BadParameter(str(error), param_hint="--initial-controllers") from None
    if standalone:
        return FirstVoters(Choice.STANDALONE)
    return FirstVoters(Choice.NONE_YET) if none_yet else None


@click.command("random-uuid")
@json_option
def random_uuid_command(as_json: bool) -> None:
    """Print a new cluster id."""
    if as_json:
        print_json({"id": random_id()})
    else:
        click.echo(random_id())


@click.command("serve")
@click.argument("file", required=False)
@click.option(
    "--from-environment",
    is_flag=True,
    help="Take the settings from KAFKA_* variables, by the rules of the image apache/kafka, over those in FILE (if "
    "there is one); format new folders.",
)
@click.option("--print-config", is_flag=True, help="With --from-environment: print the settings, and run nothing.")
@click.option(
    "--override",
    "overrides",
    type=key_value,
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting that overrides the file's. Repeatable.",
)
@click.pass_context
def serve_command(
    ctx: click.Context,
    file: str | None,
    from_environment: bool,
    print_config: bool,
    overrides: tuple[tuple[str, str], ...],
) -> None:
    """Run one node in the foreground, as `kafka-server-start`.

    FILE is a Kafka `server.properties`; `tanist format` must have formatted the node's folders. The log goes to
    standard output. SIGTERM or Ctrl-C shuts the node down cleanly: it hands its leaderships over first. A second one
    ends the process at once.
    """
    from tanist.runtime.process.serve import main

    flags = {file or "": file is not None, "--from-environment": from_environment, "--print-config": print_config}
    chosen = [word for word, given in flags.items() if given]
    ctx.exit(main([*chosen, *(f"--override={key}={value}" for key, value in overrides)]))
