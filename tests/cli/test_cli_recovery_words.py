"""What `tanist recovery` prints of a partition, and when it does not elect: without a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.cli.commands import recovery as command
from tanist.cli.commands.recovery_survey import Survey
from tanist.cli.output.recovery_plan import RecordAt, Recovery, recovery_json, show_recovery
from tanist.runtime.client.admin import PartitionDescription
from tanist.runtime.client.recovery_plan import Run, plan
from tanist.runtime.client.replica_positions import ReplicaPositions
from tanist.wire.batch import NewRecord, Record, decode_batch, encode_batch

PARTITION = PartitionDescription(0, -1, 4, (1, 2, 3), (), (), (2, 3), (1,))
WALL_MS = 1_700_000_000_000


def record(offset: int, key: bytes | None, value: bytes | None) -> Record:
    return decode_batch(bytes(encode_batch([NewRecord(WALL_MS, key, value)], base_offset=offset)))[0]


def replica(broker: int, end: int | None, **more: Any) -> ReplicaPositions:
    start = None if end is None else 0
    given = {"alive": True, "start": start, "end": end, "epochs": ((0, 0),), **more}
    return ReplicaPositions(broker, "offline", **given)


def recovery(*replicas: ReplicaPositions, salvage: tuple[Run, ...] = (), **more: Any) -> Recovery:
    """1 is offline."""
    given: dict[str, Any] = {
        "topic": "orders",
        "partition": PARTITION,
        "explanation": "no leader: ISR and ELR are empty",
        "replicas": replicas,
        "plan": plan(replicas, (2, 3), salvage),
        "looked": {},
        "designates": True,
        "saves": True,
    }
    return Recovery(**{**given, **more})


def shown(found: Recovery, capsys: pytest.CaptureFixture[str], where: str = "") -> str:
    show_recovery(found, where)
    return capsys.readouterr().out


def test_a_partition_with_an_offline_replica_of_which_nothing_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    lost = (
        RecordAt(1, 10, 2, record(10, None, b"\x00binary")),
        RecordAt(1, 11, 2, record(11, b"a" * 41, None)),
    )
    found = recovery(
        replica(1, None, note="it does not answer (it is not among those alive)", alive=False),
        replica(2, 12, epochs=((0, 0), (1, 10)), high_watermark=11, synced=12),
        replica(3, 10, high_watermark=5),
        looked={3: lost},
    )
    assert shown(found, capsys, " --data d") == (
        "orders-0 has no leader: ISR and ELR are empty\n"
        "\n"
        "BROKER  STATE    LAST EPOCH  START  END  HIGH WATERMARK  SYNCED\n"
        "1       offline  ?           ?      ?    ?               ?\n"
        "2       live     1           0      12   11              12\n"
        "3       live     0           0      10   5               ?\n"
        "broker 1: it does not answer (it is not among those alive)\n"
        "\n"
        "If broker 2 leads, nothing is lost that another replica is known to have.\n"
        "  Of those that can lead now, it loses least.\n"
        "  `tanist recovery apply orders 0 --leader 2 --data d`\n"
        "\n"
        "If broker 3 leads, 2 records are lost that broker 2 has (offsets 10 to 11), at least 1 of them committed.\n"
        "  first: offset 10, epoch 1, 2023-11-14T22:13:20.000Z, key null, value 0x0062696e617279\n"
        "  last:  offset 11, epoch 1, 2023-11-14T22:13:20.000Z, "
        "key aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…, value null\n"
        "  The others save what they truncate: `tanist salvage` restores it.\n"
        "  `tanist recovery apply orders 0 --leader 3 --data d`\n"
        "\n"
        "Not counted: records that no replica has any more, and what only broker 1 has, which may be more than the "
        "others.\n"
        "SYNCED ?: how far a log is on the disk no broker says to clients. Nodes' pages and files may (--data).\n"
    )
    as_json = recovery_json(found, "")
    assert (as_json["unknown"], as_json["least_loss"]) == ([1], 2)
    bad = as_json["choices"][1]
    assert (bad["lost"], bad["lost_committed"], bad["first_lost"]["record"]["value"]) == (2, 1, "\x00binary")


def test_a_member_of_the_elr_is_better_than_a_choice(capsys: pytest.CaptureFixture[str]) -> None:
    partition = replace(PARTITION, elr=(1,))
    found = recovery(replica(1, 20, alive=False), replica(2, 12), replica(3, 12), partition=partition)
    text = shown(found, capsys)
    assert "Broker 1 had every committed record. Start it first, if the disk is there" in text
    assert "If broker 1 leads, nothing is lost that another replica is known to have.\n  It cannot lead now" in text


def test_what_is_gone_for_good_and_what_the_salvage_has(capsys: pytest.CaptureFixture[str]) -> None:
    salvage = (Run(0, 11, 12), Run(7, 3, 5))
    found = recovery(replica(2, 12), replica(3, 10), salvage=salvage, designates=False, saves=False)
    text = shown(found, capsys)
    assert "because brokers of Apache Kafka do not save it; 1 of them is in the salvage now." in text
    assert "The salvage has 2 records that it and the other replicas lack, unless they were restored since." in text
    assert "These brokers keep no record of who has an election made" in text
    assert "because tanist.salvage.enable is false" in shown(replace(found, designates=True), capsys)


def test_records_from_before_the_log_start(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(recovery(replica(2, 12), replica(3, 12, start=11)), capsys)
    assert "If broker 3 leads, 11 older records from before its log start are dropped." in text


class Client:
    """Counts what it is asked to elect."""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def look_again(monkeypatch: pytest.MonkeyPatch, before: Recovery, after: Recovery) -> tuple[str, list[int]]:
    """What is printed, and who is elected, if the second look finds `after`."""
    states, elected = [before, after], []

    def chosen(*_: object) -> Any:
        found = states.pop(0)
        return found, found.choice(3)

    def elect(client: Client, found: Recovery, leader: int) -> PartitionDescription:
        elected.append(leader)
        return PARTITION

    monkeypatch.setattr(command, "connect", lambda *_: Client())
    monkeypatch.setattr(Survey, "of", lambda *_: None)
    monkeypatch.setattr(command, "_partition", lambda *_: PARTITION)
    monkeypatch.setattr(command, "_chosen", chosen)
    monkeypatch.setattr(command, "_elect", elect)
    done = CliRunner().invoke(app, ["recovery", "apply", "orders", "0", "--leader", "3"], input="y\n")
    assert not states
    assert done.exit_code == (0 if elected else 1)
    return done.output, elected


@pytest.mark.parametrize(
    "after",
    [
        pytest.param((replica(2, 13), replica(3, 10)), id="more would be lost"),
        pytest.param((replica(2, 12), replica(3, 9)), id="it has less itself"),
        pytest.param((replica(2, None), replica(3, 10)), id="nobody knows any more what broker 2 has"),
        pytest.param((replica(2, 12, high_watermark=12), replica(3, 10)), id="what is lost was committed"),
    ],
)
def test_nobody_is_elected_if_the_choice_has_changed_while_it_asked(
    monkeypatch: pytest.MonkeyPatch, after: tuple[ReplicaPositions, ...]
) -> None:
    printed, elected = look_again(monkeypatch, recovery(replica(2, 12), replica(3, 10)), recovery(*after))
    assert "the replicas have changed since: look again" in printed
    assert elected == []


def test_what_changes_nothing_of_the_choice_is_no_reason_to_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush, and a broker that has just started: both happen by themselves while the operator reads."""
    before = recovery(replica(2, 12, synced=0), replica(3, 10, synced=0, note="the numbers are those of its page"))
    after = recovery(replica(2, 12, synced=12), replica(3, 10, synced=10))
    assert look_again(monkeypatch, before, after)[1] == [3]


def test_json_cannot_ask() -> None:
    done = CliRunner().invoke(app, ["recovery", "apply", "orders", "0", "--leader", "3", "--json"])
    assert done.exit_code == 2
    assert "add --yes or --dry-run" in done.output
