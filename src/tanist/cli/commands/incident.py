"""`tanist incident`: the Last Replica Standing as an exercise, with the operator's own hands on live brokers.

It makes a cluster for each act, says which command to type, sees that it has happened, and explains it. With --auto it
types the commands itself, as processes of their own: what they print is shown, nothing is acted.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from tanist.cli.commands.incident_script import (
    ASSIGNMENT,
    CONFIG,
    EVERYBODY_IN_SYNC,
    TOPIC,
    TOPIC_CONFIG,
    WITH,
    WITHOUT,
    Command,
    Now,
    Step,
    steps,
)
from tanist.cli.commands.topic_states import describe
from tanist.cli.output.tables import print_json
from tanist.runtime.client import admin
from tanist.runtime.client.account import PartitionAccount, account_of
from tanist.runtime.client.acknowledged import read_ledger
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster.addresses import client_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.wire.batch import NewRecord
from tanist.wire.errors import ErrorCode

_WIDTH = 78
_POLL_EVERY_S = 0.1
_ASK_S = 3.0
_AUTO_PATIENCE_S = 60.0
_ELR = "eligible.leader.replicas.version"


@dataclass(slots=True)
class Ending:
    """The result of one act."""

    elr: bool
    acknowledged: int = 0
    lost: int = 0
    salvaged: int = 0
    lost_in_the_end: int = 0

    @property
    def as_described(self) -> bool:
        """Whether it went as the KIP says."""
        return self.lost_in_the_end == 0 and (self.lost == 0) == self.elr


@click.command("incident")
@click.option(
    "--elr",
    type=click.Choice(["off", "on", "both"]),
    default="both",
    show_default=True,
    help="Without Eligible Leader Replicas, with them, or one after the other.",
)
@click.option("--auto", is_flag=True, help="Run the commands as well: you type nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print only the result, as JSON. Needs --auto.")
@click.pass_context
def incident_command(ctx: click.Context, elr: str, auto: bool, as_json: bool) -> None:
    """Lose acknowledged records yourself, then see KIP-966 prevent it.

    A guided exercise: the Last Replica Standing, KIP-966's motivation, on brokers in a temporary folder. You need a
    second terminal. Each step says what to type there, waits for the result, and explains it. First ELR is off, so
    leaders are elected as in Kafka before KIP-966, and 50 records are lost; then the same steps lose none. The high
    watermark keeps KIP-966's rule in both: no setting switches it off (`tanist lab demo` does, in simulated nodes).

    It takes about a minute with --auto. Ctrl-C ends it and leaves nothing behind. Exit code 0: it went as described.
    """
    if as_json and not auto:
        raise click.UsageError("--json needs --auto")
    endings = []
    try:
        for with_elr in {"off": [False], "on": [True], "both": [False, True]}[elr]:
            endings.append(_Act(with_elr, auto=auto, silent=as_json).play())
    except KeyboardInterrupt:
        raise click.ClickException("interrupted; its brokers are stopped and its folder is removed") from None
    if as_json:
        print_json(
            {"acts": [_as_json(ending) for ending in endings], "as_described": all(e.as_described for e in endings)}
        )
    else:
        _summarize(endings)
    if not all(ending.as_described for ending in endings):
        ctx.exit(1)


class _Act:
    """One cluster, and the steps on it."""

    def __init__(self, elr: bool, *, auto: bool, silent: bool) -> None:
        self._elr = elr
        self._auto = auto
        self._silent = silent
        self._ending = Ending(elr)

    def play(self) -> Ending:
        with tempfile.TemporaryDirectory(prefix="tanist-incident-") as name:
            self._folder, self._ledger = Path(name) / "data", Path(name) / "acked.jsonl"
            self._ledger.touch()
            cluster = LocalCluster(self._folder)
            self._say()
            self._say(WITH if self._elr else WITHOUT, bold=True)
            self._say("starting three brokers, and a separate controller that stays up ...")
            cluster.up(
                brokers=3,
                controllers=1,
                port=0,
                config=CONFIG,
                features={} if self._elr else {_ELR: 0},
                ends_with_us=True,
                ephemeral=True,
            )
            try:
                self._begin()
                for number, step in enumerate(steps(elr=self._elr), start=1):
                    self._perform(number, step)
            finally:
                with suppress(KeyboardInterrupt):
                    cluster.down()
        return self._ending

    def _begin(self) -> None:
        with self._client(30.0) as client:
            admin.create_topic(client, TOPIC, assignment=ASSIGNMENT, config=TOPIC_CONFIG)
        self._await(EVERYBODY_IN_SYNC)
        self._tell(
            f"Topic {TOPIC} has one partition with replicas on brokers 1, 2 and 3; min.insync.replicas=2, and "
            "flush.messages=100: records go to disk a hundred at a time."
        )
        if not self._auto:
            self._tell("In another terminal, with this tanist on its PATH:")
            self._say(f"    export TANIST_DATA={self._folder} ACKED={self._ledger}", bold=True)

    # -- a step

    def _perform(self, number: int, step: Step) -> None:
        self._say()
        self._tell(f"{number}. {f'{step.name}: ' if step.name else ''}{step.story}")
        for command in step.commands:
            self._say(f"    $ {command}", bold=True)
            if self._auto:
                self._type(command)
        if not self._auto:
            self._say("    waiting until that has happened ...")
        now = self._await(step.until)
        if not step.counted and now.partition is not None:
            self._show_partition(now.partition)
        self._tell(step.means)
        if step.refused:
            self._show_refusal()
        if step.counted:
            self._count()

    def _type(self, command: Command) -> None:
        words = shlex.split(command.words.replace("$ACKED", shlex.quote(str(self._ledger))))
        first, last = command.numbers or (1, 0)
        done = subprocess.run(
            [sys.executable, "-m", "tanist.cli.main", *words, "--data", str(self._folder)],
            input="".join(f"{number}\n" for number in range(first, last + 1)),
            capture_output=True,
            text=True,
            check=False,
        )
        for line in (done.stdout + done.stderr).splitlines():
            self._say(f"    {line}")

    def _await(self, until: Callable[[Now], bool]) -> Now:
        """The state once the step has come about. An operator may take any time."""
        deadline = time.monotonic() + _AUTO_PATIENCE_S if self._auto else None
        why = ""
        while deadline is None or time.monotonic() < deadline:
            try:
                now = self._read_now()
                if until(now):
                    return now
                why = _as_it_is(now)
            except (KafkaError, Unreachable) as error:
                why = str(error)
            time.sleep(_POLL_EVERY_S)
        raise click.ClickException(
            f"the step was not done within {_AUTO_PATIENCE_S:.0f} s ({why}): is the machine too busy? Try again"
        )

    def _read_now(self) -> Now:
        entries = load_existing(self._folder)
        brokers = frozenset(node.node_id for node in entries.brokers if node.alive and not node.paused)
        acknowledged = sum(map(len, read_ledger(self._ledger).values()))
        if not brokers:
            return Now(None, brokers, acknowledged)
        with self._client(_ASK_S) as client:
            ((partition,),) = (topic.partitions for topic in admin.describe_topics(client, [TOPIC]))
            lost = len(self._account(client).lost) if partition.leader >= 0 and acknowledged else None
        return Now(partition, brokers, acknowledged, lost)

    def _account(self, client: Client) -> PartitionAccount:
        (found,) = account_of(client, TOPIC, {0: read_ledger(self._ledger)[TOPIC, 0]}, self._folder)
        return found

    # -- what is shown

    def _show_partition(self, partition: admin.PartitionDescription) -> None:
        leader = "none" if partition.leader < 0 else str(partition.leader)
        elr = f"  ELR {_ids(partition.elr or ())}" if self._elr else ""
        self._say(f"    leader {leader}  ISR {_ids(partition.isr)}{elr}  offline {_ids(partition.offline)}")
        with suppress(KafkaError, Unreachable), self._client(_ASK_S) as client:
            (described,) = describe(client, [TOPIC], explained=True)
            self._tell(described.partitions[0].explanation or "", indent="    ")

    def _show_refusal(self) -> None:
        try:
            with self._client(_ASK_S) as client:
                record = NewRecord(time.time_ns() // 1_000_000, None, b"one too many")
                Producer(client, request_timeout_ms=500).send(TOPIC, 0, [record], timeout_s=0.5)
        except KafkaError as error:
            self._tell(f"A write with acks=all is refused now: {error.name}.")
            if error.code not in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
                raise
        else:
            raise click.ClickException("a write with acks=all was acknowledged by one replica: that is a defect")

    def _count(self) -> None:
        with self._client(30.0) as client:
            found = self._account(client)
        ending = self._ending
        if not ending.acknowledged:
            ending.acknowledged, ending.lost = found.account.acknowledged, len(found.lost)
            ending.salvaged = found.salvaged or 0
        ending.lost_in_the_end = len(found.lost)

    def _tell(self, text: str, indent: str = "") -> None:
        for line in textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent):
            self._say(line)

    def _say(self, line: str = "", *, bold: bool = False) -> None:
        if not self._silent:
            click.secho(line, bold=bold or None)

    def _client(self, timeout_s: float) -> Client:
        return client_of(load_existing(self._folder), self._folder, timeout_s=timeout_s)


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, sorted(brokers))) or "-"


def _as_it_is(now: Now) -> str:
    if now.partition is None:
        return f"no broker can be asked, {len(now.brokers)} run"
    return f"leader {now.partition.leader}, ISR {_ids(now.partition.isr)}, {now.acknowledged} acknowledged"


def _as_json(ending: Ending) -> dict[str, object]:
    return {
        "elr": ending.elr,
        "acknowledged": ending.acknowledged,
        "lost": ending.lost,
        "salvaged": ending.salvaged,
        "lost_after_merge_back": ending.lost_in_the_end,
    }


def _summarize(endings: Sequence[Ending]) -> None:
    click.echo()
    for ending in endings:
        what = "with ELR" if ending.elr else "without ELR"
        restored = f", {ending.salvaged} of them salvaged, {ending.lost_in_the_end} missing now" if ending.lost else ""
        click.echo(f"{what + ':':13}{ending.acknowledged} acknowledged, {ending.lost} lost{restored}")
    click.echo("Next: `tanist what-if` asks the same of your own settings")
