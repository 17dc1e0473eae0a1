"""The audit's answers are those of a checker in plain Python, on clusters with faults planted in them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tanist.spark.jobs.audit.findings_table import FindingsTable
from tanist.wire.batch import NewRecord
from tests.spark.spark_audit_samples import (
    REFERENCE,
    REPLICAS,
    TOPIC,
    Scene,
    brute,
    missing_tail,
    plant,
    sound_scene,
    write_parquet,
)
from tests.spark.spark_segments_samples import START_MS, SegmentBuilder

PLANTED = {
    "lost-write", "missing", "divergent", "damaged", "duplicate", "reordered", "read-lost", "phantom",
    "G1a", "failed-in-log",
}  # fmt: skip


def audited(spark: Any, scene: Scene, folder: Path, **settings: Any) -> Any:
    from tanist.spark.jobs.audit.audit import audit_folder

    scene.write(folder)
    return audit_folder(spark, folder / "data", [folder / "history.jsonl"], **settings)


def counts(result: Any) -> dict[str, Counter[int]]:
    found: dict[str, Counter[int]] = {}
    for (kind, topic, partition), count in result.counts.items():
        assert topic == TOPIC
        found.setdefault(kind.value, Counter())[partition] = count
    return found


def test_a_sound_cluster_has_nothing_and_is_read_once(spark: Any, tmp_path: Path) -> None:
    scene = sound_scene(2, 5_000, seed=1)
    result = audited(spark, scene, tmp_path)
    assert brute(scene) == {}
    assert result.counts == {}
    assert result.findings == []
    assert result.plan["replicas"] == "two-level: 0 of 4 buckets differ"
    assert result.records == sum(len(scene.held(each, replica)) for each in scene.logs for replica in REPLICAS)


@pytest.mark.slow  # the next one draws such faults
def test_planted_faults_are_found_as_the_plain_checker_finds_them(spark: Any, tmp_path: Path) -> None:
    scene = plant(sound_scene(3, 10_000, seed=7), seed=8, faults=45)
    expected = brute(scene)
    assert set(expected) == PLANTED
    assert max(expected["missing"].values()) > 4_096
    assert counts(audited(spark, scene, tmp_path)) == expected


@pytest.mark.parametrize("seed", [None, pytest.param(4711, marks=pytest.mark.slow)])
def test_what_tasks_read_themselves_has_the_findings_of_the_plain_checker(
    spark: Any, tmp_path: Path, seed: int | None
) -> None:
    """Fresh clusters with all kinds of faults, in an order of lines and in row groups that are drawn as well."""
    from tanist.spark.jobs.audit.audit import audit_folder

    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    rng = random.Random(seed)
    scene = plant(sound_scene(rng.randint(1, 3), rng.randint(2_000, 9_000), seed), seed + 1, faults=rng.randint(9, 30))
    if rng.random() < 0.5:
        rng.shuffle(scene.lines)
    scene.write(tmp_path)
    history = write_parquet(scene, tmp_path / "history", row_group=rng.choice((100, 1_000, 100_000)))
    result = audit_folder(spark, tmp_path / "data", [history])
    assert counts(result) == brute(scene), f"seed {seed}"


def test_what_is_cut_from_the_end_is_lost_and_the_result_says_all_of_it(spark: Any, tmp_path: Path) -> None:
    scene = missing_tail(sound_scene(2, 3_000, seed=3), partition=1, records=300)
    expected = brute(scene)
    assert set(expected) == {"lost-write", "read-lost"}
    table = FindingsTable(tmp_path / "findings", "parquet")
    result = audited(spark, scene, tmp_path, findings=table)
    assert counts(result) == expected
    lost = spark.read.parquet(table.place).where("kind = 'lost-write'")
    log = scene.held(1, 1)
    assert lost.count() == expected["lost-write"][1]
    assert min(row.first_offset for row in lost.select("first_offset").collect()) > max(log)
    assert {each.detail for each in result.findings if each.kind.value == "lost-write"} == {
        "at or above the high watermark"
    }


def test_a_segment_that_begins_while_a_history_is_read_is_read_too(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a cluster that runs: what a history has was acknowledged before its file was read, so the log has it."""
    from tanist.spark.jobs.audit.by_spark import engine
    from tanist.spark.jobs.audit.by_spark.history import read_history

    scene = sound_scene(1, 500, seed=3)
    batches = scene.logs[0][REFERENCE]
    first, second = batches[: len(batches) // 2], batches[len(batches) // 2 :]
    begun = replace(scene, logs={0: dict.fromkeys(REPLICAS, first)}, high_watermarks={0: second[0].base_offset})
    read = read_history

    def read_meanwhile(*arguments: Any) -> Any:
        for replica in REPLICAS:
            segment = SegmentBuilder(second[0].base_offset)
            for batch in second:
                segment.offset, segment.epoch = batch.base_offset, batch.epoch
                records = [NewRecord(START_MS + batch.base_offset, None, value) for value in batch.values]
                segment.batch(records, control=batch.control)
            segment.write(tmp_path / "data" / f"node-{replica}" / "log" / f"{TOPIC}-0")
        return read(*arguments)

    monkeypatch.setattr(engine, "read_history", read_meanwhile)
    result = audited(spark, begun, tmp_path)
    assert counts(result) == {}
    assert result.records == sum(len(scene.held(0, replica)) for replica in REPLICAS)


def test_neighbouring_offsets_are_one_finding_also_across_buckets(spark: Any, tmp_path: Path) -> None:
    scene = sound_scene(1, 12_000, seed=5)
    kept = [each for each in scene.logs[0][2] if each.end <= 3_000 or each.base_offset >= 9_000]
    gone = {each.base_offset for each in scene.logs[0][2]} - {each.base_offset for each in kept}
    lacked = [each for each in scene.logs[0][2] if each.base_offset in gone]
    scene.logs[0][2] = kept
    (finding,) = audited(spark, scene, tmp_path).findings
    assert (finding.kind.value, finding.replicas, finding.detail) == ("missing", (2,), "held by 1,3")
    assert (finding.first_offset, finding.last_offset) == (lacked[0].base_offset, lacked[-1].end - 1)
    assert finding.records == finding.last_offset - finding.first_offset + 1


@pytest.mark.slow
def test_logs_that_are_frames_have_the_answers_of_files(spark: Any, tmp_path: Path) -> None:
    """Summed up by Spark instead of where they are read, with hashes of its own."""
    from tanist.spark.jobs.audit.by_spark.engine import audit
    from tanist.spark.jobs.audit.by_spark.history import read_history
    from tanist.spark.jobs.audit.by_spark.logs import FrameLogs

    scene = plant(sound_scene(2, 4_000, seed=17), seed=18, faults=20)
    scene.write(tmp_path)
    logs = FrameLogs(spark.read.format("tanist-segments").load(str(tmp_path / "data")).cache())
    marks = {(TOPIC, partition): offset for partition, offset in scene.high_watermarks.items()}
    known = replace(logs.known(), high_watermarks=marks)
    assert counts(audit(logs, read_history(spark, [tmp_path / "history.jsonl"]), known=known)) == brute(scene)


@pytest.mark.slow
def test_a_million_records_have_the_same_answers(spark: Any, tmp_path: Path) -> None:
    scene = plant(sound_scene(4, 85_000, seed=11, batch_records=200), seed=12, faults=90)
    expected = brute(scene)
    assert set(expected) == PLANTED
    assert counts(audited(spark, scene, tmp_path)) == expected
