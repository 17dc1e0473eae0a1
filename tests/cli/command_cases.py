"""How each command of the tree is run, and a cluster to run them on.

`CASES` has a line for each command. One without a line fails `test_cli_json.py`: write down how it is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster_file import load_existing
from tests.cli.cli_rig import FEW_PARTITIONS, free_port
from tests.cli.salvage_rig import WALL_MS, salvage_something
from tests.cli.transactions_rig import FEW_TRANSACTIONS, add, begin, write


@dataclass(frozen=True)
class Case:
    """How a command is run. `{...}` in its arguments are the names of the shared cluster's things."""

    arguments: str = ""
    stdin: str = ""
    code: int = 0
    before: tuple[str, ...] = ()
    """Commands without which it has nothing to do."""
    after: tuple[str, ...] = ()
    """Commands that put right what it has done."""
    lines: bool = False
    """A line of JSON for each record, instead of one value."""
    data: str = "{data}"
    """The folder of `--data`."""
    has: tuple[str, ...] = ()
    """Keys of the result, or of the first of its list."""


OFTEN_CLEANED = ["--config", "log.retention.check.interval.ms=1000"]
"""The cases of a busy machine take longer than the five minutes of the default."""
IN_SYNC = tuple(
    f"wait --topic {topic} --isr 3" for topic in ("{topic}", "payments", "__consumer_offsets", "__transaction_state")
)
"""After another case has started a broker again."""
WITHOUT_LEADER = (
    "topics create lone --replica-assignment 3 --config unclean.recovery.strategy=None",
    "crash 3",
    "start 3",
    "wait --brokers 3 --timeout 120",
)
"""A partition whose only replica has had an unclean shutdown."""
KEYS_OF_A_RULE = ("kind", "trigger", "hits")

