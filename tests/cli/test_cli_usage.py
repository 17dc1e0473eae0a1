"""The command line itself: help, mistakes and what they are answered with, commands that need no cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import COMMANDS, TREE, app
from tanist.cli.tree import Group, short_help
from tanist.text import counted
from tests.cli.command_cases import tree

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, arguments, prog_name="tanist")


EVERY = pytest.mark.parametrize(("path", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in tree()])


@EVERY
def test_every_command_has_help_that_fits_80_columns(run: Run, path: tuple[str, ...], command: click.Command) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")
    assert [line for line in result.output.splitlines() if len(line) > 80] == []
    sentence = short_help(command)
    assert sentence.endswith((".", "?"))
    assert "..." not in sentence


def test_the_tree_of_commands_is_shown_in_sections(run: Run) -> None:
    lines = run("--help").output.splitlines()
    at = [lines.index(f"{title}:") for title in TREE]
    assert at == sorted(at)
    for command in COMMANDS:
        (line,) = (line for line in lines if line.startswith(f"  {command} "))
        assert line.endswith((".", ")")), "a sentence of one line"


@pytest.mark.parametrize("group", ["", *(" ".join(path) for path, found in tree() if isinstance(found, click.Group))])
def test_every_group_has_its_commands_in_a_line_each(run: Run, group: str) -> None:
    output = run(*group.split(), "--help").output
    command = dict(tree()).get(tuple(group.split()), app)
    assert isinstance(command, Group)
    for name in command.list_commands(click.Context(command)):
        assert re.search(rf"^  {name} +[A-Z].*\.$", output, re.MULTILINE), name


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("stauts", "did you mean `tanist status`"),
        ("topic", "did you mean `tanist topics`"),
        ("topics lst", "did you mean `tanist topics list`?"),
        ("groups delte g", "did you mean `tanist groups delete`?"),
        ("salvage exprot", "did you mean `tanist salvage export`?"),
        ("lab mutant", "did you mean `tanist lab mutants`?"),
        ("reset-offsets g", "did you mean `tanist groups reset-offsets`?"),
        ("topics list --bootsrap x", "did you mean `--bootstrap`?"),
        ("up --broker 3", "did you mean `--brokers`?"),
        ("qqq", "`tanist --help` lists all"),
        ("topics qqq", "`tanist topics --help` lists all"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(run: Run, typed: str, meant: str) -> None:
    result = run(*typed.split())
    assert meant in result.stderr
    assert result.stderr.startswith("Error: no such ")
    assert len(result.stderr.splitlines()) == 2
    assert result.stdout == ""
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("typed", "code", "kind"),
    [
        ("status", 1, "cluster"),
        ("topics lst", 2, "usage"),
        ("crash two", 2, "usage"),
        ("topics describe --all", 2, "usage"),
        ("format -c none.properties -t x", 1, "file"),
        ("topics list --bootstrap 127.0.0.1:1", 1, "unreachable"),
    ],
)
def test_an_error_is_json_if_results_are(
    run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, kind: str
) -> None:
    from tanist.runtime.client import client

    monkeypatch.setattr(client, "_BACKOFF_S", (100.0,))  # no second try
    result = run(*typed.split(), "--json")
    assert result.stdout == ""
    error = json.loads(result.stderr)["error"]
    assert (error["kind"], error["exit_code"], result.exit_code) == (kind, code, code)
    assert error["message"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_and_how_to_install_it(run: Run, shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert f"# tanist completion {shell} > " in result.output
    assert "_TANIST_COMPLETE" in result.output
    assert result.output.startswith("#compdef tanist\n") == (shell == "zsh")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("tanist sta", ["start", "status"]),
        ("tanist topics de", ["delete", "describe"]),
        ("tanist lab demo --j", ["--json"]),
    ],
)
def test_a_shell_completes_commands_of_groups_and_options(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: str, completed: list[str]
) -> None:
    monkeypatch.setenv("_TANIST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    result = CliRunner().invoke(app, [], prog_name="tanist")
    assert sorted(line.removeprefix("plain,") for line in result.stdout.splitlines()) == completed


def test_a_number_has_its_noun() -> None:
    assert [counted(number, "kind") for number in (0, 1, 2)] == ["0 kinds", "1 kind", "2 kinds"]
    assert counted(3, "entry") == "3 entries"
    assert counted(2, "batch") == "2 batches"
    assert counted(2, "day") == "2 days"
    assert counted(1200, "record", separator=",") == "1,200 records"
    assert counted(2, "person", "people") == "2 people"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nonsense",), "no such command 'nonsense'"),
        (("up", "--brokers", "0"), "0 is not in the range"),
        (("up", "--config", "novalue"), "'novalue' is not KEY=VALUE"),
        (("up", "--controllers", "some"), "'some' is neither `combined` nor a number"),
        (("crash",), "missing argument 'ID...'"),
        (("crash", "two"), "'two' is not a valid integer"),
        (("topics", "list", "--bootstrap", "nowhere"), "'nowhere' is not host:port"),
        (("topics", "create", "t", "--replica-assignment", "1;2"), "is not like 1:2:3,2:3:1"),
        (("topics", "create", "t", "--replica-assignment", "1:2", "--partitions", "2"), "leave out the other options"),
        (("topics", "alter", "t"), "nothing to change"),
        (("topics", "alter", "t", "--replica-assignment", "1:x"), "is not like 1:2:3,2:3:1"),
        (("configs", "describe"), "give one of --topic NAME, --group NAME and --broker ID"),
        (
            ("configs", "describe", "--topic", "a", "--broker", "1"),
            "give one of --topic NAME, --group NAME and --broker ID",
        ),
        (("configs", "describe", "--broker", "one"), "takes an id or `all`"),
        (("configs", "alter", "--topic", "a"), "nothing to change"),
        (("elect", "--all-topic-partitions"), "missing option '--type'"),
        (("elect", "--type", "random", "--all-topic-partitions"), "'random' is not one of"),
        (("elect", "--type", "preferred"), "give one of --topic, --all-topic-partitions and --path-to-json-file"),
        (("elect", "--type", "preferred", "--topic", "t", "--partition", "0", "--all-topic-partitions"), "give one of"),
        (("elect", "--type", "preferred", "--all-topic-partitions", "--path-to-json-file", "f"), "give one of"),
        (("elect", "--type", "preferred", "--topic", "t"), "--topic and --partition go together"),
        (("elect", "--type", "preferred", "--all-topic-partitions", "--partition", "1"), "go together"),
        (("elect", "--type", "designation", "--topic", "t", "--partition", "0"), "needs --desired-leader"),
        (("elect", "--type", "designation", "--all-topic-partitions"), "use --path-to-json-file"),
        (("elect", "--type", "unclean", "--topic", "t", "--partition", "0", "--desired-leader", "1"), "goes with"),
        (("elect", "--type", "designation", "--path-to-json-file", "f", "--desired-leader", "1"), "goes with"),
        (("features", "upgrade"), "missing option '--feature'"),
        (("features", "upgrade", "--feature", "a"), "'a' is not KEY=VALUE"),
        (("features", "upgrade", "--feature", "a=b"), "a level is a number from 0 to 32767"),
        (("features", "upgrade", "--feature", "a=32768"), "a level is a number from 0 to 32767"),
        (("features", "upgrade", "--feature", "metadata.version=9.9"), "metadata.version 9.9 is not known"),
        (("produce", "t", "--acks", "2"), "'2' is not one of"),
        (("format", "-c", "x"), "missing option '-t'"),
        (("serve", "x", "--override", "y"), "'y' is not KEY=VALUE"),
    ],
)
def test_a_mistake_is_explained_with_exit_code_2(run: Run, arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert said in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status",), "no cluster in"),
        (("down",), "tanist up --data"),
        (("crash", "1"), "no cluster in"),
        (("topics", "list"), "no cluster in"),
        (("topics", "list", "--bootstrap", "127.0.0.1:1"), "127.0.0.1:1: Connection refused"),
        (("produce", "t", "--bootstrap", "127.0.0.1:1"), "whether the cluster is up (`tanist status`)"),
        (("format", "-c", "none.properties", "-t", "x"), "Error: cannot read none.properties"),
    ],
)
def test_what_cannot_be_done_is_explained_with_exit_code_1(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    from tanist.runtime.client import client

    monkeypatch.setattr(client, "_BACKOFF_S", (100.0,))  # no second try
    result = run(*arguments)
    assert said in result.output
    assert result.exit_code == 1
    assert "Traceback" not in result.output


def test_a_random_uuid_is_one_of_kafkas(run: Run) -> None:
    ids = {run("random-uuid").output.strip() for _ in range(20)}
    assert len(ids) == 20
    assert all(len(found) == 22 and not found.startswith("-") for found in ids)


@pytest.fixture
def properties(tmp_path: Path) -> Callable[..., str]:
    def write(node_id: int = 1, **more: str) -> str:
        path = tmp_path / "server.properties"
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.quorum.voters": f"{node_id}@127.0.0.1:9093",
            "log.dirs": f"{tmp_path}/a,{tmp_path}/b/c",
        } | {key.replace("_", "."): value for key, value in more.items()}
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return str(path)

    return write


def test_format_writes_what_kafka_writes_and_never_twice(run: Run, properties: Any, tmp_path: Path) -> None:
    cluster_id = run("random-uuid").output.strip()
    result = run("format", "-c", properties(), "-t", cluster_id, "--json")
    assert json.loads(result.output) == [
        {"folder": f"{tmp_path}/a", "formatted": True},
        {"folder": f"{tmp_path}/b/c", "formatted": True},
    ]
    first = (tmp_path / "a" / "meta.properties").read_text()
    second = (tmp_path / "b" / "c" / "meta.properties").read_text()
    for line in (f"cluster.id={cluster_id}", "node.id=1", "version=1"):
        assert line in first.splitlines()
    assert first != second  # each folder has an id of its own

    again = run("format", "-c", properties(), "-t", cluster_id)
    assert again.exit_code == 1
    assert "--ignore-formatted" in again.output
    ignored = run("format", "-c", properties(), "-t", cluster_id, "--ignore-formatted")
    assert ignored.exit_code == 0
    assert "was formatted already" in ignored.output
    assert (tmp_path / "a" / "meta.properties").read_text() == first


def test_format_refuses_a_folder_of_another_cluster_or_node_and_writes_nothing(
    run: Run, properties: Any, tmp_path: Path
) -> None:
    ours, other = (run("random-uuid").output.strip() for _ in range(2))
    assert run("format", "-c", properties(log_dirs=f"{tmp_path}/a"), "-t", ours).exit_code == 0
    of_other_cluster = run("format", "-c", properties(), "-t", other, "-g")
    assert of_other_cluster.exit_code == 1
    assert f"belongs to cluster {ours}" in of_other_cluster.output
    of_other_node = run("format", "-c", properties(node_id=2), "-t", ours, "-g")
    assert of_other_node.exit_code == 1
    assert "was written by node 1" in of_other_node.output
    assert not (tmp_path / "b").exists()


def test_format_wants_a_cluster_id(run: Run, properties: Any) -> None:
    result = run("format", "-c", properties(), "-t", "")
    assert result.exit_code == 1
    assert "random-uuid" in result.output


def test_format_explains_bad_settings(run: Run, properties: Any) -> None:
    result = run("format", "-c", properties(process_roles="baker"), "-t", run("random-uuid").output.strip())
    assert result.exit_code == 1
    assert "process.roles" in result.output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("[]", "has no partitions"),
        ('{"partitions": []}', "has no partitions"),
        ('{"partitions": [1]}', "partitions[0] is not an object"),
        ('{"partitions": [{"partition": 0, "desiredLeader": 1}]}', "partitions[0]: topic is not a name"),
        ('{"partitions": [{"topic": "t", "partition": -1, "desiredLeader": 1}]}', "partition is -1"),
        ('{"partitions": [{"topic": "t", "partition": true, "desiredLeader": 1}]}', "partition is true"),
        ('{"partitions": [{"topic": "t", "desiredLeader": 1}]}', "partition is missing"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "desiredLeader is missing"),
        ('{"partitions": [{"topic": "t", "partition": 0, "desiredLeader": "1"}]}', 'desiredLeader is "1"'),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "desiredLeader": 1},'
            ' {"topic": "t", "partition": 0, "desiredLeader": 2}]}',
            "partitions[1]: t-0 is listed twice",
        ),
    ],
)
def test_a_file_of_elections_that_makes_no_sense(run: Run, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "elect.json").write_text(content)
    result = run("elect", "--type", "designation", "--path-to-json-file", "elect.json")
    assert result.exit_code == 1
    assert said in result.output
    assert "Traceback" not in result.output
