"""The JSON files of `kafka-reassign-partitions`, read and written: assignments, and topics to move.

Nothing that is read is believed: what is wrong is said with the place in the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tanist.runtime.client.log_dirs import Replica
from tanist.runtime.client.reassign import Partition

_INT32_MAX = 2**31 - 1
_VERSION = 1
_ANY = "any"


def assignment_text(
    assignment: Mapping[Partition, tuple[int, ...]], log_dirs: Mapping[Replica, str] | None = None
) -> str:
    """On one line, as Kafka's tool prints it and reads it. `log_dirs`: of replicas that may not be in any."""
    named = log_dirs or {}
    partitions = [
        {
            "topic": topic,
            "partition": index,
            "replicas": list(replicas),
            "log_dirs": [named.get((topic, index, broker), _ANY) for broker in replicas],
        }
        for (topic, index), replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": _VERSION, "partitions": partitions}, separators=(",", ":"))


def read_assignment(file: Path) -> dict[Partition, tuple[int, ...]]:
    """The replicas of each partition. `ClickException` says what is wrong."""
    found: dict[Partition, tuple[int, ...]] = {}
    for number, entry in enumerate(_entries(file, "partitions")):
        where = f"{file}, partitions[{number}]"
        topic, index, replicas = entry.get("topic"), entry.get("partition"), entry.get("replicas")
        if not isinstance(topic, str) or not topic:
            raise click.ClickException(f"{where}: topic is not a name")
        if not isinstance(index, int) or not _is_id(index):
            raise click.ClickException(f"{where}: partition is not a number, 0 or more")
        if not isinstance(replicas, list) or not replicas or not all(map(_is_id, replicas)):
            raise click.ClickException(f"{where}: replicas is not a list of broker ids")
        if len(set(replicas)) < len(replicas):
            raise click.ClickException(f"{where}: replicas names a broker twice")
        log_dirs = entry.get("log_dirs", [_ANY] * len(replicas))
        if not isinstance(log_dirs, list) or not all(map(_is_log_dir, log_dirs)):
            raise click.ClickException(f'{where}: log_dirs is not a list of absolute paths, or "any"')
        if len(log_dirs) != len(replicas):
            raise click.ClickException(f"{where}: there are {len(log_dirs)} log_dirs for {len(replicas)} replicas")
        if (topic, index) in found:
            raise click.ClickException(f"{where}: {topic}-{index} is listed twice")
        found[topic, index] = tuple(replicas)
    return found


def read_log_dirs(file: Path) -> dict[Replica, str]:
    """Where replicas are to be, of a file that `read_assignment` has read; those that may be anywhere are left out."""
    return {
        (entry["topic"], entry["partition"], broker): path
        for entry in _entries(file, "partitions")
        for broker, path in zip(entry["replicas"], entry.get("log_dirs", ()))
        if path != _ANY
    }


def read_topics(file: Path) -> list[str]:
    """The names in a --topics-to-move-json-file."""
    names = []
    for number, entry in enumerate(_entries(file, "topics")):
        name = entry.get("topic")
        if not isinstance(name, str) or not name:
            raise click.ClickException(f"{file}, topics[{number}]: topic is not a name")
        names.append(name)
    return names


def _entries(file: Path, name: str) -> list[dict[str, Any]]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise click.ClickException(f"{file} is not JSON: {error}") from error
    entries = content.get(name) if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise click.ClickException(f'{file} has no {name}: it should look like {{"version": 1, "{name}": [{{...')
    if content.get("version", _VERSION) != _VERSION:
        raise click.ClickException(f"{file} is of version {content['version']}; only version {_VERSION} is supported")
    return entries


def _is_log_dir(value: object) -> bool:
    return isinstance(value, str) and (value == _ANY or value.startswith("/"))


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _INT32_MAX
