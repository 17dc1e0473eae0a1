"""Random requests to a broker of Apache Kafka and to ours: fresh sequences (`python -m tests.interop.requests`)."""

from __future__ import annotations

from pathlib import Path
from random import SystemRandom

import pytest

from tests.interop.pair import pair
from tests.interop.requests.player import PROPERTIES, Player
from tests.interop.requests.sequence import drawn, shown

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

SEQUENCES = 5
STEPS = 40


def test_both_answer_the_same(tmp_path: Path) -> None:
    first = SystemRandom().randrange(1 << 40)
    with pair(tmp_path, PROPERTIES) as nodes:
        player = Player(nodes)
        for seed in range(first, first + SEQUENCES):
            steps = drawn(seed, STEPS, player.versions)
            found = [each for each in player.play(steps) if each.reason is None]
            short = player.shortened(steps, found[-1]) if found else None
            assert short is None, f"seed {seed}: {found[-1]}\n{shown(short)}"
    assert player.asked.total() >= SEQUENCES * STEPS
