"""Lets the tests of this room import `log_disks` and `log_batches`, which lie beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
