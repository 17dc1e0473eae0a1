"""Two thousand strangers who say nothing, and two thousand who stop half way, at a node in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import crowd
from tests.runtime.guarded_node import GuardedNode


@pytest.mark.long
def test_thousands_of_strangers_keep_nobody_out(tmp_path: Path) -> None:
    node = GuardedNode(tmp_path, connections__max__idle__ms=str(crowd.IDLE_MS))
    try:
        node.start()
        print(crowd.run(node, 2_000, 2_000))
    finally:
        node.process.stop()
