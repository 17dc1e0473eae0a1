"""The page in Chromium, over a cluster that is broken and mended through it.

Where UI_SHOTS names a folder, pictures of what was seen are put there.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tanist.runtime.client import admin
from tanist.runtime.client.client import Client
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.wire.batch import NewRecord
from tests.cli.cli_rig import TANIST, free_port, run
from tests.web import browser as of_browser
from tests.web.browser import Browser

pytestmark = pytest.mark.ui

_CONFIG = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


@pytest.fixture(autouse=True, scope="module")
def _needs() -> None:
    reason = of_browser.missing()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("ui") / "data"
    cluster = LocalCluster(folder)
    cluster.up(brokers=3, controllers=1, port=free_port(), config=_CONFIG, ends_with_us=True)
    try:
        yield folder
    finally:
        cluster.down()


@contextmanager
def ui(folder: Path, port: int = 0) -> Iterator[str]:
    """The server as a process; gives the address of its page."""
    command = [*TANIST, "ui", "--data", str(folder), "--port", str(port), "--no-browser", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.wait(120)


def client(folder: Path) -> Client:
    return Client(addresses_of(load_existing(folder), folder), timeout_s=30.0)


def send(folder: Path, topic: str, values: range) -> None:
    with client(folder) as asking:
        Producer(asking).send(topic, 0, [NewRecord(value=str(value).encode()) for value in values])


def shot(browser: Browser, name: str, *, full: bool = False) -> None:
    if "UI_SHOTS" in os.environ:
        browser.do("shot", path=f"{os.environ['UI_SHOTS']}/{name}.png", full=full)


def accessible(browser: Browser) -> None:
    found = browser.do("axe")
    assert [each for each in found if each["impact"] in ("serious", "critical")] == []


def fault(browser: Browser, node: int, action: str) -> str:
    """Ask for a fault on the page, read its price, and confirm; gives the price."""
    browser.do("click", selector=f'input[name="node"][value="{node}"]')
    browser.do("click", selector=f'.faults > .buttons button:text-is("{action}")')
    if action in ("start", "heal"):
        return ""
    browser.do("wait", expression="document.querySelector('dialog[open] ul li') !== null")
    price = browser.text("dialog[open]")
    if action == "crash":
        accessible(browser)
    browser.do("click", selector="dialog[open] button.danger")
    return price


def test_a_loss_from_its_price_to_its_salvage(folder: Path, browser: Browser) -> None:
    with client(folder) as asking:
        for topic, min_isr in (("orders", "2"), ("risky", "1")):
            config = {"min.insync.replicas": min_isr, "unclean.recovery.strategy": "Aggressive"}
            admin.create_topic(asking, topic, assignment=[[1, 2, 3]], config=config)
    for topic in ("orders", "risky"):
        send(folder, topic, range(100))
    with ui(folder) as url:
        browser.do("open", url=f"{url}#p=orders/0")
        browser.do("wait", expression="document.querySelectorAll('.rail .cell').length === 3")
        browser.wait_for("on 3 replicas: 100", ".standing")
        browser.wait_for("broker 1 leads and every replica is in sync", ".why")
        accessible(browser)
        shot(browser, "healthy-light")

        assert "no acknowledged record is only here" in fault(browser, 3, "crash")
        browser.wait_for("crashed", ".rail:nth-child(3)")
        browser.wait_for("fenced", ".rail:nth-child(3)")
        assert "will refuse acks=all" in fault(browser, 2, "crash")
        browser.wait_for("ELR", ".rail:nth-child(2)")
        browser.wait_for("below min ISR", "#partition-title")

        # Fifty records that only broker 1 has.
        send(folder, "risky", range(100, 150))
        browser.do("click", selector='.row:has-text("risky-0")')
        browser.wait_for("on 1 replica: 50", ".standing")
        browser.wait_for("50 acknowledged records are only on broker 1", ".deaths")
        browser.do("look", scheme="dark")
        shot(browser, "alone-dark")
        assert "50 acknowledged records are only here (risky-0)" in fault(browser, 1, "crash")
        browser.wait_for("no leader", "#partition-title")

        # An unclean recovery by the longest log that is live, without them.
        fault(browser, 2, "start")
        browser.wait_for("unclean election in epoch", "#partition-title", timeout_s=60)
        browser.wait_for("with an unclean election", ".status")
        fault(browser, 1, "start")
        browser.wait_for("100 to 150 truncated on broker 1", "[aria-labelledby='salvage-title']", timeout_s=60)
        browser.do("click", selector="[aria-labelledby='salvage-title'] button")
        browser.wait_for("tanist salvage export --topic risky --to topic --dry-run")
        assert "149" in browser.text("[aria-labelledby='salvage-title'] table")
        accessible(browser)
        shot(browser, "salvage-dark", full=True)
        browser.do("look", width=360, height=800, scheme="light")
        wide = browser.do("eval", expression="document.documentElement.scrollWidth")
        assert wide <= 360
        shot(browser, "salvage-narrow", full=True)
        accessible(browser)
        browser.do("look", width=1280, height=900)
        shot(browser, "salvage-light")

        browser.do("wait", expression="!document.querySelector('.status').innerText.includes('all partitions healthy')")
        run("salvage", "export", "--topic", "risky", "--to", "topic", folder=folder)
        browser.wait_for("high watermark 150", ".facts")

        # The past: before the first crash all three were in sync.
        browser.do("eval", expression="document.activeElement.blur()")
        moment = browser.text(".moment")
        assert moment == "now"
        browser.do("press", keys=["["])
        browser.wait_for("the past", ".connection")
        browser.wait_for("This is the past", ".faults")
        address = browser.do("eval", expression="location.href")
        assert "at=" in address
        shot(browser, "past-light")
        said = browser.text(".moment")
        browser.do("open", url=address)
        browser.wait_for(said, ".moment")
        browser.do("press", keys=["l"])
        browser.wait_for("now", ".moment")
        assert browser.do("heard") == []


def test_the_server_comes_back_under_the_page(folder: Path, browser: Browser) -> None:
    port = free_port()
    with ui(folder, port) as url:
        browser.do("open", url=url)
        browser.wait_for("connected", ".connection")
    browser.wait_for("no connection", ".connection")
    with ui(folder, port):
        browser.wait_for("connected", ".connection", timeout_s=60)
        browser.wait_for("controller", ".status")
        # The token is that of the server before: reading goes on, faults do not.
        browser.do("click", selector='input[name="node"][value="1"]')
        browser.do("click", selector='.faults > .buttons button:text-is("pause")')
        browser.do("wait", expression="document.querySelector('dialog[open] ul li') !== null")
        browser.do("click", selector="dialog[open] button.danger")
        browser.wait_for("open the address that `tanist ui` has printed", ".faults")


def test_what_a_bootstrap_address_can_show(folder: Path, browser: Browser) -> None:
    cluster = load_existing(folder)
    addresses = ",".join(f"{host}:{at}" for host, at in addresses_of(cluster, folder))
    command = [*TANIST, "ui", "--bootstrap", addresses, "--no-browser", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        browser.do("open", url=json.loads(process.stdout.readline())["url"])
        browser.wait_for("Not to be seen here")
        browser.wait_for("orders-0", ".list")
        browser.wait_for("Clients can ask a leader for its log start and high watermark only")
        assert browser.do("eval", expression="document.querySelector('.faults') === null")
        shot(browser, "bootstrap-light")
        accessible(browser)
    finally:
        process.terminate()
        process.wait(120)


def test_rates_and_names_as_long_as_kafka_lets_them_be_on_a_narrow_page(folder: Path, browser: Browser) -> None:
    longest = "a-name." + "x" * 242
    if not load_existing(folder).node(3).alive:
        LocalCluster(folder).start(3)
    with client(folder) as asking:
        admin.create_topic(asking, longest, assignment=[[1, 2, 3]])
        admin.create_topic(asking, "short-lived", assignment=[[1, 2, 3]])
    with ui(folder) as url:
        browser.do("open", url=f"{url}#p={longest}/0", width=360, height=800)
        browser.wait_for("healthy", "#partition-title")
        browser.wait_for("0 records/s in", ".traffic")
        until_s = time.monotonic() + 60  # a rate is that of two samples, however many sends fit between them
        while browser.text(".traffic .numbers span") == "0 records/s in":
            assert time.monotonic() < until_s, browser.text(".traffic")
            send(folder, longest, range(200))
        assert browser.do("eval", expression="document.documentElement.scrollWidth") <= 360
        accessible(browser)
        shot(browser, "long-narrow", full=True)
        browser.do("look", width=1280, height=900, scheme="dark")
        accessible(browser)
        shot(browser, "traffic-dark", full=True)

        browser.do("click", selector='.row:has-text("short-lived-0")')
        browser.wait_for("short-lived-0", "#partition-title")
        with client(folder) as asking:
            admin.delete_topic(asking, "short-lived")
        browser.wait_for("topic short-lived was deleted", ".partition")
        assert browser.do("heard") == []


def test_a_bootstrap_address_at_which_nothing_listens(browser: Browser) -> None:
    command = [*TANIST, "ui", "--bootstrap", "127.0.0.1:1", "--no-browser", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        browser.do("open", url=json.loads(process.stdout.readline())["url"])
        browser.wait_for("127.0.0.1:1: Connection refused", ".problem")
        assert browser.do("heard") == []
        accessible(browser)
    finally:
        process.terminate()
        process.wait(120)


def test_a_cluster_that_goes_down_and_comes_back(folder: Path, browser: Browser) -> None:
    with ui(folder) as url:
        browser.do("open", url=f"{url}#p=orders/0")
        browser.wait_for("3 of 3 brokers", ".status", timeout_s=60)
        LocalCluster(folder).down()
        browser.wait_for("the cluster is down: this is what was last committed", ".problem")
        browser.wait_for("0 of 3 brokers", ".status")
        browser.wait_for("stopped", ".rails")
        accessible(browser)
        LocalCluster(folder).up(ends_with_us=True)
        browser.do("wait", expression="document.querySelector('.problem') === null", timeout_ms=60000)
        browser.wait_for("3 of 3 brokers", ".status", timeout_s=60)
        assert browser.do("heard") == []
