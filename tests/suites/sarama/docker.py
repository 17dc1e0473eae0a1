#!/usr/bin/env python3
"""`docker compose start|stop|logs|exec kafka-N`, as sarama's tests call it, without containers.

Nodes are started and stopped by the runner, at SUITES_NODES; tools are Apache Kafka's, at SUITES_TOOLS (JSON: commands
by the name of their script), and reach the node at SUITES_BROKER.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.request import urlopen


def main(arguments: list[str]) -> int:
    what, *rest = arguments
    if what in ("start", "stop", "logs"):
        with urlopen(f"{os.environ['SUITES_NODES']}/{what}/{rest[-1]}", timeout=120) as answer:
            sys.stdout.buffer.write(answer.read())
        return 0
    if what == "exec":
        script, *options = rest[rest.index("kafka-1") + 1 :]
        command = json.loads(os.environ["SUITES_TOOLS"])[Path(script).name]
        command += [os.environ["SUITES_BROKER"] if each == "kafka-1:9091" else each for each in options]
        os.execvp(command[0], command)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
