"""A cluster of Apache Kafka that has lost a leader for good, and gets its records back under a controller of tanist.

`STORIES=rewrite` writes down what was printed, as for the stories of `tests/stories`.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.interop.migrate.apache_stage import ApacheStage
from tests.stories.engine import compare, perform
from tests.stories.prompt import Prompt

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

STORY = Path(__file__).with_name("leader-lost-for-good.story.txt")


def test_a_leader_that_is_lost_for_good(tmp_path: Path) -> None:
    written = STORY.read_text()
    with closing(Prompt()) as prompt, closing(ApacheStage(tmp_path, prompt)) as stage:
        played = perform(written, stage, print)
    if os.environ.get("STORIES") == "rewrite":
        STORY.write_text(played)
    else:
        compare(written, played)
