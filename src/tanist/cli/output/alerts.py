"""Warnings before and beside a result: that there is no quorum, and that records were cut from logs.

The words only. Whether there is a quorum is known to brokers (`metadata_age_ms`), what was cut to their disks.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

import click

from tanist.cli.options import DEFAULT_DATA
from tanist.log.salvage.manifest import SalvageReason
from tanist.runtime.client.salvage_reports import SalvageNews
from tanist.runtime.cluster.status import CRASHED, PAUSED, STOPPED, UNREACHABLE, ClusterStatus, span
from tanist.text import counted
from tanist.wire.ids import KNOWS_NOTHING_MS


def warn_of_age(age_ms: int | None, as_json: bool) -> None:
    """On standard error, before what was asked for: it is old. None: it is not."""
    if age_ms is None:
        return
    what = (
        "brokers know of no topics yet" if age_ms == KNOWS_NOTHING_MS else f"the metadata below is {span(age_ms)} old"
    )
    message = f"no quorum: no controller is active, and {what}. See `tanist status`"
    if as_json:
        warning = {"kind": "no-quorum", "metadata_age_ms": age_ms, "message": message}
        click.echo(json.dumps({"warning": warning}), err=True)
    else:
        click.echo(f"Warning: {message}", err=True)


def quorum_lines(status: ClusterStatus) -> list[str]:
    """Why no controller is active, how old what brokers know is, and what to do; nothing if there is one."""
    down = {STOPPED, CRASHED, PAUSED, UNREACHABLE}
    controllers = status.controllers
    up = [node for node in controllers if node.state not in down]
    if status.controller is not None or not any(node.state not in (STOPPED, CRASHED) for node in status.nodes):
        return []
    needed = len(controllers) // 2 + 1
    have = f"{len(up)} of {counted(len(controllers), 'controller')} {'works' if len(up) == 1 else 'work'}"
    if len(up) >= needed:
        line = f"no quorum: {have}, and none is active: `tanist faults` shows what is cut or slow"
    else:
        line = f"no quorum: {have}, and {needed} are needed"
        paused = next((node for node in controllers if node.state == PAUSED), None)
        dead = next((node for node in controllers if node.state in (STOPPED, CRASHED)), None)
        if dead is not None:
            line += f": `tanist start {dead.node_id}`"
        elif paused is not None:
            line += f": `tanist resume {paused.node_id}`"
    lines = [line, "no leader can be elected, and no topic or setting can change"]
    if status.metadata_age_ms is not None:
        new = status.metadata_age_ms == KNOWS_NOTHING_MS
        lines.append(
            "brokers have started without a quorum and know of no topics yet"
            if new
            else f"the brokers' metadata is {span(status.metadata_age_ms)} old"
        )
    return lines


def salvage_lines(news: Sequence[SalvageNews], folder: Path, most: int = 5) -> list[str]:
    """The records that were cut from logs and saved, and the next command."""
    lines = []
    for each in news[:most]:
        partition = f"{each.topic}-{each.partition}"
        lines.append(f"salvage: {_counted(each)} of {partition}, cut from the log of {_brokers(each)} {ago(each)}")
    if len(news) > most:
        lines.append(f"salvage: records of {counted(len(news) - most, 'more partition')}: `tanist salvage list`")
    if news:
        topics = {each.topic for each in news}
        which = f"--topic {topics.pop()}" if len(topics) == 1 else "--all"
        lines.append(f"what a topic lacks of them: `tanist salvage export {which} --to topic --dry-run{_data(folder)}`")
    return lines


_IN_WORDS = {
    SalvageReason.FOLLOWER_TRUNCATION: "not known to be committed",
    SalvageReason.CLEAN_ELECTION: "committed, and lost by a clean election",
    SalvageReason.UNCLEAN_ELECTION: "an unclean election",
    SalvageReason.OUT_OF_RANGE: "its log begins later",
}


def salvage_clause(news: SalvageNews, folder: Path) -> str:
    """The same in `--explain`, of one partition. A clean election that lost something has nothing else that says so."""
    if news.leader_epoch < 0:
        behind = "stood behind damage"
    else:
        behind = f"the leader of epoch {news.leader_epoch} did not have ({_IN_WORDS[news.why]})"
    command = f"tanist salvage export --topic {news.topic} --to topic --dry-run{_data(folder)}"
    cut = "was" if news.records == 1 and news.exact else "were"
    return (
        f"{_counted(news)} that {behind} {cut} cut from the log of {_brokers(news)} {ago(news)}, into the salvage: "
        f"`{command}` counts what the topic lacks"
    )


def ago(news: SalvageNews) -> str:
    return f"{span(max(0, time.time() * 1000 - news.wall_ms))} ago"


def _counted(news: SalvageNews) -> str:
    return ("" if news.exact else "about ") + counted(news.records, "record")


def _brokers(news: SalvageNews) -> str:
    return ("broker " if len(news.brokers) == 1 else "brokers ") + ", ".join(map(str, news.brokers))


def _data(folder: Path) -> str:
    """The option that names the folder, where it is not the one that is taken without it."""
    taken = Path(os.environ.get("TANIST_DATA", DEFAULT_DATA))
    return "" if folder.absolute() == taken.absolute() else f" --data {shlex.quote(str(folder))}"
