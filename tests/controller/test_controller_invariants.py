"""A change of a partition leaves its sets as they must be; a snapshot reads as the image that it was made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings

from tanist.controller.image import snapshot
from tanist.controller.image.image import METADATA_VERSION, MetadataImage
from tanist.controller.image.snapshot import checked_values, from_records
from tanist.controller.partitions import change as changes
from tanist.invariants import InvariantError
from tanist.wire.metadata import ConfigRecord, FeatureLevelRecord, PartitionRecord, TopicRecord, decode_record
from tests.controller.image.test_snapshot import images
from tests.controller.partitions.test_partition_change import context, intent, partition

UNSOUND: dict[str, dict[str, Any]] = {
    "a member of the ISR is no replica": {"isr": (1, 4)},
    "a member of the ELR is no replica": {"elr": (4,)},
    "a member of both": {"elr": (2,)},
    "the leader is in no ISR": {"leader": 3},
}


@pytest.mark.parametrize("torn", UNSOUND.values(), ids=UNSOUND)
def test_a_rule_that_leaves_a_partition_unsound_makes_no_record(
    torn: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = partition(isr=(1, 2))
    decided = changes._after
    monkeypatch.setattr(changes, "_after", lambda *given: replace(decided(*given), **torn))
    with pytest.raises(InvariantError, match="ISR and ELR are apart") as raised:
        changes.partition_change(before, intent(target_isr=(1, 2)), context())
    assert raised.value.values["before"] is before


@pytest.mark.parametrize("torn", UNSOUND.values(), ids=UNSOUND)
def test_what_another_program_has_written_can_be_changed(torn: dict[str, Any]) -> None:
    before = partition(**{"isr": (1, 2), **torn})
    changes.partition_change(before, intent(target_directories={1: UUID(int=9)}), context())


TOPIC = UUID(int=50)


def an_image(**state: Any) -> MetadataImage:
    fields: dict[str, Any] = {
        "replicas": (1, 2, 3),
        "isr": (1, 2),
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": (TOPIC,) * 3,
        **state,
    }
    return from_records(
        (
            FeatureLevelRecord(name=METADATA_VERSION, feature_level=30),
            TopicRecord(name="t", topic_id=TOPIC),
            PartitionRecord(partition_id=0, topic_id=TOPIC, **fields),
            ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value="2"),
        )
    )


@settings(max_examples=40, deadline=None)
@given(images())
def test_a_sound_snapshot_is_written(image: MetadataImage) -> None:
    values = list(checked_values(image.copy(indexed=False), image.copy()))
    assert from_records(decode_record(value) for value in values) == image


def test_a_snapshot_that_forgets_a_field_is_not_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    made = snapshot._partition_record

    def forgets(*given: Any) -> PartitionRecord:
        record = made(*given)
        record.eligible_leader_replicas = None
        return record

    monkeypatch.setattr(snapshot, "_partition_record", forgets)
    with pytest.raises(InvariantError, match="compared_with='a snapshot'"):
        list(checked_values(an_image(eligible_leader_replicas=(3,))))


@pytest.mark.parametrize("left_out", [PartitionRecord, TopicRecord, ConfigRecord, FeatureLevelRecord])
def test_a_snapshot_that_leaves_a_record_out_is_not_whole(left_out: type, monkeypatch: pytest.MonkeyPatch) -> None:
    made = snapshot._records
    lacking = {left_out, PartitionRecord} if left_out is TopicRecord else {left_out}
    monkeypatch.setattr(snapshot, "_records", lambda image: (each for each in made(image) if type(each) not in lacking))
    with pytest.raises(InvariantError, match="compared_with='a snapshot'"):
        list(checked_values(an_image()))


@pytest.mark.parametrize("state", [{"leader": 2}, {"partition_epoch": 3}])
def test_two_images_of_one_log_are_equal(state: dict[str, Any]) -> None:
    with pytest.raises(InvariantError, match="compared_with='the other image'"):
        list(checked_values(an_image(), an_image(**state)))


def test_two_images_of_one_log_have_the_same_topics() -> None:
    other = an_image()
    other.replay(TopicRecord(name="phantom", topic_id=UUID(int=51)))
    with pytest.raises(InvariantError, match="phantom"):
        list(checked_values(an_image(), other))
