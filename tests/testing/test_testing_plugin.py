"""The pytest plugin as a test suite meets it: options, fixtures, the report of a failure, what it costs unused."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tanist.runtime.cluster.cluster import LocalCluster as RunningCluster
from tanist.testing import Cluster

FAILING = """
    from tanist.testing import in_sync

    def test_loses(kafka):
        topic = kafka.create_topic(kafka.topic("orders"), assignment=[(2, 1)])
        kafka.crash(2)
        kafka.wait_until(topic=topic, isr=1)
        kafka.slow([1], ["clients"], latency_s=0.001)
        with kafka.delay_on("DESCRIBE_TOPIC_PARTITIONS", 0.001).including_nodes().once() as fault:
            kafka.partition_state(topic)
            fault.wait_for_hits(1)
        kafka.inject_error("PRODUCE", "NOT_ENOUGH_REPLICAS").times(2)
        assert False, "lost"

    def test_after(kafka):
        assert kafka.down == ()
        assert kafka.faults() == []
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


def test_a_test_s_topics_and_groups_are_gone_after_it(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("""
        [tool.pytest.ini_options]
        tanist_brokers = "2"
        tanist_min_isr = "1"
        tanist_config = ["num.partitions=3"]
    """)
    pytester.makepyfile("""
        from tanist.runtime.client.client import Client, parse_bootstrap
        from tanist.runtime.client.groups import commit_offsets

        names = set()

        def make(kafka):
            topic = kafka.create_topic(kafka.topic("orders"))
            other = kafka.create_topic("made-by-the-application")
            with Client(parse_bootstrap(kafka.bootstrap)) as client:
                commit_offsets(client, kafka.group("readers"), {(topic, 0): 0})
            assert sorted(kafka.topics()) == sorted([topic, other])
            assert kafka._all_groups() == [kafka.group("readers")]
            names.add(topic)

        def test_one(kafka, kafka_cluster):
            assert len(kafka.brokers) == 2
            make(kafka)

        def test_two(kafka):
            make(kafka)
            assert len(names) == 2

        def test_three(kafka_cluster):
            assert kafka_cluster.topics() == []
    """)
    run(pytester).assert_outcomes(passed=3)


@pytest.mark.long
def test_a_failure_s_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING)
    result = run(pytester, "--tanist-brokers", "2", "--tanist-min-isr=1")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*tanist: what happened*",
            "* orders-??????-0 * created: leader 2, replicas {2, 1}, ISR {2, 1}",
            "* test * crash(2)",
            "* orders-??????-0 * leader 2 -> 1 (epoch 1), ISR {1}*",
            "* test * fault: between 1 and clients: 1 ms of latency",
            "* test * fault: rule *: the answer to DESCRIBE_TOPIC_PARTITIONS is held back for 1 ms, once",
            "* test * fault ended: rule *: the answer to DESCRIBE_TOPIC_PARTITIONS * (1 hit of ? call*)",
            "*tanist: partitions now*",
            "orders-??????-0: leader 1 (epoch 1), ISR {1}*",
            "*tanist: faults in force*",
            "between 1 and clients: 1 ms of latency",
            "rule *: PRODUCE is refused with NOT_ENOUGH_REPLICAS, 2 times (0 hits of 0 calls)",
            "node 2 is down",
            "*tanist: data folder*",
            "*tanist*",
            "data of the failed tests: *",
        ]
    )
    folder = Path(re.findall(r"data of the failed tests: (\S+)", result.stdout.str())[0])
    try:
        with Cluster(folder=folder) as kept:
            assert [name for name in kept.topics() if name.startswith("orders-")]
    finally:
        RunningCluster(folder).down(wipe=True)


@pytest.mark.long
def test_a_lost_quorum_is_said(pytester: pytest.Pytester) -> None:
    """Two of three combined nodes are the quorum: without them nothing is elected, and no wait comes to its end."""
    pytester.makepyfile("""
        def test_waits(kafka):
            topic = kafka.create_topic(kafka.topic("orders"))
            kafka.crash(1, 2)
            kafka.wait_until(topic=topic, isr=9, timeout=15)
    """)
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*NotInTime: not within 15 s: *; no quorum: no broker has heard from a controller for *",
            "*tanist: no quorum*",
            "no quorum: 1 of 3 controllers works, and 2 are needed: `tanist start 1`",
            "*tanist: what happened*",
        ]
    )
    (folder,) = re.findall(r"data of the failed tests: (\S+)", result.stdout.str())
    RunningCluster(Path(folder)).down(wipe=True)


def test_nothing_is_kept_of_a_run_that_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_passes(kafka):
            open("folder", "w").write(str(kafka.data))
    """)
    result = run(pytester, "--tanist-brokers=1", "--tanist-config", "num.partitions=2")
    result.assert_outcomes(passed=1)
    assert "data of the failed tests" not in result.stdout.str()
    assert not Path((pytester.path / "folder").read_text()).exists()


def test_a_temporary_folder_of_any_name(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jenkins names folders `label=linux,python=3.11`."""
    place = tmp_path / "label=linux,python=3.11 #\\é"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    pytester.makepyfile("""
        def test_one(kafka):
            kafka.create_topic(kafka.topic("orders"))
    """)
    run(pytester, "--tanist-brokers", "2").assert_outcomes(passed=1)
    assert list(place.iterdir()) == []
    assert list(tmp_path.iterdir()) == [place]


