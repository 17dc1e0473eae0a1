"""The commands that read, on a cluster of the oldest metadata.version that is served: without all later features.

A broker has the requests of later features all the same, and says in its answers that the cluster has not: what a
command can do without them it does.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.controller.features import GROUP_VERSION, METADATA_VERSIONS
from tanist.controller.image.image import METADATA_VERSION
from tanist.runtime.client.client import Client
from tanist.runtime.client.features import describe_features
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster_file import load_existing
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run

OLDEST = METADATA_VERSIONS[0]
CONFIG = [*FEW_PARTITIONS, "--config", "transaction.state.log.num.partitions=1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    level = ["--feature", f"{METADATA_VERSION}={OLDEST.level}"]
    command = [*TANIST, "up", "--detach", "--brokers", "1", *CONFIG, "--port", str(free_port()), *level]
    done = subprocess.run([*command, "--data", str(folder)], capture_output=True, text=True, check=False, timeout=90)
    assert "ready in " in done.stdout, done.stderr
    run("topics", "create", "orders", "--partitions", "2", folder=folder)
    run("produce", "orders", "--partition", "0", folder=folder, stdin="one\ntwo\n")
    how = ("--from-beginning", "--max-messages", "2")
    assert run("consume", "orders", "--group", "g", *how, folder=folder).startswith("one\ntwo\n")
    yield folder
    run("down", folder=folder)


def test_it_is_the_oldest(folder: Path) -> None:
    with Client(addresses_of(load_existing(folder), folder)) as client:
        levels = {each.name: each.level for each in describe_features(client).features}
    assert levels[METADATA_VERSION] == OLDEST.level
    assert not levels.get(GROUP_VERSION)


def test_a_member_that_insists_on_the_consumer_protocol_hears_why_not(folder: Path) -> None:
    how = ("--group-protocol", "consumer")
    said = run("consume", "orders", "--group", "g", *how, folder=folder, code=1)
    assert "group.version" in said
    assert "--group-protocol classic" in said


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        ("groups list", "g"),
        ("groups describe g", "classic protocol"),
        ("groups describe g --json", None),
        ("groups reset-offsets g --topic orders --to-earliest", "nothing was changed"),
        ("groups reset-offsets g --all-topics --to-latest", "nothing was changed"),
        ("wait --group g --members 0 --lag 0", ""),
        ("wait --topic orders --isr 1", ""),
        ("consume orders --from-beginning --max-messages 1", "one"),
        ("consume orders --from-beginning --max-messages 1 --isolation-level read_committed", "one"),
        ("topics list", "orders"),
        ("topics describe", "orders"),
        ("topics describe orders --explain", "orders"),
        ("configs describe --topic orders", "min.insync.replicas"),
        ("features describe", METADATA_VERSION),
        ("status", "controller"),
        ("transactions list", ""),
        ("transactions find-hanging", ""),
        ("reassign list", ""),
        ("transactions describe-producers orders 0", ""),
        ("salvage list", ""),
        ("top", "orders"),
        ("migrate plan", None),
    ],
)
def test_a_command_that_reads_does(folder: Path, command: str, shows: str | None) -> None:
    shown = run(*command.split(), folder=folder)
    assert shows is None or shows in shown
