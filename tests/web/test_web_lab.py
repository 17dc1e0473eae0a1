"""The lab in the browser: its page in Chromium, from a static folder, with the nodes' code under Pyodide.

LAB_SEEDS=1..100 compares so many seeds' digests with those of this interpreter. Where UI_SHOTS names a folder, pictures
of what was seen are put there.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.interpreters import play_seeds
from tests.web import browser as of_browser
from tests.web.browser import WEB, Browser
from tests.web.test_web_simulated import ENDS, chosen

pytestmark = pytest.mark.ui

ROOT = WEB.parent
LOAD_S = 240.0
"""For Python and its first run, on a machine that is busy with other things."""
SEEDS = os.environ.get("LAB_SEEDS", "2..4")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The lab's folder, built and served by nothing but a server of files, below a path of its own."""
    reason = of_browser.missing()
    if reason is not None:
        pytest.skip(reason)
    if not (WEB / "node_modules" / "pyodide").is_dir():
        pytest.skip("web/node_modules has no pyodide: cd web && npm ci")
    site = tmp_path_factory.mktemp("site")
    folder = site / "lab"
    build = ["npx", "vite", "build", "--config", "vite.lab.config.ts", "--logLevel", "error", "--outDir", str(folder)]
    subprocess.run(build, cwd=WEB, check=True, timeout=600)
    command = [sys.executable, str(ROOT / "tools" / "weblab.py"), str(folder), str(WEB / "node_modules" / "pyodide")]
    subprocess.run(command, check=True, timeout=600)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/lab/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Browser]:
    """With the lab's page open, and Python in it."""
    with Browser() as found:
        found.do("open", url=address)
        found.do("wait", expression="document.querySelectorAll('.rail .cell').length > 0", timeout_ms=LOAD_S * 1000)
        yield found


def go(browser: Browser, hash_: str) -> None:
    """To another run, in the page that is open, and wait for its end."""
    browser.do("eval", expression=f"location.hash = {hash_!r}; document.body.dataset.waits = 1; 0")
    browser.do(
        "wait",
        expression="document.querySelector('.connection').innerText === 'whole run recorded'",
        timeout_ms=LOAD_S * 1000,
    )


def to_hash(request: dict[str, Any], **more: object) -> str:
    from urllib.parse import urlencode

    fields = {"s": request["name"], **request.get("settings", {}), **more}
    return urlencode(fields)


def accessible(browser: Browser) -> None:
    found = browser.do("axe")
    assert [each for each in found if each["impact"] in ("serious", "critical")] == []


def shot(browser: Browser, name: str, *, full: bool = False) -> None:
    if "UI_SHOTS" in os.environ:
        browser.do("shot", path=str(Path(os.environ["UI_SHOTS"]) / f"{name}.png"), full=full)


@pytest.mark.parametrize(("name", "choice"), list(ENDS))
def test_a_play_ends_as_written(browser: Browser, name: str, choice: str) -> None:
    go(browser, to_hash(chosen(name, choice), t=3_600_000))
    browser.wait_for(ENDS[name, choice], ".said")
    assert browser.do("heard") == []


def test_seeds_have_the_digests_of_the_command_line(browser: Browser) -> None:
    first, last = map(int, SEEDS.split(".."))
    for seed in range(first, last + 1):
        (line,) = play_seeds.lines([f"chaos:{seed}"])
        _, events, _, digest, *_ = line.split()
        go(browser, f"s=seed&seed={seed}&t=0")
        browser.wait_for(digest, ".digest")
        assert browser.text(".status").startswith(f"digest {digest}\n{int(events):,} events")
