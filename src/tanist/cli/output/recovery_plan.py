"""The output of `tanist recovery`: what the replicas of a partition without a leader have, and what each choice loses.

Owns the words and the JSON. What is not known is said: replicas that do not answer, how far a log is synced, and what
the brokers of Apache Kafka do not do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from tanist.cli.output.lines import say
from tanist.cli.output.record_lines import text_of
from tanist.cli.output.tables import ids, print_table
from tanist.runtime.client.admin import PartitionDescription
from tanist.runtime.client.record_json import content_json
from tanist.runtime.client.recovery_plan import NO_EPOCH, Choice, Plan, Run, runs_of
from tanist.runtime.client.replica_positions import ReplicaPositions
from tanist.text import counted, timestamp_text
from tanist.wire.batch import Record

_SHOWN_CHARS_MAX = 40


@dataclass(frozen=True, slots=True)
class RecordAt:
    """One record that would be lost. `record` None: it could not be read, or it is a marker of a transaction."""

    epoch: int
    offset: int
    broker: int | None
    record: Record | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A partition without a leader."""

    topic: str
    partition: PartitionDescription
    explanation: str
    replicas: tuple[ReplicaPositions, ...]
    plan: Plan
    looked: Mapping[int, tuple[RecordAt, RecordAt]]
    """By the broker that is chosen: the first and the last record that would be lost."""
    designates: bool
    """The cluster elects the replica that an operator names, as tanist's do."""
    saves: bool
    """Followers save what they truncate."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition.partition}"

    def choice(self, broker: int) -> Choice | None:
        return next((each for each in self.plan.choices if each.broker == broker), None)


# -- for people -------------------------------------------------------------------------------------------------------


def show_recovery(recovery: Recovery, where: str) -> None:
    """All about one partition. `where`: the options that name the cluster, with a space before them."""
    say(f"{recovery.name} has no leader: {recovery.explanation.removeprefix('no leader: ')}")
    click.echo()
    print_table(
        ("BROKER", "STATE", "LAST EPOCH", "START", "END", "HIGH WATERMARK", "SYNCED"),
        [_row(recovery, each) for each in recovery.replicas],
    )
    for each in recovery.replicas:
        if each.note is not None:
            say(f"broker {each.broker}: {each.note}")
    best = recovery.plan.best
    for choice in recovery.plan.choices:
        click.echo()
        show_choice(recovery, choice)
        if choice.electable:
            if choice is best and len(recovery.plan.choices) > 1:
                say("  Of those that can lead now, it loses least.")
            say(f"  `{command_for(recovery, choice.broker, where)}`")
        else:
            say(f"  It cannot lead now: start broker {choice.broker}, and look again.")
    click.echo()
    for line in _notes(recovery):
        say(line)


def show_choice(recovery: Recovery, choice: Choice) -> None:
    """What one choice loses."""
    if not choice.lost_count and not choice.older:
        say(f"If broker {choice.broker} leads, nothing is lost that another replica is known to have.")
    else:
        say(f"If broker {choice.broker} leads, {_lost(recovery, choice)}.")
    for word, each in zip(("first:", "last: "), recovery.looked.get(choice.broker, ()), strict=False):
        say(f"  {word} {_record_text(each)}", hang=9)
    if choice.lost_count:
        saved = (
            f"; {choice.in_salvage} of them {_is(choice.in_salvage)} in the salvage now" if choice.in_salvage else ""
        )
        if recovery.saves:
            say(f"  The others save what they truncate: `tanist salvage` restores it{saved}.")
        else:
            why = "tanist.salvage.enable is false" if recovery.designates else "brokers of Apache Kafka do not save it"
            say(f"  It is gone for good, because {why}{saved}.")
    if choice.salvage_only:
        have = "it and the other replicas lack" if len(recovery.plan.choices) > 1 else "it lacks"
        number = counted(choice.salvage_only_count, "record")
        say(f"  The salvage has {number} that {have}, unless they were restored since.")


def command_for(recovery: Recovery, broker: int, where: str) -> str:
    return f"tanist recovery apply {recovery.topic} {recovery.partition.partition} --leader {broker}{where}"


def _row(recovery: Recovery, replica: ReplicaPositions) -> tuple[object, ...]:
    known = replica.end is not None
    runs = runs_of(replica) if known else ()
    return (
        replica.broker,
        _state(recovery, replica),
        (runs[-1].epoch if runs else "-") if known else "?",
        "?" if replica.start is None else replica.start,
        "?" if replica.end is None else replica.end,
        "?" if replica.high_watermark is None else replica.high_watermark,
        "?" if replica.synced is None else replica.synced,
    )


def _state(recovery: Recovery, replica: ReplicaPositions) -> str:
    if replica.broker in recovery.partition.offline:
        return "offline"
    return "live" if replica.alive else "silent"


def _lost(recovery: Recovery, choice: Choice) -> str:
    parts = []
    if choice.lost_count:
        holders = sorted(
            each.broker
            for each in recovery.replicas
            if each.broker != choice.broker and each.end is not None and _overlap(runs_of(each), choice.lost)
        )
        have = "has" if len(holders) == 1 else "have"
        text = f"{counted(choice.lost_count, 'record')} {_is(choice.lost_count)} lost that {_brokers(holders)} {have}"
        text += f" (offsets {_offsets(choice.lost)})"
        if choice.committed:
            text += f", at least {choice.committed} of them committed"
        parts.append(text)
    if choice.older:
        parts.append(f"{counted(choice.older, 'older record')} from before its log start {_is(choice.older)} dropped")
    return ", and ".join(parts)


def _record_text(each: RecordAt) -> str:
    if each.record is None:
        return f"offset {each.offset}, epoch {each.epoch}: it cannot be read here, or is no record but a marker"
    record = each.record
    return (
        f"offset {each.offset}, epoch {each.epoch}, {timestamp_text(record.timestamp)}, "
        f"key {_preview(record.key)}, value {_preview(record.value)}"
    )


def _preview(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = text_of(data[: _SHOWN_CHARS_MAX * 4])
    if not text.isprintable():
        text = f"0x{data[: _SHOWN_CHARS_MAX // 2].hex()}"
    if len(text) >= _SHOWN_CHARS_MAX:
        text = text[: _SHOWN_CHARS_MAX - 1] + "…"
    return text or '""'


def _notes(recovery: Recovery) -> Iterable[str]:
    """What is better than a choice, and what the numbers leave out."""
    eligible = recovery.partition.isr or recovery.partition.elr
    if eligible:
        it = "it" if len(eligible) == 1 else "one of them"
        yield (
            f"{_brokers(eligible).capitalize()} had every committed record. Start {it} first, if the disk is there: "
            "after a clean stop it leads, and else you see what it still has."
        )
    unknown = ""
    if recovery.plan.unknown:
        have = "has" if len(recovery.plan.unknown) == 1 else "have"
        unknown = f", and what only {_brokers(recovery.plan.unknown)} {have}, which may be more than the others"
    yield f"Not counted: records that no replica has any more{unknown}."
    if any(each.end is not None and each.synced is None for each in recovery.replicas):
        yield "SYNCED ?: how far a log is on the disk no broker says to clients. Nodes' pages and files may (--data)."
    if not recovery.designates:
        yield "These brokers keep no record of who has an election made: keep what `apply` prints."


def _offsets(runs: Sequence[Run]) -> str:
    shown = [f"{run.start} to {run.end - 1}" if run.end - run.start > 1 else str(run.start) for run in runs]
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more stretches" if len(shown) > 3 else "")


def _overlap(runs: Iterable[Run], others: Sequence[Run]) -> bool:
    return any(
        run.epoch == other.epoch and run.start < other.end and other.start < run.end for run in runs for other in others
    )


def _brokers(brokers: Sequence[int]) -> str:
    return f"broker{'' if len(brokers) == 1 else 's'} {ids(brokers)}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


# -- as JSON ----------------------------------------------------------------------------------------------------------


def recovery_json(recovery: Recovery, where: str) -> dict[str, Any]:
    partition = recovery.partition
    best = recovery.plan.best
    return {
        "topic": recovery.topic,
        "partition": partition.partition,
        "leader_epoch": partition.leader_epoch,
        "isr": list(partition.isr),
        "elr": None if partition.elr is None else list(partition.elr),
        "last_known_elr": None if partition.last_known_elr is None else list(partition.last_known_elr),
        "explanation": recovery.explanation,
        "replicas": [_replica_json(recovery, each) for each in recovery.replicas],
        "choices": [
            choice_json(recovery, each)
            | {"command": command_for(recovery, each.broker, where) if each.electable else None}
            for each in recovery.plan.choices
        ],
        "least_loss": None if best is None else best.broker,
        "unknown": list(recovery.plan.unknown),
        "saves_what_is_truncated": recovery.saves,
    }


def choice_json(recovery: Recovery, choice: Choice) -> dict[str, Any]:
    first, last = recovery.looked.get(choice.broker, (None, None))
    return {
        "leader": choice.broker,
        "electable": choice.electable,
        "lost": choice.lost_count,
        "lost_committed": choice.committed,
        "lost_in_salvage": choice.in_salvage,
        "lost_offsets": _runs_json(choice.lost),
        "first_lost": None if first is None else _record_json(first),
        "last_lost": None if last is None else _record_json(last),
        "older": choice.older,
        "salvage_only": choice.salvage_only_count,
    }


def _replica_json(recovery: Recovery, replica: ReplicaPositions) -> dict[str, Any]:
    runs = runs_of(replica) if replica.end is not None else ()
    return {
        "broker": replica.broker,
        "state": _state(recovery, replica),
        "last_epoch": (runs[-1].epoch if runs else NO_EPOCH) if replica.end is not None else None,
        "log_start_offset": replica.start,
        "log_end_offset": replica.end,
        "high_watermark": replica.high_watermark,
        "synced_offset": replica.synced,
        "epochs": [{"epoch": epoch, "start_offset": start} for epoch, start in replica.epochs],
        "note": replica.note,
    }


def _runs_json(runs: Iterable[Run]) -> list[dict[str, int]]:
    return [{"epoch": run.epoch, "from_offset": run.start, "to_offset": run.end} for run in runs]


def _record_json(each: RecordAt) -> dict[str, Any]:
    content = None if each.record is None else content_json(each.record)
    return {"epoch": each.epoch, "offset": each.offset, "broker": each.broker, "record": content}
