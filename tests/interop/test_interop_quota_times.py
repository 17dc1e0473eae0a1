"""Throttle times of rates and buckets: Apache Kafka's own classes and ours, over the same values at the same times."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tanist.security.quotas import Limits, MutationThrottle, Throttle, Windows
from tests.interop import apache

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

SEQUENCES = 3_000
STEPS_MAX = 120
ORACLE = Path(__file__).with_name("QuotaOracle.java")


def _sequence(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(["rate", "bucket", "strict", "mixed"])
    # A new bucket is full at once only where time has begun long ago: Apache Kafka's is the time of day.
    now_ms = rng.choice([0, 1, 1_000_000, 1_764_000_000_000] if kind == "rate" else [1_764_000_000_000])
    pause_ms = rng.choice([10, 400, 1_500, 15_000])
    bound = float(rng.choice([1, 3, 100, 1_000_000])) if kind == "rate" else rng.choice([0.5, 1.0, 3.3, 100.0])
    largest = max(1, round(bound * rng.choice([0.1, 1, 20])))
    steps: list[list[Any]] = []
    for _ in range(rng.randint(1, STEPS_MAX)):
        if rng.random() < 0.02:
            bound *= rng.choice([0.5, 2.0])
        value = float(rng.randint(1, largest))
        if kind == "rate" and rng.random() < 0.1 and steps:
            value = -float(steps[-1][2])  # unrecorded
        step = rng.choice(["bucket", "strict"]) if kind == "mixed" else kind
        steps.append([step, bound, value, now_ms])
        now_ms += rng.choice([0, rng.randint(0, pause_ms)])
    samples, sample_ms = rng.choice([(11, 1_000), (11, 1_000), (1, 1_000), (3, 2_000)])
    return {"samples": samples, "sample_ms": sample_ms, "steps": steps}


def _our_times(sequence: dict[str, Any]) -> list[int]:
    windows = Windows(sequence["samples"], sequence["sample_ms"])
    rate, mutations = Throttle(windows), MutationThrottle(windows)
    times: list[int] = []
    for kind, bound, value, now_ms in sequence["steps"]:
        limits = Limits([((("user", "u"),), bound)])
        if kind == "rate":
            rate.limits = limits
            times.append(rate.record("u", "c", value, now_ms))
            continue
        mutations.limits = limits
        request = mutations.request("u", "c", now_ms, strict=kind == "strict")
        taken = request.take(value)
        times.append(request.throttle_ms)
        if not taken:
            times.append(-1)
    return times


def test_the_times_are_those_of_apache_kafka(tmp_path: Path) -> None:
    rng = random.Random(40)
    sequences = [_sequence(rng) for _ in range(SEQUENCES)]
    classes = f"{apache.jars()}/*"
    subprocess.run(["javac", "-d", str(tmp_path), "-cp", classes, str(ORACLE)], check=True, timeout=120)
    asked = "\n".join(json.dumps(sequence) for sequence in sequences)
    command = ["java", *apache.LOAD_FLAGS, "-cp", f"{tmp_path}:{classes}", "QuotaOracle"]
    answered = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, timeout=300)
    theirs = [json.loads(line) for line in answered.stdout.splitlines()]
    ours = [_our_times(sequence) for sequence in sequences]
    assert len(theirs) == SEQUENCES
    for sequence, expected, found in zip(sequences, theirs, ours, strict=True):
        assert found == expected, sequence
    times = [time for sequence in theirs for time in sequence]
    assert sum(time > 0 for time in times) > 10_000  # there was something to compare
    assert sum(time == 0 for time in times) > 10_000
    assert times.count(-1) > 1_000
