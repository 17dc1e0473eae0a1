"""`tanist salvage`: what replicas have dropped, and how to get it back (docs/salvage.md).

Reads the files of the cluster's brokers, so it works whether they run or not; only `export --to topic` asks a cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click

from tanist.cli.commands.salvage_export import as_json as record_as_json
from tanist.cli.commands.salvage_export import write_jsonl, write_parquet
from tanist.cli.options import client_options, connect, data_option, json_option
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.tree import Group
from tanist.log.salvage.manifest import SalvageReason
from tanist.runtime.client.client import Address
from tanist.runtime.client.merge_back import MergeInterrupted, MergeResult, Target, describe_target, merge_back
from tanist.runtime.client.salvaged import Entry, PartitionSalvage, by_partition, find_entries
from tanist.text import counted, timestamp_text
from tanist.wire.ids import id_text

_PREVIEW = 10
_SHOWN_CHARS_MAX = 60


class Salvage(Group):
    """Says what is wrong with a file in a line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FileNotFoundError as error:
            gone = "the entry's retention may just have ended: try again"
            raise click.ClickException(f"{error.filename} is not there; {gone}") from error
        except OSError as error:
            raise click.ClickException(f"{error.filename}: {error.strerror}") from error


@click.group("salvage", cls=Salvage)
def salvage_command() -> None:
    """See and restore the records that replicas have dropped.

    Before a follower truncates records that its leader does not have, after an unclean election for example, it copies
    them to a quarantine on its disk (tanist.salvage.enable). They stay for tanist.salvage.retention.ms.
    """


@salvage_command.command("list")
@click.option("--topic", help="List this topic only.")
@data_option
@json_option
def list_command(topic: str | None, folder: Path, as_json: bool) -> None:
    """List all entries, the oldest first."""
    entries = [entry for entry in _entries(folder) if topic in (None, entry.manifest.topic)]
    if as_json:
        print_json([_described(entry) for entry in entries])
        return
    if not entries:
        click.echo("nothing is saved" if topic is None else f"nothing of {topic} is saved")
        return
    rows = []
    for entry in entries:
        manifest = entry.manifest
        rows.append(
            (
                manifest.entry_id,
                f"{manifest.topic}-{manifest.partition}",
                manifest.broker_id,
                f"{manifest.from_offset}..{manifest.to_offset - 1 if manifest.to_offset >= 0 else ''}",
                _count(entry),
                manifest.why.value,
                _to_the_second(manifest.wall_ms),
            )
        )
    print_table(("ID", "PARTITION", "BROKER", "OFFSETS", "RECORDS", "WHY", "WHEN"), rows)


def _to_the_second(time_ms: int) -> str:
    """In two words, of which a narrow terminal puts one below the other."""
    return timestamp_text(time_ms)[:19].replace("T", " ") + "Z"


@salvage_command.command("show")
@click.argument("entry_id", metavar="ID")
@click.option(
    "--records", "count", type=click.IntRange(0), default=_PREVIEW, show_default=True, help="Show this many records."
)
@data_option
@json_option
def show_command(entry_id: str, count: int, folder: Path, as_json: bool) -> None:
    """Show one entry and its first records. The beginning of an ID is enough."""
    (entry,) = _named(_entries(folder), [entry_id])
    (salvage,) = by_partition([entry])
    records = [record_as_json(salvaged) for salvaged in islice(salvage.records(), count)]
    if as_json:
        print_json(_described(entry) | {"first_records": records})
        return
    manifest = entry.manifest
    unsaved = manifest.unsaved
    for name, value in {
        "id": manifest.entry_id,
        "partition": f"{manifest.topic}-{manifest.partition}",
        "topic id": id_text(manifest.topic_id),
        "broker": manifest.broker_id,
        "why": manifest.why.value,
        "when": timestamp_text(manifest.wall_ms),
        "offsets": f"{manifest.from_offset} to {manifest.to_offset - 1 if manifest.to_offset >= 0 else 'the end'}",
        "leader epochs": ", ".join(f"{epoch} from offset {start}" for epoch, start in manifest.epochs) or "not known",
        "dropped for": f"the leader of epoch {manifest.leader_epoch}" if manifest.leader_epoch >= 0 else "damage",
        "high watermark": manifest.high_watermark,
        "records": _count(entry),
        "bytes": manifest.size_bytes,
        "not saved": None
        if unsaved is None
        else f"{counted(unsaved.size_bytes, 'byte')}, offsets {unsaved.from_offset} to {unsaved.to_offset - 1}",
        "folder": entry.folder,
    }.items():
        if value is not None:
            click.echo(f"{name + ':':<16}{value}")
    if records:
        click.echo()
        print_table(
            ("OFFSET", "EPOCH", "TIMESTAMP", "KEY", "VALUE"),
            [
                (
                    each["offset"],
                    each["epoch"],
                    timestamp_text(each["timestamp"]),
                    _short(each["key"]),
                    _short(each["value"]),
                )
                for each in records
            ],
        )


