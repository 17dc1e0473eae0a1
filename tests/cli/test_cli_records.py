"""`tanist produce`, `consume` and `account` on a cluster: headers, JSON, groups of both protocols, ledgers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run

CONFIG = [*FEW_PARTITIONS, "--config", "group.initial.rebalance.delay.ms=0"]
FAST = [
    "--config",
    "group.consumer.heartbeat.interval.ms=200",
    "--config",
    "group.consumer.min.heartbeat.interval.ms=100",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    command = [*TANIST, "up", "--detach", "--brokers", "1", *CONFIG, *FAST, "--port", str(free_port())]
    done = subprocess.run([*command, "--data", str(folder)], capture_output=True, text=True, check=False, timeout=90)
    assert "ready in " in done.stdout, done.stderr
    yield folder
    run("down", folder=folder)


def read(folder: Path, topic: str, count: int, *more: str) -> list[dict[str, Any]]:
    out = run(
        "consume", topic, "--from-beginning", "--max-messages", str(count), "--format", "json", *more, folder=folder
    )
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def test_headers_and_keys_of_a_line(folder: Path) -> None:
    run("topics", "create", "h", folder=folder)
    lines = "trace:7,from:shop\t4711=paid\n\tplain\nNO_HEADERS\tk=v\n"
    run("produce", "h", "--headers", "--key-separator", "=", folder=folder, stdin=lines)
    first, second, third = read(folder, "h", 3)
    assert first.keys() == {"topic", "partition", "offset", "timestamp", "key", "value", "headers"}
    assert (first["topic"], first["partition"], first["offset"]) == ("h", 0, 0)
    assert (first["key"], first["value"]) == ("4711", "paid")
    assert first["headers"] == [{"key": "trace", "value": "7"}, {"key": "from", "value": "shop"}]
    assert (second["key"], second["value"], second["headers"]) == (None, "plain", [])
    assert third["headers"] == []
    shown = run("consume", "h", "--from-beginning", "--max-messages", "2", "--headers", folder=folder).splitlines()
    assert shown[:2] == ["trace:7,from:shop\tpaid", "NO_HEADERS\tplain"]


def test_json_brings_every_byte_to_another_topic(folder: Path) -> None:
    run("topics", "create", "json", folder=folder)
    run("topics", "create", "copy", folder=folder)
    lines = [
        {"key": "/w==", "key_encoding": "base64", "value": None, "headers": [{"key": "a", "value": None}]},
        {"value": "tab\t and \u00e4", "timestamp": 1234567890123},
        {"key": "k", "value": {"id": 1}},
    ]
    run("produce", "json", "--format", "json", folder=folder, stdin="".join(json.dumps(line) + "\n" for line in lines))
    found = read(folder, "json", 3)
    assert found[0]["key"] == "/w=="
    assert found[0]["key_encoding"] == "base64"
    assert found[0]["value"] is None
    assert found[0]["headers"] == [{"key": "a", "value": None}]
    assert found[1]["timestamp"] == 1234567890123
    assert found[2]["value"] == '{"id": 1}'
    run("produce", "copy", "--format", "json", folder=folder, stdin="".join(json.dumps(line) + "\n" for line in found))
    assert [{**each, "topic": "json"} for each in read(folder, "copy", 3)] == found


@pytest.mark.parametrize(
    ("arguments", "line", "said"),
    [
        (("--headers",), "no tab", "line 1: no TAB after the headers"),
        (("--headers",), "novalue\tx", "line 1: 'novalue' is not a header like name:value"),
        (("--format", "json"), "{", "line 1: not JSON"),
        (("--format", "json"), "[1]", "line 1: not an object"),
        (("--format", "json"), '{"timestamp": "now"}', "line 1: timestamp is 'now', not milliseconds"),
        (("--format", "json"), '{"value": "!", "value_encoding": "base64"}', "line 1: value is not base64"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(folder: Path, arguments: tuple[str, ...], line: str, said: str) -> None:
    run("topics", "create", "bad", folder=folder, code=None)
    assert said in run("produce", "bad", *arguments, folder=folder, stdin=line + "\n", code=1)


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_a_group_goes_on_where_it_has_committed(folder: Path, protocol: str) -> None:
    topic, group = f"orders-{protocol}", f"billing-{protocol}"
    run("topics", "create", topic, "--partitions", "2", folder=folder)
    for partition in (0, 1):
        run("produce", topic, "--partition", str(partition), folder=folder, stdin="a\nb\nc\n")
    how = ("--group", group, "--group-protocol", protocol)
    first = read(folder, topic, 4, *how)
    second = read(folder, topic, 2, *how)
    places = sorted((each["partition"], each["offset"]) for each in first + second)
    assert places == [(partition, offset) for partition in (0, 1) for offset in range(3)]
    described = run("groups", "describe", group, "--json", folder=folder)
    assert (described["state"], described["type"]) == ("Empty", protocol)
    assert {each["lag"] for each in described["offsets"]} == {0}
    assert "0 records read" in run("consume", topic, *how, "--timeout", "0.5", folder=folder)


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_members_share_a_group_and_hand_over(folder: Path, protocol: str, tmp_path: Path) -> None:
    topic, group = f"shared-{protocol}", f"team-{protocol}"
    run("topics", "create", topic, "--partitions", "4", folder=folder)
    command = [
        *TANIST, "consume", topic, "--group", group, "--group-protocol", protocol, "--from-beginning",
        "--format", "json", "--data", str(folder),
    ]  # fmt: skip

    def assigned() -> list[int]:
        described = run("groups", "describe", group, "--json", folder=folder, code=None)
        if not isinstance(described, dict) or described["state"] != "Stable":
            return []
        return sorted(len(member["assigned"]) for member in described["members"])

    def lag() -> int | None:
        found = run("groups", "describe", group, "--json", folder=folder)["offsets"]
        lags = [each["lag"] for each in found]
        return None if None in lags or len(lags) < 4 else sum(lags)

    with ExitStack() as stack:
        outs = [stack.enter_context((tmp_path / f"{number}").open("w+")) for number in (1, 2)]
        first = subprocess.Popen(command, stdout=outs[0])
        stack.callback(first.kill)
        assert wait_until(lambda: assigned() == [4], 120)
        second = subprocess.Popen(command, stdout=outs[1])
        stack.callback(second.kill)
        assert wait_until(lambda: assigned() == [2, 2], 120)
        for partition in range(4):
            run("produce", topic, "--partition", str(partition), folder=folder, stdin="x\n" * 10)
        assert wait_until(lambda: lag() == 0, 120)
        second.send_signal(2)  # Ctrl-C: it leaves, and the other has all
        assert second.wait(120) == 0
        assert wait_until(lambda: assigned() == [4], 120)
        run("produce", topic, "--partition", "3", folder=folder, stdin="y\n")
        assert wait_until(lambda: lag() == 0, 120)
        first.terminate()  # SIGTERM leaves it as well
        assert first.wait(120) == 0
        assert run("groups", "describe", group, "--json", folder=folder)["state"] == "Empty"
        found = []
        for out in outs:
            out.seek(0)
            lines = [json.loads(line) for line in out]
            assert lines
            found += [(line["partition"], line["offset"]) for line in lines]
    assert sorted(found) == sorted([(partition, offset) for partition in range(4) for offset in range(10)] + [(3, 10)])


def test_a_ledger_and_its_account(folder: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "acked.jsonl"
    run("topics", "create", "acc", "--partitions", "2", folder=folder)
    lines = "".join(f"{number}\n" for number in range(700))
    for partition in ("0", "1"):
        run("produce", "acc", "--partition", partition, "--ledger", str(ledger), folder=folder, stdin=lines)
    assert len(ledger.read_text().splitlines()) == 1400
    said = run("account", str(ledger), folder=folder)
    assert "every acknowledged record is there, once and in order" in said
    found = run("account", str(ledger), "--json", folder=folder)
    assert found["good"]
    assert [(each["partition"], each["acknowledged"], each["stored"]) for each in found["partitions"]] == [
        (0, 700, 700),
        (1, 700, 700),
    ]

    never = {"topic": "acc", "partition": 1, "offset": 3, "key": None, "value": "never sent", "headers": []}
    with ledger.open("a") as file:
        file.write(json.dumps(never) + "\n")
    run("produce", "acc", "--partition", "0", folder=folder, stdin="5\n")  # again: twice in the log, acknowledged once
    said = run("account", str(ledger), folder=folder, code=1)
    assert "acc-1: 1 acknowledged record lost, at offset 3" in said
    assert "1 record is in the topic more often than it was acknowledged: sent twice, or equal to a record" in said
    found = run("account", str(ledger), "--json", folder=folder, code=1)
    assert [(each["lost"], each["duplicated"]) for each in found["partitions"]] == [(0, 1), (1, 0)]
    assert found["partitions"][1]["lost_offsets"] == [3]


def test_what_compaction_or_nobody_has_left_to_compare(folder: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "acked.jsonl"
    ledger.write_text("")
    assert "no record in it" in run("account", str(ledger), folder=folder, code=1)
    assert "cannot read the ledger" in run("account", str(tmp_path / "none"), folder=folder, code=1)
    ledger.write_text('{"topic": "nowhere", "partition": 0, "value": "x"}\n')
    assert "nowhere" in run("account", str(ledger), folder=folder, code=1)
    assert "no record of topic other" in run("account", str(ledger), "--topic", "other", folder=folder, code=1)
    ledger.write_text('{"topic": "nowhere"}\n')
    assert "line 1: it has no topic and partition" in run("account", str(ledger), folder=folder, code=1)
    run("topics", "create", "kept", "--config", "cleanup.policy=compact", folder=folder)
    run("produce", "kept", "--key-separator", "=", folder=folder, stdin="a=2\n")
    old = {"topic": "kept", "partition": 0, "offset": 0, "key": "a", "value": "1", "headers": []}
    ledger.write_text(json.dumps(old) + "\n")
    (found,) = run("account", str(ledger), "--json", folder=folder)["partitions"]
    assert (found["lost"], found["superseded"]) == (0, 1)