CASES = {
    # -- the cluster
    "demo": Case("--records 100", has=("acknowledged", "lost")),
    "up": Case("{one} --detach", data="{other}", after=("down --data {other}",), has=("ready_s",)),
    "incident": Case("--auto --elr on", has=("acts", "as_described")),
    "down": Case(data="{other}", before=("up {one} --detach --data {other}",), has=("stopped",)),
    "reset": Case(
        "--yes",
        data="{other}",
        before=("up {one} --detach --data {other}",),
        after=("down --data {other}",),
        has=("running", "cluster_id"),
    ),
    "status": Case(has=("brokers", "controller")),
    "top": Case("--interval 0.1 --count 2", lines=True, has=("brokers", "partitions")),
    "wait": Case("--brokers 3 --topic {topic} --isr 3 --timeout 0", before=IN_SYNC, has=("came", "took_s")),
    "events": Case("-n 3", lines=True, has=("ms", "node", "event")),
    "logs": Case("-n 3", lines=True, has=("time", "node", "level", "text")),
    "start": Case("3", before=("crash 3",), has=("id", "state")),
    "stop": Case("3", after=("start 3",), has=("id", "state")),
    "features describe": Case(has=("epoch", "features")),
    "features upgrade": Case("--feature eligible.leader.replicas.version=1 --dry-run", has=("levels",)),
    "features downgrade": Case("--feature eligible.leader.replicas.version=0 --dry-run", has=("levels",)),
    "migrate plan": Case("--back", has=("nodes", "findings", "steps")),
    "migrate check": Case("--back --node 2", before=IN_SYNC, has=("safe", "partitions", "problems")),
    "migrate next": Case(lines=True, has=("event",)),
    "migrate back": Case(
        "--timeout 0 --accept unavailable --accept unclean-recovery",
        code=3,
        before=IN_SYNC,
        lines=True,
        has=("event",),
    ),
    # -- topics, records, groups
    "topics list": Case(has=("topic", "partitions")),
    "topics create": Case("made --partitions 1", after=("topics delete made",), has=("topic", "topic_id")),
    "topics describe": Case("{topic} --explain", has=("topic", "partitions")),
    "topics alter": Case("{topic} --config retention.ms=60000", has=("altered",)),
    "topics delete": Case("gone", before=("topics create gone --partitions 1",), has=("deleted",)),
    "reassign plan": Case("--topic {topic}", has=("version", "partitions")),
    "reassign apply": Case("{move} --wait 120", has=("started", "refused", "unfinished")),
    "reassign cancel": Case("--all", has=("cancelled", "refused")),
    "reassign list": Case("{move}", has=("topic", "partition", "state", "copied")),
    "configs describe": Case("--topic {topic} --all", has=("name", "value", "source")),
    "configs alter": Case("--topic {topic} --config retention.bytes=1000000", has=("altered",)),
    "users add": Case("u --password one-secret", has=("user", "mechanism")),
    "users list": Case(before=("users add v --password one-secret",), has=("user", "mechanism")),
    "users remove": Case("w", before=("users add w --password one-secret",), has=("user", "removed")),
    "quotas describe": Case(
        before=("quotas alter --user u --add-config producer_byte_rate=5",), has=("entity", "quotas")
    ),
    "quotas alter": Case("--ip-defaults --add-config connection_creation_rate=1000", has=("altered",)),
    "produce": Case("{topic}", stdin="one\ntwo\nthree\n", has=("topic", "sent")),
    "consume": Case("{topic} --from-beginning --max-messages 2", lines=True, has=("topic", "offset", "key", "value")),
    "account": Case("{ledger}", has=("partitions",)),
    "groups list": Case(has=("group", "state")),
    "groups describe": Case("{group}", has=("group", "members", "offsets")),
    "groups reset-offsets": Case("{group} --topic {topic} --to-earliest", has=("executed", "offsets")),
    "groups delete": Case(
        "leaving",
        before=("groups reset-offsets leaving --topic {topic} --to-earliest --execute",),
        has=("group", "deleted"),
    ),
    "transactions list": Case(has=("transactional_id", "state")),
    "transactions describe": Case("tx-open", has=("state", "partitions")),
    "transactions describe-producers": Case("payments 0", has=("producer_id", "start_offset")),
    "transactions find-hanging": Case("--max-transaction-timeout 0", has=("topic", "partition", "start_offset")),
    "transactions abort": Case("payments 1 --start-offset {hangs_at}", has=("topic", "aborted")),
    "transactions force-terminate": Case("tx-open", has=("transactional_id", "producer_epoch")),
    # -- faults, recovery
    "crash": Case("3 --lose page-cache", after=("start 3",), has=("id", "state", "lost")),
    "pause": Case("3", after=("resume 3",), has=("paused",)),
    "resume": Case("3", before=("pause 3",), has=("resumed",)),
    "partition": Case("clients", after=("heal",), has=("faults",)),
    "slow": Case("3 --latency 1ms", after=("heal",), has=("faults",)),
    "disk": Case("3 slow --latency 1ms", after=("heal",), has=("faults",)),
    "heal": Case(has=("faults", "resumed")),
    "faults list": Case(has=("faults",)),
    "faults inject error": Case("PRODUCE NOT_ENOUGH_REPLICAS --once", after=("heal",), has=KEYS_OF_A_RULE),
    "faults inject delay": Case("FETCH 500ms --times 2", after=("heal",), has=KEYS_OF_A_RULE),
    "faults inject disconnect": Case("METADATA --on-call 2", after=("heal",), has=KEYS_OF_A_RULE),
    "faults inject blackhole": Case("some-client --every-time", after=("heal",), has=KEYS_OF_A_RULE),
    "recovery plan": Case(
        "lone",
        before=WITHOUT_LEADER,
        after=("recovery apply lone 0 --leader 3 --yes", "topics delete lone"),
        has=("topic", "partition", "replicas", "choices"),
    ),
    "recovery apply": Case(
        "lone 0 --leader 3 --yes",
        before=WITHOUT_LEADER,
        after=("topics delete lone",),
        has=("topic", "partition", "leader", "lost", "elected", "leader_epoch"),
    ),
    "elect": Case("--type preferred --topic {topic} --partition 0", has=("type", "partitions")),
    "salvage list": Case(data="{salvaged}", has=("id", "topic", "records")),
    "salvage show": Case("{entry}", data="{salvaged}", has=("id", "first_records")),
    "salvage export": Case("--all --to jsonl --output {out}", data="{salvaged}", has=("records", "output")),
    "salvage remove": Case("{entry} --yes", data="{salvaged}", has=("removed",)),
    # -- the lab, which needs no cluster
    "lab check": Case("--depth 2", has=("mutation",)),
    "lab demo": Case(has=("with", "without")),
    "lab mutants": Case("A1 --by model", has=("mutations",)),
    "lab replay": Case("3", has=("moments", "ending")),
    "lab report": Case("--draw 1 --no-mutants --out {report}", has=("played", "faults")),
    "lab run": Case("--seeds 1", has=("seeds", "violations")),
    "lab scenarios": Case("{scenarios}"),
    "lab search": Case("--out {report}", has=("written",)),
    "lab trace": Case("--out {report}", has=("traces",)),
    "lab verify": Case("{history}", has=("valid",)),
    "what-if": Case("--rf 1 --min-isr 1 --unclean 0 --depth 2", has=("summary",)),
    "jepsen": Case(
        "--minutes 0.2 --test crash --client tanist --out {jepsen}", has=("lost", "transactions", "allowed_by_kafka")
    ),
    # -- nodes
    "format": Case("-c {properties} -t {cluster_id}", has=("folder", "formatted")),
    "random-uuid": Case(has=("id",)),
}
"""Those of `spark` need Java: `tests/spark` runs them, and here their errors are looked at."""

