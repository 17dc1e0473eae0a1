"""Chromium, driven through `web/test/drive.mjs`: one command after the other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

WEB = Path(__file__).parents[2] / "web"


def missing() -> str | None:
    """Why there can be no browser here."""
    if _chromium() is None:
        return "there is no Chromium (Debian: apt-get install chromium; or name one in CHROMIUM)"
    if shutil.which("node") is None:
        return "there is no Node.js"
    if not (WEB / "node_modules" / "playwright-core").is_dir():
        return "web/node_modules is missing: cd web && npm ci"
    return None


def _chromium() -> str | None:
    found = [os.environ.get("CHROMIUM"), *map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))]
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    found += map(str, sorted(cache.glob("chromium-*/chrome-linux*/chrome")))
    return next((each for each in found if each), None)


class Browser:
    """One browser with one page."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["node", "test/drive.mjs", _chromium() or "chromium"],
            cwd=WEB,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)

    def do(self, command: str, **given: Any) -> Any:
        """Give a command; `AssertionError` with what the browser says, if it cannot be done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, **given}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, f"{command} {given}: {answer['error']}\n{self._seen()}"
        return answer["result"]

    def _seen(self) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": "eval", "expression": "document.body.innerText"}) + "\n")
        self._process.stdin.flush()
        return str(json.loads(self._process.stdout.readline()).get("result", ""))[:4000]

    def text(self, selector: str = "body") -> str:
        found = self.do("eval", expression=f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return str(found)

    def wait_for(self, text: str, selector: str = "body", *, timeout_s: float = 40.0) -> None:
        """Until the text is to be read there."""
        wanted = f"(document.querySelector({json.dumps(selector)})?.innerText ?? '').includes({json.dumps(text)})"
        self.do("wait", expression=wanted, timeout_ms=round(timeout_s * 1000))
