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
from urllib.parse import urlencode

import pytest

from tanist.lab.plays import PLAYS
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
    heard = "addEventListener('hashchange', () => done(0), {once: true})"
    browser.do("eval", expression=f"new Promise((done) => {{ {heard}; location.hash = {hash_!r} }})")
    browser.do(
        "wait",
        expression="document.querySelector('.connection').innerText.endsWith('recorded')",
        timeout_ms=LOAD_S * 1000,
    )


_STEP_IN_SIGHT = """(() => {
    const step = document.querySelector(".steps [aria-current]").getBoundingClientRect();
    const list = document.querySelector(".steps").getBoundingClientRect();
    return step.bottom <= list.bottom + 1 && step.top >= list.top - 1;
})()"""


def to_hash(request: dict[str, Any], **more: object) -> str:
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
    # The time line's thumb and the list of steps are where the story is.
    browser.do("wait", expression="(({value, max}) => value === max)(document.querySelector('.player input'))")
    browser.do("wait", expression=_STEP_IN_SIGHT)
    assert browser.do("heard") == []


def test_seeds_have_the_digests_of_the_command_line(browser: Browser) -> None:
    first, last = map(int, SEEDS.split(".."))
    for seed in range(first, last + 1):
        (line,) = play_seeds.lines([f"chaos:{seed}"])
        _, events, _, digest, *_ = line.split()
        go(browser, f"s=seed&seed={seed}&t=0")
        browser.wait_for(digest, ".digest")
        assert browser.text(".status").startswith(f"digest {digest}\n{int(events):,} events")


def shown(browser: Browser) -> dict[str, str]:
    """What a page shows of a moment."""
    return {
        each: browser.text(each) for each in (".digest", ".said", ".partition", ".player .moment", ".lane", ".faults")
    }


def test_a_link_shows_the_same_moment_in_another_browser(browser: Browser, address: str) -> None:
    go(browser, "s=your-own&min.insync.replicas=2&strategy=None&elr=on&t=3000")
    browser.do("click", selector='input[name="node"][value="1"]')
    browser.do("click", selector='.faults > .buttons button:text-is("power loss")')
    browser.do("wait", expression="document.querySelector('dialog[open] ul li') !== null")
    assert "orders-0: " in browser.text("dialog[open]")
    accessible(browser)
    browser.do("click", selector="dialog[open] button.danger")
    browser.wait_for("whole run recorded", ".connection", timeout_s=LOAD_S)
    browser.wait_for("node 1 loses its power, and what was not synced is gone", ".steps")
    browser.do("click", selector='.steps button:has-text("node 1 loses its power")')
    browser.do("press", keys=[","])
    browser.do("wait", expression="new URLSearchParams(location.hash.slice(1)).get('t') > 3000")
    link = browser.do("eval", expression="location.href")
    assert "a=3000000.power-loss.1" in link
    here = shown(browser)
    assert "crashed" in here[".partition"]
    with Browser() as another:
        another.do("open", url=link)
        another.wait_for("whole run recorded", ".connection", timeout_s=LOAD_S)
        another.do("click", selector='input[name="node"][value="1"]')
        assert shown(another) == here
        assert another.do("eval", expression="location.href") == link
        assert another.do("heard") == []


_STEPS = "[...document.querySelectorAll('.steps button')].map((each) => each.innerText)"
_SLOWEST = """(() => {
    const speed = document.querySelector('.speed select');
    speed.selectedIndex = 0;
    speed.dispatchEvent(new Event('change', {bubbles: true}));
})()"""


def slowest(browser: Browser) -> None:
    browser.do("eval", expression=_SLOWEST)


def test_keys_move_through_the_run(browser: Browser) -> None:
    go(browser, "s=divergence&divergence=found&t=0")
    browser.do("eval", expression="document.activeElement.blur()")
    steps = browser.do("eval", expression="document.querySelectorAll('.steps button').length")
    seen = []
    for _ in range(steps):
        browser.do("press", keys=["]"])
        seen.append(browser.text(".steps button[aria-current]"))
    assert seen == browser.do("eval", expression=_STEPS)
    at_the_end = browser.text(".player .moment")
    browser.do("press", keys=[","])
    before = browser.text(".player .moment")
    assert before != at_the_end
    browser.do("press", keys=["."])
    assert browser.text(".player .moment") == at_the_end
    slowest(browser)
    browser.do("press", keys=["[", "[", "k"])
    assert browser.text(".player .play") == "pause"
    browser.do("press", keys=["k"])
    assert browser.text(".player .play") == "play"


def test_the_page_is_legible_to_everyone(browser: Browser) -> None:
    go(browser, "s=last-replica-standing&elr=off&t=6600")
    for scheme in ("light", "dark"):
        for width, height in ((1280, 900), (360, 800)):
            browser.do("look", width=width, height=height, scheme=scheme)
            browser.do("wait", expression=f"innerWidth === {width}")
            accessible(browser)
            assert browser.do("eval", expression="document.documentElement.scrollWidth") <= width
            shot(browser, f"lab-{scheme}-{width}", full=width < 500)
    browser.do("look", width=1280, height=900, scheme="light")
    go(browser, "s=last-replica-standing&elr=off&t=3600000")
    browser.do("click", selector="[aria-labelledby='salvage-title'] button")
    browser.wait_for("150", "[aria-labelledby='salvage-title'] table")
    accessible(browser)
    shot(browser, "lab-salvage", full=True)
    go(browser, "s=seed&seed=3&t=9000")
    accessible(browser)
    shot(browser, "lab-seed", full=True)


def test_it_plays_to_the_end_by_itself(browser: Browser) -> None:
    go(browser, "s=high-watermark")
    browser.wait_for("nothing is lost", ".said", timeout_s=LOAD_S)
    assert browser.text(".player .play") == "play"
    assert browser.do("heard") == []


def test_a_link_to_nothing_says_so(browser: Browser) -> None:
    go(browser, "s=hamlet")
    browser.wait_for("there is no play 'hamlet'", ".refused")
    said = browser.text(".refused")
    assert [play.title for play in PLAYS.values() if play.title not in said] == []
    accessible(browser)
    for width, height, scheme in ((1280, 900, "light"), (400, 800, "dark")):
        browser.do("look", width=width, height=height, scheme=scheme)
        shot(browser, f"lab-refused-{width}", full=True)
    browser.do("look", width=1280, height=900, scheme="light")
    browser.do("click", selector=".refused a")
    browser.wait_for("nothing is lost", ".steps", timeout_s=LOAD_S)


def test_what_came_of_a_step_stands_below_it(browser: Browser) -> None:
    go(browser, "s=unclean-recovery&strategy=Balanced&t=3000")
    browser.wait_for("broker 1 loses its power", ".said")
    browser.wait_for("broker 1 is the leader in the metadata only", ".why")
    shot(browser, "lab-recovery-3000", full=True)
    go(browser, "s=unclean-recovery&strategy=Balanced&t=5061")
    browser.wait_for("4.063 s no leader: ISR is empty; broker 2 is eligible (ELR) but fenced", ".said .found")
    accessible(browser)
    shot(browser, "lab-recovery-5061", full=True)
    browser.do("look", width=400, height=800, scheme="dark")
    shot(browser, "lab-recovery-5061-400-dark", full=True)
    browser.do("look", width=1280, height=900, scheme="light")
