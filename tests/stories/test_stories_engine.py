"""The engine of the stories, without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.engine import StoryDiffers, StoryError, compare, perform
from tests.stories.plain import plain
from tests.stories.prompt import Prompt
from tests.stories.stage import LiveStage


class Echo:
    """Prints its commands."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def run(self, command: str) -> str:
        self.commands.append(command)
        if command == "break":
            raise TimeoutError("it never came")
        return f"{command}!\nagain {command}!"


STORY = """Some prose.

$ one
    one!
    again one!

More prose.

$ two
    two!
    again two!
"""


def test_a_story_that_is_true_comes_out_as_it_was() -> None:
    stage = Echo()
    played = perform(STORY, stage)
    assert stage.commands == ["one", "two"]
    compare(STORY, played)


def test_output_is_written_anew() -> None:
    printed: list[str] = []
    untrue = STORY.replace("    two!\n", "    three!\n    and more\n")
    played = perform(untrue, Echo(), printed.append)
    assert played == STORY
    assert printed == STORY.splitlines()
    with pytest.raises(StoryDiffers, match="-    three!"):
        compare(untrue, played)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("$ break\n", "line 1, `\\$ break`: TimeoutError: it never came"),
        ("Prose.\n  that is indented\n", "line 2: output without a command"),
        ("Prose.\n", "no command in it"),
    ],
)
def test_what_cannot_be_played_is_no_story(text: str, complaint: str) -> None:
    with pytest.raises(StoryError, match=complaint):
        perform(text, Echo())


def test_what_varies_is_made_the_same_and_nothing_else() -> None:
    printed = (
        "port 9092 is taken: using 9099\n"
        "ready in 1.45 s: 3 brokers at 127.0.0.1:9099,127.0.0.1:9093, controller 1003, data in /tmp/x/tanist-data\n"
        "\n"
        "Topic: t\tTopicId: 97dqGQLCSP2NA-CvanwxCg\tPartitionCount: 1\n"
        "\tPartition: 0\tLeader: 2\tReplicas: 2,1,10\tIsr: 10,2,1\tElr: \tLastKnownElr: 3,2\n"
        "[2026-11-21 19:30:39,255] WARN t-0 is led by 3 from leader epoch 7 on {1: epoch 2 end 100}\n"
        "36499 bytes in 2 files were not synced and are lost\n"
        "waiting for node 2: its registration in the metadata log\n"
        "1795290127894-2-1  orders-0  2  100..149  0  50  561  unclean-election  2026-11-21 19:30:39\n"
    )
    assert plain(printed).splitlines() == [
        "ready in T s: 3 brokers at HOST:PORT, controller N, data in ./tanist-data",
        "Topic: t  TopicId: ID  PartitionCount: 1",
        "  Partition: 0  Leader: 2  Replicas: 2,1,10  Isr: 1,2,10  Elr:   LastKnownElr: 2,3",
        "WARN t-0 is led by 3 from leader epoch E on {1: epoch E end 100}",
        "N bytes in N files were not synced and are lost",
        "ENTRY-2-1  orders-0  2  100..149  0  50  561  unclean-election  TIME",
    ]


def test_the_prompt_runs_the_command_line(tmp_path: Path) -> None:
    prompt = Prompt()
    try:
        printed, code = prompt.run(["--version"], folder=tmp_path, environment={})
        assert (printed.startswith("tanist, version"), code) == (True, 0)
        printed, code = prompt.run(["status"], folder=tmp_path, environment={"TANIST_DATA": "elsewhere"})
        assert code == 1
        assert "elsewhere" in printed
        printed, code = prompt.run(["nonsense"], folder=tmp_path, environment={})
        assert code == 2
    finally:
        prompt.close()


@pytest.mark.parametrize("command", ["wait-until t", "wait-until t leader", "wait-until t colour=red"])
def test_a_wait_without_a_condition_would_wait_for_nothing(tmp_path: Path, command: str) -> None:
    prompt = Prompt()
    try:
        with pytest.raises(ValueError, match="condition"):
            LiveStage(tmp_path, prompt).run(command)
    finally:
        prompt.close()
