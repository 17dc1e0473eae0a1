"""The preconditions of a job, checked without Java: folders, topics, brokers, space for its output.

Java takes ten seconds to start, so what can be known without it is said before it. Owns those checks and their words; a
job makes the same ones when it is called as a function. Must never import pyspark.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from tanist.spark.jobs.history_files import files_of, first_bytes
from tanist.spark.segments.replica_files import METADATA_TOPIC, NothingThere, SegmentFile, segment_files
from tanist.spark.stores import path_of, scheme_of
from tanist.spark.topic.options import Connecting
from tanist.text import counted
from tanist.wire.internal_topics import INTERNAL_TOPICS

INTERNAL: Final = frozenset({METADATA_TOPIC, *INTERNAL_TOPICS})
_NAMED_MAX: Final = 5
_TIMEOUT_S: Final = 10.0
_UNITS_S: Final = {
    "microsecond": 1e-6, "millisecond": 1e-3, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800,
}  # fmt: skip
_PART: Final = re.compile(rf"(\d+)\s+({'|'.join(_UNITS_S)})s?", re.IGNORECASE)
_INTERVAL: Final = re.compile(rf"(\s*{_PART.pattern})+\s*", re.IGNORECASE)


class Unfit(ValueError):
    """A job cannot begin: why, and what to do."""


class NothingToJudge(Unfit):
    """A job has nothing to look at, so its verdict would mean nothing."""


def interval_s(text: str) -> float:
    """Of an interval as Spark has it: "5 seconds", "1 hour 30 minutes"."""
    if not _INTERVAL.fullmatch(text):
        raise Unfit(f'an interval is a number and a unit, such as "5 seconds", not {text!r}')
    return sum(int(count) * _UNITS_S[unit.lower()] for count, unit in _PART.findall(text))


# -- what is read


def audit(folder: str | Path, topics: Sequence[str], histories: Sequence[str | Path]) -> None:
    """With histories, logs without a record can be judged: all of it may be lost."""
    if histories:
        replicas_below(folder, topics)
        readable_histories(histories)
    else:
        some_records(folder, topics)


def replicas_below(folder: str | Path, topics: Sequence[str] = ()) -> list[SegmentFile]:
    """The segments of these topics (none: all but internal ones) below a folder. Each topic has a replica there."""
    found = [file for file in segment_files(str(folder)) if file.salvage_id is None]
    if not found:
        raise NothingThere(f"no broker's log is below {folder}: name the folder of a cluster, or of a node")
    present = {file.topic for file in found}
    wanted = set(topics) or present - INTERNAL
    if not wanted:
        raise NothingToJudge(f"there is no topic below {folder}, only {listed(sorted(present))}")
    for topic in sorted(wanted - present):
        raise NothingToJudge(f"no replica of topic {topic} is below {folder}. {suggestion(topic, present - INTERNAL)}")
    return [file for file in found if file.topic in wanted]


def some_records(folder: str | Path, topics: Sequence[str] = ()) -> None:
    """Refuse replicas of which none has a record, and tell what has expired from what never was."""
    files = replicas_below(folder, topics)
    if any(os.path.getsize(file.path) if file.size_bytes is None else file.size_bytes for file in files):
        return
    raise NothingToJudge(
        f"no replica below {folder} has a record of {listed(sorted({file.topic for file in files}))}: "
        f"{_why_empty({(file.topic, file.partition): file.base_offset for file in files})}"
    )


def _why_empty(starts: Mapping[tuple[str, int], int]) -> str:
    """Of partitions without records, by where their logs begin."""
    expired = {place: start for place, start in starts.items() if start}
    if not expired:
        return "nothing was written, or all of it is gone. With --history the audit can tell which"
    (topic, partition), start = max(expired.items(), key=lambda item: item[1])
    others = "" if len(expired) == 1 else f", and so have those of {counted(len(expired) - 1, 'other partition')}"
    return f"the records of {topic}-{partition} below offset {start:,} have expired{others}"


def readable_histories(names: Iterable[str | Path]) -> None:
    """Files, or folders of Parquet files, that can be read and have something in them."""
    for name in names:
        path = path_of(name)
        try:
            if path.is_dir():
                if not any(file.endswith(".parquet") for file in files_of(path)):
                    raise NothingToJudge(f"no Parquet file is below {path}")
            elif not first_bytes(path, 1 << 16).strip():
                raise NothingToJudge(f"{path} is empty: there is nothing to judge")
        except OSError as error:
            raise Unfit(f"{path} cannot be read: {error.strerror}") from error


def cluster_topics(cluster: Connecting, topics: Iterable[str]) -> dict[str, int]:
    """How many partitions each of these topics has, by the cluster itself. `Unreachable` if no broker answers."""
    wanted = sorted(set(topics))
    with cluster.client(_TIMEOUT_S) as client:
        there = {each.name: len(each.partitions) for each in client.metadata(None).topics.values()}
    for topic in wanted:
        if topic not in there:
            raise Unfit(f"the cluster has no topic {topic}. {suggestion(topic, set(there) - INTERNAL)}")
    return {topic: there[topic] for topic in wanted}


def suggestion(name: str, there: Iterable[str]) -> str:
    """Which of those that are there may have been meant."""
    names = sorted(there)
    close = get_close_matches(name, names, 1)
    if close:
        return f"Did you mean {close[0]}?"
    return f"Existing topics: {listed(names)}" if names else "There is no topic but internal ones"


def listed(names: Sequence[str]) -> str:
    """A few names, and how many more."""
    if len(names) > _NAMED_MAX:
        return f"{', '.join(names[:_NAMED_MAX])} and {len(names) - _NAMED_MAX} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


# -- what is written


def output_folder(path: Path | None) -> None:
    """A folder for a Parquet result: a new one, an empty one, or that of an earlier run, replaced or continued."""
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise Unfit(f"{path} is a file: the result is a folder of Parquet files")
    others = [name for name in os.listdir(path) if not _is_result(name)] if path.is_dir() else []
    if others:
        raise Unfit(f"{path} has other files ({listed(sorted(others))}), which the result would replace: name another")
    writable_below(path)


def _is_result(name: str) -> bool:
    """Spark's own, with the checksums that it puts beside."""
    bare = name.removesuffix(".crc").lstrip(".")
    return bare == "_SUCCESS" or bare.endswith(".parquet")


def empty_folder(path: Path) -> None:
    """A folder that is not there yet, or that has nothing in it."""
    if path.exists() and not path.is_dir():
        raise Unfit(f"{path} is a file: name a new folder")
    if path.is_dir() and any(path.iterdir()):
        raise Unfit(f"{path} is not empty: name a new folder")
    writable_below(path)


def output_file(path: Path | None) -> None:
    if path is None:
        return
    of_this_machine(path)
    if not path.parent.is_dir():
        raise Unfit(f"there is no folder {path.parent} for {path.name}")
    writable_below(path.parent)


def of_this_machine(path: str | Path) -> None:
    """`Unfit` for an address: taken for a path, s3a://bucket/x is a folder `s3a:` where the job runs."""
    scheme = scheme_of(path)
    if scheme is not None:
        raise Unfit(
            f"{path} is an address ({scheme}:), and this job reads and writes paths of this machine: mount the store,"
            " or copy the result there"
        )


def writable_below(path: Path) -> None:
    """Whether the path, or the nearest folder above it that is there, takes a file."""
    of_this_machine(path)
    nearest = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if not nearest.is_dir():
        raise Unfit(f"{path} cannot be made: {nearest} is a file")
    try:
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(b"\0")
    except OSError as error:
        raise Unfit(f"nothing can be written to {nearest}: {error.strerror}") from error
