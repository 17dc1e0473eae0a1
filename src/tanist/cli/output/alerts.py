"""Warnings before and beside a result: that there is no quorum, and that records were cut from logs.

The words only. Whether there is a quorum is known to brokers (`metadata_age_ms`), what was cut to their disks.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from tanist.cli.output.warning import warn
from tanist.log.salvage.manifest import SalvageReason
from tanist.runtime.client.quorum import silence
from tanist.runtime.client.salvage_reports import SalvageNews
from tanist.runtime.cluster.layout import DEFAULT_DATA
from tanist.text import counted, span


def warn_of_age(age_ms: int | None, as_json: bool) -> None:
    """What was asked for is old. None: it is not."""
    if age_ms is None:
        return
    warn(f"{silence(age_ms)}; what is below is as old. See `tanist status`", as_json, metadata_age_ms=age_ms)


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
        lines.append(
            f"what a topic lacks of them: `tanist salvage export {which} --to topic --dry-run{data_words(folder)}`"
        )
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
    command = f"tanist salvage export --topic {news.topic} --to topic --dry-run{data_words(folder)}"
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


def data_words(folder: Path) -> str:
    """The option that names the folder, where it is not the one that is taken without it."""
    taken = Path(os.environ.get("TANIST_DATA", DEFAULT_DATA))
    return "" if folder.absolute() == taken.absolute() else f" --data {shlex.quote(str(folder))}"