@salvage_command.command("export")
@click.argument("entry_ids", metavar="[ID]...", nargs=-1)
@click.option("--topic", "topics", multiple=True, help="Export the entries of this topic. Repeatable.")
@click.option("--all", "everything", is_flag=True, help="Export all entries.")
@click.option(
    "--to",
    "kind",
    type=click.Choice(["jsonl", "parquet", "topic"]),
    required=True,
    help="A file of JSON lines, a Parquet file, or the topic from which the records were lost.",
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The file.  [default: standard output]")
@click.option("--target", metavar="TOPIC", help="Put the records into this topic instead, at the same partitions.")
@click.option("--mark", is_flag=True, help="Add headers tanist.salvage.* to restored records: where they come from.")
@click.option(
    "--include-expired",
    is_flag=True,
    help="Also export records from before the topic's log start: they may have expired or been deleted.",
)
@click.option("--dry-run", is_flag=True, help="Count the records to restore; change nothing.")
@client_options
@json_option
def export_command(
    entry_ids: tuple[str, ...],
    topics: tuple[str, ...],
    everything: bool,
    kind: str,
    output: Path | None,
    target: str | None,
    mark: bool,
    include_expired: bool,
    dry_run: bool,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Export records: to a file, or back into their topic.

    Exports each record once, however many replicas have saved it. `--to topic` sends only records that the topic lacks,
    so it can be repeated: it finds records that the producer sent again or an earlier run restored.

    \b
    tanist salvage export --topic orders --to topic --dry-run
    tanist salvage export --all --to jsonl --output lost.jsonl
    """
    if bool(entry_ids) + bool(topics) + everything != 1:
        raise click.UsageError("give entry IDs, --topic or --all")
    if kind != "topic" and (target or mark or dry_run):
        raise click.UsageError("--target, --mark and --dry-run are for --to topic")
    if kind == "topic" and output is not None:
        raise click.UsageError("--output is for --to jsonl and --to parquet")
    if output is not None and not output.parent.exists():
        raise click.ClickException(f"there is no folder {output.parent}")
    entries = _entries(folder)
    chosen = (
        _named(entries, entry_ids) if entry_ids else [e for e in entries if everything or e.manifest.topic in topics]
    )
    for topic in topics:
        if not any(entry.manifest.topic == topic for entry in chosen):
            raise click.ClickException(f"nothing of topic {topic} was saved: `tanist salvage list` shows what was")
    if kind == "topic":
        chosen = chosen if entry_ids or include_expired else _without_out_of_range(chosen)
        _to_topics(by_partition(chosen), bootstrap, folder, target, mark, include_expired, dry_run, as_json)
        return
    partitions = by_partition(chosen)
    if kind == "parquet":
        if output is None:
            raise click.UsageError("--to parquet needs --output FILE")
        count = write_parquet(partitions, output)
    elif output is None:
        count = write_jsonl(partitions, sys.stdout)
    else:
        with output.open("w", encoding="utf-8") as file:
            count = write_jsonl(partitions, file)
    _tell_left_out(partitions)
    click.echo(f"{counted(count, 'record')} exported", err=True)
    if as_json and output is not None:
        print_json({"records": count, "output": str(output)})


@salvage_command.command("remove")
@click.argument("entry_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_option
@json_option
def remove_command(entry_ids: tuple[str, ...], yes: bool, folder: Path, as_json: bool) -> None:
    """Remove entries for good, before their retention ends."""
    chosen = _named(_entries(folder), entry_ids)
    if as_json and not yes:
        raise click.UsageError("--json cannot ask: add --yes")
    if not yes:
        click.confirm(f"Remove {counted(len(chosen), 'entry')} for good?", abort=True)
    for entry in chosen:
        entry.remove()
        if not as_json:
            click.echo(f"{entry.entry_id}: removed")
    if as_json:
        print_json({"removed": [entry.entry_id for entry in chosen]})


# -- to topics


def _to_topics(
    partitions: Sequence[PartitionSalvage],
    bootstrap: list[Address] | None,
    folder: Path,
    target: str | None,
    mark: bool,
    include_expired: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    results: list[MergeResult] = []
    with connect(bootstrap, folder) as client:
        targets = {}
        for name in dict.fromkeys(target or salvage.topic for salvage in partitions):
            targets[name] = describe_target(client, name)
        for salvage in partitions:
            about, topic_id = targets[target or salvage.topic]
            _require_fit(salvage, about, topic_id, named=target is not None)
        for salvage in partitions:
            about, _ = targets[target or salvage.topic]
            try:
                results.append(
                    merge_back(client, salvage, about, mark=mark, include_expired=include_expired, dry_run=dry_run)
                )
            except MergeInterrupted as error:
                raise click.ClickException(str(error)) from error
    if as_json:
        print_json([asdict(result) for result in results])
        return
    print_table(
        ("PARTITION", "TARGET", "SALVAGED", "PRESENT", "WOULD RESTORE" if dry_run else "RESTORED", "LEFT OUT"),
        [
            (f"{each.topic}-{each.partition}", each.target, each.found, each.present, each.restored, _left_out(each))
            for each in results
        ],
    )


def _require_fit(salvage: PartitionSalvage, target: Target, topic_id: str, *, named: bool) -> None:
    if not named and topic_id != id_text(salvage.topic_id):
        raise click.ClickException(
            f"topic {target.topic} was deleted and created anew since (its id was {id_text(salvage.topic_id)}): to put "
            f"the old records into the new topic anyway, add --target {target.topic}"
        )
    if salvage.partition not in target.partitions:
        raise click.ClickException(f"topic {target.topic} has no partition {salvage.partition}")


def _left_out(result: MergeResult) -> str:
    reasons = {
        "expired": result.expired,
        "superseded": result.superseded,
        "aborted": result.aborted,
        "undecided": result.undecided,
        "control batches": result.control_batches,
        "unreadable batches": result.unreadable_batches,
    }
    return ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count) or "-"


def _without_out_of_range(entries: Sequence[Entry]) -> list[Entry]:
    """Whole logs that were dropped because the topic begins beyond them: mostly what has expired there."""
    kept = [entry for entry in entries if entry.manifest.why is not SalvageReason.OUT_OF_RANGE]
    if len(kept) < len(entries):
        click.echo(
            f"left out: {counted(len(entries) - len(kept), 'entry')}, most of whose records will have expired "
            "(out-of-range); name entries by ID, or give --include-expired",
            err=True,
        )
    return kept


# -- which entries


def _entries(folder: Path) -> list[Entry]:
    if not folder.is_dir():
        raise click.ClickException(f"there is no folder {folder}: name that of the cluster, or of a node, with --data")
    entries, complaints = find_entries(folder)
    for complaint in complaints:
        click.echo(f"left out: {complaint}", err=True)
    return entries


def _named(entries: Sequence[Entry], names: Iterable[str]) -> list[Entry]:
    """The entries of these ids, or of ids that begin so."""
    chosen: dict[str, Entry] = {}
    for name in names:
        exact = [entry for entry in entries if entry.entry_id == name]
        found = exact or [entry for entry in entries if entry.entry_id.startswith(name)]
        if len(found) != 1:
            what = "no entry has" if not found else f"{len(found)} entries have"
            raise click.ClickException(f"{what} an id that begins with {name}: `tanist salvage list` shows all")
        chosen[found[0].entry_id] = found[0]
    return list(chosen.values())


def _count(entry: Entry) -> int:
    return sum(salvage.record_count for salvage in by_partition([entry]))


def _described(entry: Entry) -> dict[str, Any]:
    manifest = entry.manifest
    return {
        "id": manifest.entry_id,
        "topic": manifest.topic,
        "topic_id": id_text(manifest.topic_id),
        "partition": manifest.partition,
        "broker": manifest.broker_id,
        "why": manifest.why.value,
        "when": timestamp_text(manifest.wall_ms),
        "when_ms": manifest.wall_ms,
        "leader_epoch": manifest.leader_epoch,
        "high_watermark": manifest.high_watermark,
        "from_offset": manifest.from_offset,
        "to_offset": manifest.to_offset,
        "epochs": [{"epoch": epoch, "start_offset": start} for epoch, start in manifest.epochs],
        "records": _count(entry),
        "bytes": manifest.size_bytes,
        "unsaved": None if manifest.unsaved is None else asdict(manifest.unsaved),
        "folder": str(entry.folder),
    }


def _tell_left_out(partitions: Iterable[PartitionSalvage]) -> None:
    for salvage in partitions:
        for count, what in ((salvage.control_count, "control"), (salvage.unreadable, "unreadable")):
            if count:
                batches = counted(count, f"{what} batch")
                click.echo(f"{salvage.topic}-{salvage.partition}: left out {batches}", err=True)


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= _SHOWN_CHARS_MAX:
        return text
    return text[: _SHOWN_CHARS_MAX - 1] + "…"
