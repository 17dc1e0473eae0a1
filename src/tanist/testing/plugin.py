"""The pytest plugin: fixtures `kafka_cluster`, `kafka` and `kafka_async`, their options, and the report of a failure.

pytest loads this module in every run, so nothing of tanist is imported here before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from shlex import quote
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tanist.testing.aio import AsyncKafka
    from tanist.testing.cluster import Cluster
    from tanist.testing.namespace import Kafka

_NAMESPACE: pytest.StashKey[Kafka] = pytest.StashKey()
_FAILED: pytest.StashKey[bool] = pytest.StashKey()
_KEPT_PROPERTY = "tanist_data"

_OPTIONS = (
    ("brokers", "N", "brokers of the test cluster (default: 3)"),
    ("controllers", "N", "controllers in processes of their own (default: 0, brokers are controllers)"),
    ("min-isr", "N", "min.insync.replicas (default: 2, or 1 of fewer than three brokers)"),
    ("reuse", "DIR", "keep the cluster in DIR between runs"),
    ("bootstrap", "HOST:PORT", "use this Kafka instead of a cluster of tanist's own"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tanist", "Kafka clusters by tanist")
    for name, metavar, text in _OPTIONS:
        group.addoption(f"--tanist-{name}", metavar=metavar, help=text)
        parser.addini(f"tanist_{name.replace('-', '_')}", text)
    text = "a Kafka setting of every node, repeatable"
    group.addoption("--tanist-config", metavar="KEY=VALUE", action="append", default=[], help=text)
    parser.addini("tanist_config", "Kafka settings of every node, KEY=VALUE", type="linelist")


def _option(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"tanist_{name}")
    return str(config.getini(f"tanist_{name}") if given is None else given).strip()


def _number(config: pytest.Config, name: str, default: int) -> int:
    text = _option(config, name)
    if not text:
        return default
    if not text.isdecimal():
        raise pytest.UsageError(f"--tanist-{name.replace('_', '-')} {text}: give a number")
    return int(text)


def _settings(config: pytest.Config) -> dict[str, str]:
    found = {}
    for line in [*config.getini("tanist_config"), *config.getoption("tanist_config")]:
        key, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"--tanist-config {line}: give KEY=VALUE, like min.insync.replicas=1")
        found[key.strip()] = value.strip()
    if min_isr := _option(config, "min_isr"):
        found["min.insync.replicas"] = min_isr
    return found


def _cluster(config: pytest.Config) -> Cluster:
    """The cluster that the options describe: one for each worker of xdist."""
    from tanist.testing.cluster import Cluster

    if bootstrap := _option(config, "bootstrap"):
        return Cluster.connect(bootstrap)
    worker = getattr(config, "workerinput", {}).get("workerid", "")
    reuse = _option(config, "reuse")
    return Cluster(
        _number(config, "brokers", 3),
        _number(config, "controllers", 0),
        _settings(config),
        folder=str(config.rootpath / reuse / worker) if reuse else None,
    )


@pytest.fixture(scope="session")
def kafka_cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster of this run (under xdist, of this worker), with what earlier tests have left in it."""
    from tanist.testing.errors import ClusterError
    from tanist.testing.tests_lock import tests_lock

    with ExitStack() as until_the_end:
        trouble = ""
        try:
            cluster = _cluster(pytestconfig)
            if (folder := cluster.folder) is not None:
                until_the_end.enter_context(tests_lock(folder, lambda wait: _say(pytestconfig, wait)))
            cluster.open()
        except ClusterError as error:
            trouble = str(error)
        if trouble:
            pytest.fail(f"tanist: {trouble}", pytrace=False)
        try:
            yield cluster
        finally:
            cluster.close()


def _say(config: pytest.Config, line: str) -> None:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    if reporter is not None and capture is not None:  # workers of xdist have no reporter
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(line)


@pytest.fixture
def kafka(kafka_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """The cluster with names for this test alone: its topics and groups are gone afterwards, its faults healed."""
    from tanist.testing.namespace import Kafka

    namespace = Kafka(kafka_cluster)
    request.node.stash[_NAMESPACE] = namespace
    yield namespace
    namespace.clean_up(failed=request.node.stash.get(_FAILED, False))


@pytest.fixture
def kafka_async(kafka: Kafka) -> AsyncKafka:
    """`kafka` for asyncio: every operation is awaited."""
    from tanist.testing.aio import AsyncKafka

    return AsyncKafka(kafka)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test whose fault cannot be had cannot be run: skipped, with the reason."""
    reason = ""
    try:
        result = yield
    except Exception as error:
        if item.stash.get(_NAMESPACE, None) is None:
            raise
        from tanist.testing.errors import NotAvailable

        if not isinstance(error, NotAvailable):
            raise
        result, reason = None, str(error)
    if reason:
        pytest.skip(reason)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    namespace = item.stash.get(_NAMESPACE, None)
    if namespace is not None and report.when == "call" and report.failed:
        from tanist.testing.report import sections

        item.stash[_FAILED] = True
        found, folder = sections(namespace)
        report.sections.extend(found)
        if folder is not None:
            report.user_properties.append((_KEPT_PROPERTY, str(folder)))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    folders = {
        value
        for outcome in ("failed", "error")
        for report in terminalreporter.stats.get(outcome, [])
        for key, value in getattr(report, "user_properties", [])
        if key == _KEPT_PROPERTY
    }
    if folders:
        terminalreporter.section("tanist")
        for folder in sorted(folders):
            terminalreporter.write_line(f"data of the failed tests: {folder}")
            data = quote(folder)
            terminalreporter.write_line(f"    tanist salvage list --data {data}; tanist up --data {data}")
