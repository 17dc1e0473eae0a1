"""Lets the tests of this room import `replica_stage` and `replica_mutants`, which lie beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
