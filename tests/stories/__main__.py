"""Play stories at a terminal, and say how long each took: `python -m tests.stories [NAME ...]`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.interop.cluster import interrupt_on_sigterm
from tests.stories.engine import perform
from tests.stories.prompt import Prompt
from tests.stories.stage import LiveStage

FOLDER = Path(__file__).parent
SUFFIX = ".story.txt"


def main(names: list[str]) -> int:
    interrupt_on_sigterm()
    known = sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))
    unknown = set(names) - set(known)
    if unknown:
        print(f"no story is called {', '.join(sorted(unknown))}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    prompt = Prompt()
    try:
        for name in names or known:
            print(f"==== {name}", flush=True)
            began_s = last_s = time.monotonic()
            with tempfile.TemporaryDirectory(prefix=f"story-{name}-") as folder:
                stage = LiveStage(Path(folder), prompt)

                def tell(line: str) -> None:
                    nonlocal last_s
                    now_s = time.monotonic()
                    took = f"{now_s - last_s:6.2f} s" if now_s - last_s > 0.1 else " " * 8
                    print(f"{took}  {line}", flush=True)
                    last_s = now_s

                try:
                    perform((FOLDER / f"{name}{SUFFIX}").read_text(encoding="utf-8"), stage, tell)
                finally:
                    stage.close()
            print(f"==== {name}: {time.monotonic() - began_s:.1f} s", flush=True)
    finally:
        prompt.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
