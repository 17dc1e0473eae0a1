"""Ten thousand partitions live: the page is usable, and the server and the page stay small."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.runtime.client.changes import ask_once
from tanist.runtime.client.client import Client
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreateTopicsResponse
from tests.cli.cli_rig import TANIST, free_port
from tests.web import browser as of_browser
from tests.web.browser import Browser

pytestmark = [pytest.mark.ui, pytest.mark.slow]

TOPICS, PARTITIONS, AT_ONCE = 100, 100, 5
# A session that lasts: a busy machine must not fence brokers that open thousands of logs.
_CONFIG = {"offsets.topic.num.partitions": "1", "broker.session.timeout.ms": "30000"}
_CLICK_ON_THE_FIRST_SQUARE = """(() => {
    const map = document.querySelector("canvas");
    const at = map.getBoundingClientRect();
    map.dispatchEvent(new MouseEvent("click", { clientX: at.x + 3, clientY: at.y + 3, bubbles: true }));
})()"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    reason = of_browser.missing()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("ui") / "data"
    cluster = LocalCluster(folder)
    cluster.up(brokers=3, controllers=1, port=free_port(), config=_CONFIG, ends_with_us=True)
    try:
        with Client(addresses_of(load_existing(folder), folder), timeout_s=120.0) as client:
            for first in range(0, TOPICS, AT_ONCE):
                # 9,500 replicas a broker: each is an open file, and there are limits of 10,000.
                topics = tuple(
                    CreatableTopic(
                        name=f"topic-{number:03d}",
                        num_partitions=PARTITIONS,
                        replication_factor=3 if number % 20 < 17 else 2,
                        assignments=(),
                        configs=(),
                    )
                    for number in range(first, first + AT_ONCE)
                )
                request = CreateTopicsRequest(topics=topics, timeout_ms=100_000, validate_only=False)
                answer = ask_once(client, request, CreateTopicsResponse, 120.0)
                assert {each.error_code for each in answer.topics} == {0}, answer.topics
        yield folder
    finally:
        cluster.down()


class Server:
    """`tanist ui` as a process, and what it costs."""

    def __init__(self, folder: Path, port: int) -> None:
        command = [*TANIST, "ui", "--data", str(folder), "--port", str(port), "--no-browser", "--json"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = str(json.loads(self._process.stdout.readline())["url"])

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> int:
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(120)


def shares(server: Server, browser: Browser, for_s: float) -> tuple[float, float]:
    """Of one core, in percent: the server's and the page's."""
    before, page = server.cpu_s(), browser.do("busy")["TaskDuration"]
    began = time.monotonic()
    time.sleep(for_s)  # nothing happens meanwhile: that is what is measured
    took = time.monotonic() - began
    return (server.cpu_s() - before) / took * 100, (browser.do("busy")["TaskDuration"] - page) / took * 100


def test_ten_thousand_partitions(folder: Path) -> None:
    port = free_port()
    server = Server(folder, port)
    try:
        with Browser() as browser:
            browser.do("open", url=server.url)
            browser.wait_for("10,000 healthy", ".summary", timeout_s=300)
            browser.do("fill", selector="#filter", text="topic-042-7")
            browser.wait_for("11 healthy", ".summary")
            browser.do("click", selector='.row:has-text("topic-042-77")')
            browser.wait_for("topic-042-77", "#partition-title")
            browser.do("wait", expression="document.querySelectorAll('.rail svg').length >= 2", timeout_ms=60_000)
            browser.do("fill", selector="#filter", text="")
            browser.wait_for("10,000 healthy", ".summary")
            browser.do("eval", expression=_CLICK_ON_THE_FIRST_SQUARE)
            browser.wait_for("topic-000-0", "#partition-title")

            of_server, of_page = shares(server, browser, 20)
            assert of_server < 5, of_server
            assert of_page < 5, of_page
            assert browser.do("heap") < 50e6
            assert server.resident_mb() < 100, server.resident_mb()
            print(f"idle: server {of_server:.2f} %, page {of_page:.2f} %, {server.resident_mb()} MB")

            browser.do("click", selector='input[name="node"][value="3"]')
            browser.do("click", selector='.faults > .buttons button:text-is("crash")')
            browser.do("wait", expression="document.querySelector('dialog[open] ul li') !== null", timeout_ms=90_000)
            assert "another leader" in browser.text("dialog[open]")
            browser.do("click", selector="dialog[open] button.danger")
            browser.wait_for("8,500 at min ISR", ".summary", timeout_s=200)
            browser.wait_for("more partitions changed", ".events", timeout_s=60)

            server.end()
            browser.wait_for("no connection", ".connection")
            server = Server(folder, port)
            browser.wait_for("8,500 at min ISR", ".summary", timeout_s=300)
            assert browser.do("heard") in ([], ["Failed to load resource: net::ERR_CONNECTION_REFUSED"])

            # It has 9,500 logs to recover, and the limit of open files that it had.
            LocalCluster(folder).start(3, patience_s=300)
            browser.wait_for("10,000 healthy", ".summary", timeout_s=300)
            print(f"after all of it: {server.resident_mb()} MB, heap {browser.do('heap') / 1e6:.1f} MB")
    finally:
        server.end()
