"""`docker compose start|stop|logs kafka-N`, as sarama's tests call it: the runner does it, at SUITES_NODES."""

from __future__ import annotations

import os
import sys
from urllib.request import urlopen

what, *_, node = sys.argv[2:]
if what not in ("start", "stop", "logs"):
    sys.exit(f"there is no container for {what}")
with urlopen(f"{os.environ['SUITES_NODES']}/{what}/{node}", timeout=120) as answer:
    sys.stdout.buffer.write(answer.read())
