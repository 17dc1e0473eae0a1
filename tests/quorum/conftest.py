"""The room's test kit (`quorum_network`, `quorum_checker`) is imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
