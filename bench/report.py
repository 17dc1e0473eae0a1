"""Ratios with their spread, thresholds met or missed; as text, as JSON in `bench/results/`, and in `docs/benchmark.md`.

A ratio is first side / second side, taken round by round: the two values of a round were measured within seconds of
each other, so a slow minute of the machine spoils both. It reports median, minimum and maximum of the rounds' ratios.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench.measure import Measured
from bench.stands import HEAP
from bench.workloads import LOWER, RAW, THRESHOLDS, TOOLS, Effort, Threshold
from tests.interop import apache
from tests.interop.cluster import ROOT

RESULTS = ROOT / "bench" / "results"
DOCUMENT = ROOT / "docs" / "benchmark.md"
BEGIN, END = "<!-- results: written by python -m bench -->", "<!-- end of results -->"

METRICS = {
    "requests_per_s": "requests/s",
    "mb_per_s": "MB/s",
    "records_per_s": "records/s",
    "p50_us": "p50 µs",
    "p99_us": "p99 µs",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "cpu_us_per_request": "server CPU µs/request",
    "cpu_s_per_gb": "server CPU s/GB",
    "ready_s": "s to ready",
    "idle_rss_mb": "resident MB",
    "idle_cpu_percent": "CPU %",
}


@dataclass(frozen=True, slots=True)
class Range:
    """Median, minimum and maximum of the rounds."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Range:
        if not values:
            raise ValueError("no values")
        return cls(median(values), min(values), max(values))


def ratios(measured: Measured, metric: str, first: str, second: str) -> Range | None:
    """first/second, round by round; None if one side has no values, or one that is zero."""
    above, below = measured.of(first, metric), measured.of(second, metric)
    if not above or len(above) != len(below) or not all(below):
        return None
    return Range.of([a / b for a, b in zip(above, below, strict=True)])


@dataclass(frozen=True, slots=True)
class Judged:
    """A threshold, and what came of it."""

    threshold: Threshold
    ratio: Range

    @property
    def met(self) -> bool:
        return self._reaches(self.threshold.ratio)

    @property
    def goal_met(self) -> bool:
        return self.threshold.goal is not None and self._reaches(self.threshold.goal)

    def _reaches(self, limit: float) -> bool:
        return self.ratio.median <= limit if self.threshold.metric in LOWER else self.ratio.median >= limit

    def __str__(self) -> str:
        sign = "<=" if self.threshold.metric in LOWER else ">="
        goal = "" if self.threshold.goal is None else f", goal {self.threshold.goal:g}"
        outcome = "met, and the goal too" if self.met and self.goal_met else "met" if self.met else "MISSED"
        what = f"{self.threshold.workload} {METRICS[self.threshold.metric]}"
        return f"{what}: {self.ratio.median:.2f} ({sign} {self.threshold.ratio:g}{goal}): {outcome}"


def judge(results: Sequence[Measured], first: str, second: str) -> list[Judged]:
    by_name = {measured.name: measured for measured in results}
    judged = []
    for threshold in THRESHOLDS:
        measured = by_name.get(threshold.workload)
        ratio = measured and ratios(measured, threshold.metric, first, second)
        if ratio:
            judged.append(Judged(threshold, ratio))
    return judged


def environment(effort: Effort, labels: Mapping[str, str]) -> dict[str, str]:
    """What the numbers depend on."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    model = models[0].partition(":")[2].strip() if models else "unknown"
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit or "unknown",
        "sides": ", ".join(f"{label} = {target}" for label, target in labels.items()),
        "python": platform.python_version(),
        "apache": apache.environment_note(),
        "heap": HEAP,
        "cpu": f"{os.cpu_count()} x {model}",
        "kernel": platform.release(),
        "load at the start": " ".join(f"{each:.2f}" for each in os.getloadavg()),
        "rounds": str(effort.rounds),
        "warm-up": f"at most {effort.warm_max_s:g} s of each workload on each side",
        "length": "quick" if effort.quick else "full",
    }


def number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(results: Sequence[Measured], first: str, second: str) -> list[str]:
    """In Markdown: one row a workload and metric, with each side's median, and the ratio with its spread."""
    lines = [
        f"| workload | metric | {first} | {second} | {first}/{second} |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for measured in results:
        title = measured.title
        for metric in measured.metrics:
            values_of_labels = [measured.of(label, metric) for label in (first, second)]
            cells = [number(median(values)) if values else "–" for values in values_of_labels]
            ratio = ratios(measured, metric, first, second)
            factor = f"**{ratio.median:.2f}** ({ratio.min:.2f}–{ratio.max:.2f})" if ratio else "–"
            lines.append(f"| {title} | {METRICS[metric]} | {cells[0]} | {cells[1]} | {factor} |")
            title = ""
    return lines


def markdown(results: Sequence[Measured], environment: Mapping[str, str], first: str, second: str) -> str:
    """The document's part. The stored JSON has each round's values and the warm-up besides."""
    lines = [BEGIN, "", "Medians of the rounds; of the ratio also (minimum–maximum).", ""]
    lines += table(results, first, second)
    judged = judge(results, first, second)
    if judged:
        missed = [f"- {each}" for each in judged if not each.met]
        lines += [
            "",
            f"{len(judged) - len(missed)} of {len(judged)} thresholds are met. " + ("Missed:" if missed else ""),
        ]
        lines += ["", *missed] if missed else []
    lines += ["", "Run: " + "; ".join(f"{name}: {value}" for name, value in environment.items()) + ".", "", END]
    return "\n".join(lines)


def write(
    results: Sequence[Measured], environment: Mapping[str, str], first: str, second: str, *, document: bool
) -> Path:
    """Store the JSON, and put the table into the document. What is not for the document is not for the repository."""
    folder = RESULTS if document else RESULTS / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H%M")
    path = folder / f"{stamp}.json"
    content = {
        "environment": dict(environment),
        "workloads": [asdict(measured) for measured in results],
        "thresholds": [
            {**asdict(each.threshold), "measured": asdict(each.ratio), "met": each.met, "goal_met": each.goal_met}
            for each in judge(results, first, second)
        ],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    if document:
        before, _, rest = DOCUMENT.read_text().partition(BEGIN)
        _, found, after = rest.partition(END)
        if not found:
            raise ValueError(f"{DOCUMENT} has lost its marks: {BEGIN} ... {END}")
        DOCUMENT.write_text(before + markdown(results, environment, first, second) + after)
    return path


def join(paths: Sequence[Path]) -> tuple[list[Measured], dict[str, str]]:
    """One set of results of several stored ones: of each workload the last, and all there is to say of the runs."""
    found: dict[str, Measured] = {}
    environment: dict[str, str] = {}
    for path in paths:
        stored = json.loads(path.read_text())
        for workload in stored["workloads"]:
            found[workload["name"]] = Measured(**{**workload, "metrics": tuple(workload["metrics"])})
        for name, value in stored["environment"].items():
            values = environment[name].split(" / ") if name in environment else []
            environment[name] = " / ".join([*values, value] if value not in values else values)
    order = ["start", "idle-1", "idle-3", *(each.name for each in (*RAW, *TOOLS))]
    missing = [name for name in order if name not in found]
    if missing:
        raise ValueError(f"nobody has measured {', '.join(missing)}")
    return [found[name] for name in order], environment


def print_summary(results: Sequence[Measured], first: str, second: str) -> None:
    print("\n".join(table(results, first, second)))
    if (first, second) == ("tanist", "apache"):  # the thresholds are about these two
        for each in judge(results, first, second):
            print(each)
    sys.stdout.flush()