HISTORY = """\
{"process": "p1", "type": "ok", "f": "send", "partition": "t-0", "value": 1, "offset": 0, "invoked_ns": 1, "time_ns": 2}
"""


def tree(command: click.Command = app, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group below the root, with the words that call it."""
    if path:
        yield path, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from tree(found, (*path, name))


ALL = {" ".join(path): command for path, command in tree() if not isinstance(command, click.Group)}


def has(command: click.Command, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


@contextmanager
def cluster_of_the_cases(folder: Path) -> Iterator[dict[str, str]]:
    """A cluster of three brokers with a topic and a group, and files that commands read."""
    salvage_something(folder / "salvaged")
    history = folder / "history.jsonl"
    history.write_text(HISTORY)
    scenarios = folder / "scenarios.yaml"
    scenarios.write_text("scenarios:\n- {id: one, kind: assignment, from: [1], to: [2], expect: {adding: [2]}}\n")
    properties = folder / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        f"controller.quorum.voters=1@127.0.0.1:9093\nlog.dirs={folder}/formatted\n"
    )
    move = folder / "move.json"
    move.write_text('{"version": 1, "partitions": [{"topic": "things", "partition": 0, "replicas": [1, 2, 3]}]}')
    found = {
        "move": str(move),
        "data": str(folder / "data"),
        "other": str(folder / "other"),
        "one": f"--brokers 1 --port {free_port()} {' '.join(FEW_PARTITIONS)}",
        "few": " ".join([*FEW_PARTITIONS, *FEW_TRANSACTIONS, *OFTEN_CLEANED]),
        "topic": "things",
        "group": "readers",
        "ledger": str(folder / "ledger.jsonl"),
        "salvaged": str(folder / "salvaged"),
        "entry": str(WALL_MS + 2),
        "out": str(folder / "out.jsonl"),
        "history": str(history),
        "scenarios": str(scenarios),
        "jepsen": str(folder / "jepsen"),
        "report": str(folder / "report"),
        "properties": str(properties),
        "cluster_id": "4L6g3nShT-eMCtK--X86sw",
    }
    assert invoke(f"up --detach --port {free_port()} {{few}}", found).exit_code == 0
    try:
        for command in (
            "topics create {topic} --replica-assignment 1:2:3,2:1:3",
            "groups reset-offsets {group} --topic {topic} --to-earliest --execute",
        ):
            assert invoke(command, found).exit_code == 0
        assert invoke("produce {topic} --ledger {ledger}", found, stdin="zero\nnull\n").exit_code == 0
        found["hangs_at"] = str(transactions(folder / "data"))
        yield found
    finally:
        invoke("down", found)


def transactions(folder: Path) -> int:
    """One that is open, and one that hangs; gives where the latter begins."""
    with Client(addresses_of(load_existing(folder), folder)) as client:
        create_topic(client, "payments", partitions=2)
        producer = begin(client, "tx-open")
        add(client, "tx-open", producer, 0, "payments")
        write(client, "tx-open", producer, 0, "payments")
        return write(client, "tx-hangs", begin(client, "tx-hangs"), 1, "payments")


def words_of(line: str, names: dict[str, str], data: str = "{data}") -> list[str]:
    """What is typed behind `tanist`, with the folder of the case."""
    words = line.format(**names).split()
    command = next(ALL[name] for depth in (3, 2, 1) if (name := " ".join(words[:depth])) in ALL)
    if has(command, "--data") and "--data" not in words:
        words += ["--data", data.format(**names)]
    return words


def invoke(line: str, names: dict[str, str], *, stdin: str = "", data: str = "{data}") -> Result:
    return CliRunner().invoke(app, words_of(line, names, data), input=stdin, prog_name="tanist")
