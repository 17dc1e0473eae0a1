"""The files in examples/monitoring name what nodes export: metrics, labels, the values of labels, ports and pages."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tanist.broker.metrics.catalog import DEFINITIONS, PROCESS_METRICS, Kind
from tanist.broker.metrics.scrape import scrape, scrape_partitions
from tests.broker.cluster_rig import TLS_BETWEEN_CONTROLLERS, Cluster
from tests.broker.prometheus_text import parse

HERE = Path(__file__).resolve().parents[2]
FILES = HERE / "examples" / "monitoring"
TARGET_LABELS = {"job", "instance", "cluster"}
"""Prometheus and its configuration add them."""
PROMETHEUS_OWN = {"up"}

_WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}
_GROUPING = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"([A-Za-z_:][\w:]*)?\s*\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
_NAME = re.compile(r"(?<![\w.$])([A-Za-z_:][\w:]*)(\s*\()?")

Query = tuple[str, str]
"""Where it stands, and its PromQL."""


def metrics_of(query: str) -> set[str]:
    """The names of metrics in PromQL, of the forms that these files use."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', query)
    bare = _GROUPING.sub(" ", re.sub(r"\{[^}]*\}|\[[^]]*\]", " ", bare))
    return {name for name, call in _NAME.findall(bare) if not call and name not in _WORDS}


def labels_of(query: str) -> set[str]:
    """Labels that it groups or joins by."""
    return {label.strip() for _, labels in _GROUPING.findall(query) for label in labels.split(",") if label.strip()}


