"""Each `*.story.txt` here is a test, marked `stories`: `make stories`, or `pytest -m stories tests/stories`.

`STORIES=rewrite make stories` writes what was printed into the files. Read the difference before you commit it: it is a
change of behaviour, or it would not be there. `python -m tests.stories NAME` plays one at a terminal.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.cluster import interrupt_on_sigterm
from tests.stories.engine import StoryDiffers, StoryError, compare, perform
from tests.stories.prompt import Prompt
from tests.stories.stage import LiveStage

interrupt_on_sigterm()

SUFFIX = ".story.txt"
_PROMPT = pytest.StashKey[Prompt]()


class StoryItem(pytest.Item):
    """One story, as a test."""

    def runtest(self) -> None:
        if _PROMPT not in self.config.stash:
            self.config.stash[_PROMPT] = Prompt()
        written = self.path.read_text(encoding="utf-8")
        folder = Path(tempfile.mkdtemp(prefix=f"story-{self.name}-"))
        stage = LiveStage(folder, self.config.stash[_PROMPT])
        try:
            played = perform(written, stage)
            if played != written and os.environ.get("STORIES") == "rewrite":
                self.path.write_text(played, encoding="utf-8")
            else:
                compare(written, played)
        except (StoryError, StoryDiffers) as failure:
            failure.add_note(f"the cluster's folder, with its nodes' logs, is kept: {folder}")
            raise
        finally:
            stage.close()
        shutil.rmtree(folder)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, StoryError | StoryDiffers):
            notes = getattr(excinfo.value, "__notes__", [])
            return "\n".join([f"{self.path.name}: {excinfo.value}", *notes])
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"story {self.name}"


class StoryFile(pytest.File):
    def collect(self) -> Iterator[StoryItem]:
        item = StoryItem.from_parent(self, name=self.path.name.removesuffix(SUFFIX))
        item.add_marker(pytest.mark.stories)
        yield item


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name.endswith(SUFFIX):
        return StoryFile.from_parent(parent, path=file_path)
    return None


def pytest_unconfigure(config: pytest.Config) -> None:
    prompt = config.stash.get(_PROMPT, None)
    if prompt is not None:
        prompt.close()
