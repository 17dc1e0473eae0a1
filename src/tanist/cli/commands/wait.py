"""`tanist wait`: scripts go on when the cluster is where they want it, without a sleep."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import click

from tanist.cli.options import client_given, client_options, json_option
from tanist.cli.output.tables import print_json
from tanist.client.positions import LATEST
from tanist.runtime.client import admin
from tanist.runtime.client import groups as of_groups
from tanist.runtime.client.admin import PartitionDescription
from tanist.runtime.client.client import Address, Client, KafkaError
from tanist.runtime.client.records import list_offset
from tanist.runtime.cluster.waiting import wait_until_so
from tanist.text import counted
from tanist.wire.errors import ErrorCode

EXIT_LATE = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """The states to wait for; None: any."""

    topic: str | None
    partition: int | None
    isr: int | None
    leader: str | None
    brokers: int | None
    group: str | None
    members: int | None
    lag: int | None

    def lack(self, client: Client) -> str:
        """The states that do not hold yet; empty if all do."""
        if self.brokers is not None:
            found = len(client.metadata(()).brokers)
            if found != self.brokers:
                return f"{counted(found, 'broker')} in the cluster"
        if self.topic is not None and (lack := self._lack_of_topic(client)):
            return lack
        return "" if self.group is None else self._lack_of_group(client)

    def _lack_of_topic(self, client: Client) -> str:
        try:
            (topic,) = admin.describe_topics(client, [self.topic or ""])
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return f"there is no topic {self.topic}"
            raise
        partitions = [each for each in topic.partitions if self.partition in (None, each.partition)]
        if not partitions:
            return f"{self.topic} has no partition {self.partition}"
        for each in partitions:
            if lack := self._lack_of_partition(each):
                return f"{self.topic}-{each.partition} has {lack}"
        return ""

    def _lack_of_partition(self, partition: PartitionDescription) -> str:
        leader = "none" if partition.leader < 0 else str(partition.leader)
        wanted = self.leader or ("any" if self.isr is None else None)
        if wanted is not None and (leader == "none" if wanted == "any" else leader != wanted):
            return "no leader" if leader == "none" else f"leader {leader}"
        if self.isr is not None and len(partition.isr) != self.isr:
            return f"{len(partition.isr)} in sync"
        return ""

    def _lack_of_group(self, client: Client) -> str:
        group = self.group or ""
        try:
            described = of_groups.describe_group(client, group)
        except KafkaError as error:
            if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
                return f"there is no group {group}"
            raise
        if self.members is not None and len(described.members) != self.members:
            return f"{group} has {counted(len(described.members), 'member')}"
        if self.members != 0 and self.lag is None and described.state != "Stable":
            return f"{group} is {described.state}"
        if self.members and described.state != "Stable":
            return f"{group} is {described.state}"
        if self.lag is None:
            return ""
        committed = of_groups.committed_offsets(client, group)
        owned = {place for member in described.members for place in member.assigned}
        places = {place for place in committed.keys() | owned if self.topic in (None, place[0])}
        places = of_groups.existing(client, group, places)
        if not places:
            return f"{group} has committed nothing"
        missing = sorted(places - committed.keys())
        if missing:
            return f"{group} has committed nothing of {missing[0][0]}-{missing[0][1]}"
        lag = sum(max(0, list_offset(client, *place, LATEST) - committed[place]) for place in places)
        return f"{group} is {counted(lag, 'record')} behind" if lag > self.lag else ""


def _leader(value: str) -> str:
    if value not in ("any", "none") and not value.isdecimal():
        raise click.BadParameter(f"{value!r} is neither a broker's id nor `any` or `none`")
    return value


@click.command("wait")
@click.option("--topic", help="Until this topic exists, and each of its partitions has a leader.")
@click.option("--partition", type=click.IntRange(0), help="Look at this partition only.")
@click.option("--isr", type=click.IntRange(0), metavar="N", help="Until N replicas are in sync, of each partition.")
@click.option("--leader", type=_leader, metavar="ID|any|none", help="Until this broker leads, any does, or none does.")
@click.option("--brokers", type=click.IntRange(0), metavar="N", help="Until N brokers are in the cluster.")
@click.option("--group", help="Until this group is stable: each member has its partitions.")
@click.option("--members", type=click.IntRange(0), metavar="N", help="Until the group has N members.")
@click.option(
    "--lag",
    type=click.IntRange(0),
    metavar="N",
    help="Until the group's lag is at most N records, in all topics or in --topic.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up after SECONDS. 0: check once.",
)
@client_options
@json_option
@click.pass_context
def wait_command(
    ctx: click.Context,
    topic: str | None,
    partition: int | None,
    isr: int | None,
    leader: str | None,
    brokers: int | None,
    group: str | None,
    members: int | None,
    lag: int | None,
    timeout_s: float,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Wait until all the given conditions hold at once.

    \b
    tanist crash 2 && tanist wait --topic orders --isr 2
    tanist wait --brokers 3 --timeout 10 || exit 1
    tanist wait --group billing --lag 0

    A cluster that is not up yet is waited for, too. Without a quorum no condition holds.

    Exit code 0: the conditions hold; 3: not within --timeout, and the message says what was missing; 1: there is no
    such cluster.
    """
    for name, value in (("--partition", partition), ("--isr", isr), ("--leader", leader)):
        if value is not None and topic is None:
            raise click.UsageError(f"{name} needs --topic")
    for name, value in (("--members", members), ("--lag", lag)):
        if value is not None and group is None:
            raise click.UsageError(f"{name} needs --group")
    if topic is None and brokers is None and group is None:
        raise click.UsageError("give a condition: --topic, --brokers or --group")
    wanted = Wanted(topic, partition, isr, leader, brokers, group, members, lag)
    began = time.monotonic()
    lack = wait_until_so(wanted.lack, lambda: client_given(bootstrap, folder), timeout_s)
    took_s = round(time.monotonic() - began, 2)
    if as_json:
        print_json({"came": not lack, "took_s": took_s, "lack": lack or None})
    elif lack:
        click.echo(f"not within {timeout_s:g} s: {lack}", err=True)
    if lack:
        ctx.exit(EXIT_LATE)