def matchers_of(query: str) -> Iterator[tuple[str, str, str, str]]:
    """(metric, label, operator, value)"""
    for metric, inner in _SELECTOR.findall(query):
        for label, operator, value in _MATCHER.findall(inner):
            yield metric, label, operator, value


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((FILES / "tanist.rules.yml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FILES / "grafana-dashboard.json").read_text())
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> list[Query]:
    found = [(rule["alert"], rule["expr"]) for rule in rules()]
    found += [(panel["title"], target["expr"]) for panel in panels() for target in panel["targets"]]
    return found


@cache
def exported() -> dict[str, dict[str, set[str]]]:
    """Metric -> label -> the values that a cluster with a topic gives it."""
    cluster = Cluster(config={"min.insync.replicas": "2", **TLS_BETWEEN_CONTROLLERS})
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.produce("t", [b"x"])
    found: dict[str, dict[str, set[str]]] = {}
    for node in cluster.world.nodes():
        for page in (scrape(node.components), scrape_partitions(node.components)):
            for name, family in parse(page.render()).items():
                labels = found.setdefault(name, {})
                for sample in family.samples:
                    for label, value in sample:
                        labels.setdefault(label, set()).add(value)
    return found | {each.name: {} for each in PROCESS_METRICS}


# -- the reader of PromQL


def test_names_are_read_out_of_promql() -> None:
    query = 'max by (cluster) (rate(a_total{b=~"c|d",e="f g"}[5m])) / on (cluster, q) x:y offset 1h > bool 0.8 and z'
    assert metrics_of(query) == {"a_total", "x:y", "z"}
    assert labels_of(query) == {"cluster", "q"}
    assert list(matchers_of(query)) == [("a_total", "b", "=~", "c|d"), ("a_total", "e", "=", "f g")]
    assert metrics_of('topk(10, sum by (request) (rate(m{cluster=~"$cluster"}[$__rate_interval])))') == {"m"}


# -- names


@pytest.mark.parametrize(("where", "query"), queries(), ids=[f"{n}-{q[0]}" for n, q in enumerate(queries())])
def test_every_metric_and_label_of_a_query_is_exported(where: str, query: str) -> None:
    names = metrics_of(query)
    assert names, where
    assert names <= exported().keys() | PROMETHEUS_OWN, where
    for name, label, operator, value in matchers_of(query):
        if label in TARGET_LABELS:
            continue
        there = exported()[name].get(label)
        assert there is not None, (where, name, label)
        if operator in ("=", "=~"):
            for each in value.split("|") if operator == "=~" else [value]:
                # A label that counts has the counts that occur.
                counts = each.isdecimal() and all(value.isdecimal() for value in there)
                assert each in there or counts, (where, label, each)
    of_any = TARGET_LABELS.union(*(exported().get(name, {}) for name in names))
    assert labels_of(query) <= of_any, where


@pytest.mark.parametrize(("where", "query"), queries(), ids=[f"{n}-{q[0]}" for n, q in enumerate(queries())])
def test_counters_are_looked_at_by_their_rate_and_gauges_as_they_are(where: str, query: str) -> None:
    for name in metrics_of(query) - PROMETHEUS_OWN:
        rated = re.search(rf"\b(rate|increase)\(\s*{name}\b", query) is not None
        assert rated is (DEFINITIONS[name].kind is Kind.COUNTER), (where, name)


def test_what_every_controller_counts_alike_is_not_added_up() -> None:
    """docs/metrics.md: only the active controller knows some; of all else the sum would count once for each."""
    of_active = {
        "kafka_controller_kafkacontroller_activecontrollercount",
        "kafka_controller_unclean_recovery_partitions_count",
        "kafka_controller_manual_leader_election_required_partition_count",
    }
    for where, query in queries():
        for name in metrics_of(query):
            if name.startswith(("kafka_controller_", "tanist_controller_")) and "metadataerror" not in name:
                inner = re.search(rf"(sum|max) by \([^)]*\) \((?:increase\(|rate\()?{name}\b", query)
                assert inner is not None, (where, name)
                # Within one node the parts of a count are added up.
                within = "sum by (cluster, instance)" in query
                assert (inner[1] == "sum") is (name in of_active) or within, (where, name)


def test_the_alarms_of_the_documentation_have_a_rule() -> None:
    text = (HERE / "docs" / "metrics.md").read_text(encoding="utf-8")
    section = text[text.index("## What to watch") :]
    watched = [metrics_of(line.split("`")[1].replace("\\|", "|")) for line in section.splitlines() if "| `" in line]
    assert len(watched) >= 9
    ruled = [metrics_of(rule["expr"]) for rule in rules()]
    for names in watched:
        assert any(names <= each for each in ruled), names


# -- the files


def test_the_scrape_configuration_reaches_the_nodes_of_tanist_up() -> None:
    config = yaml.safe_load((FILES / "prometheus.yml").read_text())
    assert [(FILES / name).exists() for name in config["rule_files"]] == [True]
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert {job.get("metrics_path", "/metrics") for job in jobs.values()} == {"/metrics", "/metrics/partitions"}
    for job in jobs.values():
        (static,) = job["static_configs"]
        assert static["targets"] == [f"127.0.0.1:{9098 + node}" for node in range(3)]
        assert static["labels"] == {"cluster": "local"}
    asked = {value for _, query in queries() for _, label, _, value in matchers_of(query) if label == "job"}
    assert asked <= jobs.keys()


def test_every_alert_says_how_grave_it_is_what_is_wrong_and_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "ticket"), rule
        assert set(rule["annotations"]) == {"summary", "description"}, rule
        for command in re.findall(r"`tanist ([a-z-]+)", str(rule["annotations"])):
            from tanist.cli.app import app

            assert app.get_command(None, command) is not None, command  # type: ignore[arg-type]
        for path in re.findall(r"docs/[\w-]+\.md", str(rule["annotations"])):
            assert (HERE / path).exists(), path


def test_the_dashboard_can_be_imported_and_its_panels_do_not_overlap() -> None:
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(ids)) == len(ids)
    variables = {each["name"] for each in dashboard()["templating"]["list"]}
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + column, place["y"] + line) for column in range(place["w"]) for line in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["description"].endswith((".", "tanist elect", "list", "explain"))
        for target in panel["targets"]:
            used = set(re.findall(r"\$(?!__)(\w+)", target["expr"]))
            assert used <= variables
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert shown <= labels_of(target["expr"]) | TARGET_LABELS, panel["title"]


def test_promtool_takes_the_rules_where_it_is_installed() -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not here (Debian's package prometheus has it)")
    for arguments in (
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "tanist.rules.yml"),
        ("test", "rules", "tanist.rules.test.yml"),
    ):
        done = subprocess.run([tool, *arguments], cwd=FILES, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