def test_the_commands_of_a_report_can_be_copied(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "it's a folder"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    pytester.makepyfile("""
        def test_one(kafka):
            assert not kafka.create_topic(kafka.topic("orders"))
    """)
    printed = run(pytester, "--tanist-brokers=1").stdout.str()
    (folder,) = place.iterdir()
    RunningCluster(folder).down(wipe=True)
    (in_section,) = re.findall(r"kept: `(.*?)` starts", printed)
    (listing,) = re.findall(r"(tanist salvage list .*); tanist up", printed)
    assert [shlex.split(line)[-1] for line in (in_section, listing)] == [str(folder)] * 2


def test_reuse_keeps_the_cluster_between_runs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_it(kafka):
            with open("clusters", "a") as file:
                file.write(kafka.bootstrap + "\\n")
    """)
    try:
        for _ in range(2):
            run(pytester, "--tanist-brokers=1", "--tanist-reuse=cluster").assert_outcomes(passed=1)
        first, second = (pytester.path / "clusters").read_text().split()
        assert first == second
    finally:
        RunningCluster(pytester.path / "cluster").down(wipe=True)


@pytest.mark.long
def test_two_runs_at_once_on_one_cluster_take_turns(pytester: pytest.Pytester) -> None:
    """Each deletes what was made during its tests, and may break what it likes."""
    pytester.makepyfile("""
        import os, pathlib, time

        def test_it(kafka):
            kafka.create_topic("mine")
            pathlib.Path(f"in-{os.getpid()}").touch()
            deadline = time.monotonic() + 3  # the other one is on its way, and must not come in
            while time.monotonic() < deadline and len(list(pathlib.Path().glob("in-*"))) < 2:
                time.sleep(0.05)
            assert kafka.topics() == ["mine"]
    """)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tanist-brokers=1", "--tanist-reuse=cluster"]
    runs = [
        subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    try:
        said = [each.communicate(timeout=300)[0] for each in runs]
        assert [each.returncode for each in runs] == [0, 0], "\n".join(said)
        assert sum("waiting for another run of tests (process " in each for each in said) == 1
    finally:
        for each in runs:
            each.kill()
        RunningCluster(pytester.path / "cluster").down(wipe=True)
    assert not (pytester.path / "cluster").exists()


def test_another_kafka_says_which_faults_are_not_to_be_had(pytester: pytest.Pytester, kafka_cluster: Cluster) -> None:
    pytester.makepyfile("""
        created = []

        def test_crash(kafka):
            created.append(kafka.create_topic(kafka.topic("skipped")))
            kafka.crash(1, lose="page-cache")

        def test_topics(kafka):
            assert len(created) == 1
            assert created[0] not in kafka.topics()
    """)
    result = run(pytester, f"--tanist-bootstrap={kafka_cluster.bootstrap}", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*crash: only clusters that tanist.testing has started can kill a node*"])
    assert [name for name in kafka_cluster.topics() if name.startswith("skipped-")] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tanist-brokers=three"], "--tanist-brokers three: give a number"),
        (["--tanist-config=flush.messages"], "--tanist-config flush.messages: give KEY=VALUE"),
        (
            ["--tanist-config=num.partition=1"],
            "num.partition is not a setting of a broker; did you mean num.partitions",
        ),
        (["--tanist-bootstrap=localhost:1"], "no broker answers"),
    ],
)
def test_wrong_options_are_one_line(pytester: pytest.Pytester, arguments: list[str], message: str) -> None:
    pytester.makepyfile("def test_it(kafka): pass")
    result = run(pytester, *arguments)
    result.assert_outcomes(errors=1)
    assert message in result.stdout.str() + result.stderr.str()
    assert "Traceback" not in result.stdout.str()


def test_the_plugin_costs_nothing_unused() -> None:
    program = "import sys, pytest; old = set(sys.modules); import tanist.testing.plugin; print(*set(sys.modules) - old)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert sorted(found.split()) == ["tanist", "tanist.testing", "tanist.testing.plugin"]


def test_each_worker_of_xdist_has_a_cluster(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_it(kafka, number, worker_id):
            with open(f"cluster-{worker_id}", "a") as file:
                file.write(kafka.bootstrap + "\\n")
    """)
    run(pytester, "-n2", "--tanist-brokers=1").assert_outcomes(passed=4)
    seen = [set(path.read_text().split()) for path in pytester.path.glob("cluster-*")]
    assert all(len(clusters) == 1 for clusters in seen)
    assert len(set().union(*seen)) == len(seen)
    shutil.rmtree(pytester.path)
