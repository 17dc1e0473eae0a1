"""`tanist lab demo`: the Last Replica Standing, before KIP-966 and after, in virtual time."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tanist.cli.output.lines import columns, say, wrapped
from tanist.cli.output.tables import print_json
from tanist.runtime.client.explain import Situation, explain

if TYPE_CHECKING:
    from tanist.lab.last_replica_standing import Ending, Scene

_INDENT = " " * 6


@click.command("demo")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def demo_command(as_json: bool) -> None:
    """Play the Last Replica Standing, before KIP-966 and with it.

    Before: no Eligible Leader Replicas (ELR), and the high watermark goes on below min.insync.replicas. Simulated nodes
    go through the steps T0 to T4 of KIP-966's motivation in virtual time. The command starts no process, and prints the
    same on every machine.
    """
    from tanist.lab.last_replica_standing import Scene, play  # the simulator is loaded by who wants it

    if as_json:
        print_json(
            {name: [asdict(each) for each in play(elr=elr)] for name, elr in (("without", False), ("with", True))}
        )
        return
    say(
        "THE LAST REPLICA STANDING: one partition, three replicas, min.insync.replicas=2, writes with acks=all.", hang=0
    )
    say("Simulated nodes in virtual time; the same steps twice.")
    for elr, title in (
        (False, "Kafka before KIP-966: no ELR, and a high watermark that goes on below min.insync.replicas"),
        (True, "KIP-966, as `tanist up` makes it"),
    ):
        click.echo()
        for line in wrapped(title, columns()):
            click.secho(line, bold=True)
        for each in play(elr=elr):
            if isinstance(each, Scene):
                _show(each, elr=elr)
            else:
                _end(each)
    click.echo()
    click.echo("Next:")
    for line in (
        "tanist up --detach                    a real cluster, to try the same on",
        "tanist crash 3 --lose page-cache      what T2 does",
        "tanist topics describe T --explain    why each partition is as it is",
        "docs/kip966.md, docs/stories.md       every rule; the same, on real processes",
    ):
        say("  " + line, hang=40)


def _show(scene: Scene, *, elr: bool) -> None:
    state = scene.state
    leader = str(state.leader) if state.has_leader else "none"
    say(f"  {scene.when:3} {scene.what}", hang=len(_INDENT))
    click.echo(
        f"{_INDENT}{scene.at_ms / 1000:6.2f} s  leader {leader:4}  ISR {_ids(state.isr):7}  ELR {_ids(state.elr):7}"
        f"  LastKnownElr {_ids(state.last_known_elr)}".rstrip()
    )
    why = explain(
        Situation(
            leader=state.leader,
            replicas=state.replicas,
            isr=state.isr,
            elr=state.elr,
            last_known_elr=state.last_known_elr,
            offline=scene.offline,
            min_isr=scene.min_isr,
            elr_enabled=elr,
            high_watermark_waits=elr,
            last_unclean_epoch=state.last_unclean_epoch,
        )
    )
    say(_INDENT + why, hang=len(_INDENT))


def _end(ending: Ending) -> None:
    click.echo(
        f"{_INDENT}{ending.acknowledged} acknowledged, {ending.refused} refused, {ending.consumed} in the log: ",
        nl=False,
    )
    if ending.lost:
        click.secho(f"{len(ending.lost)} LOST ({ending.lost[0]} to {ending.lost[-1]})", fg="red", bold=True, nl=False)
        click.echo()
        say(f"{_INDENT}{ending.salvaged} of them saved by the replicas that truncated them (`tanist salvage`)")
    else:
        click.secho("none lost", fg="green", bold=True)
    click.echo(f"{_INDENT}digest {ending.digest[:16]}")


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers)) or "-"
