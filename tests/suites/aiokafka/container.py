"""The node that aiokafka's tests expect in a container, as `docker/scripts/start-kafka.sh` beside them sets it up.

    python -m tests.suites.aiokafka.container TARGET serve SETTINGS           until its standard input ends
    python -m tests.suites.aiokafka.container TARGET tool SETTINGS COMMAND    a tool, as the container's root calls it

SETTINGS is JSON: the container's environment, and the folders of the node and of its stores. The tools go by the
node as `admin` where the tests' way is ZooKeeper, which is no more.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.interop import apache
from tests.interop.cluster import HOST
from tests.suites.nodes import ACLS, SecuredNodes

USERS: Final = {"admin": "admin", "test": "test", "test2": "test2"}
PORTS: Final = {
    "PLAINTEXT": "ADVERTISED_PORT",
    "SSL": "ADVERTISED_SSL_PORT",
    "SASL_PLAINTEXT": "ADVERTISED_SASL_PLAINTEXT_PORT",
    "SASL_SSL": "ADVERTISED_SASL_SSL_PORT",
}
TOOLS: Final = {"kafka-acls.sh": ACLS, "kafka-configs.sh": apache.CONFIGS}
PASSWORD: Final = "abcdefgh"
_ZOOKEEPER: Final = re.compile(r"--authorizer-properties zookeeper\.connect=\S+|--zookeeper \S+")


def serve(target: str, settings: Mapping[str, Any]) -> None:
    stores = {
        f"ssl.{kind}.{name}": value
        for kind in ("keystore", "truststore")
        for name, value in (
            ("type", "JKS"),
            ("location", f"{settings['stores']}/br_server.{kind}.jks"),
            ("password", PASSWORD),
        )
    }
    nodes = SecuredNodes(
        target,
        Path(settings["folder"]),
        nodes=1,
        stores={**stores, "ssl.key.password": PASSWORD},
        users=USERS,
        ports={listener: int(settings[name]) for listener, name in PORTS.items()},
        more={"num.partitions": str(settings["NUM_PARTITIONS"]), "group.initial.rebalance.delay.ms": "0"},
    )
    nodes.start()
    try:
        sys.stdin.read()
    finally:
        nodes.stop()


def tool(settings: Mapping[str, Any], command: str) -> int:
    program, *arguments = shlex.split(_ZOOKEEPER.sub("", command))
    config = Path(settings["folder"]) / "admin.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security.plain."
        f'PlainLoginModule required username="admin" password="{USERS["admin"]}";\n'
    )
    where = ("--bootstrap-server", f"{HOST}:{settings[PORTS['SASL_PLAINTEXT']]}", "--command-config", str(config))
    for options in _requests(arguments):
        done = apache.try_tool(TOOLS[Path(program).name], *where, *options)
        print(done.stdout, done.stderr)
        if done.returncode != 0:
            return done.returncode
    return 0


def _requests(arguments: Sequence[str]) -> Iterator[Sequence[str]]:
    """ZooKeeper took credentials of both mechanisms at once; Apache Kafka 4 refuses a request with a user twice."""
    if "--add-config" not in arguments:
        yield arguments
        return
    at = arguments.index("--add-config") + 1
    for setting in re.split(r",(?=SCRAM)", arguments[at]):
        yield (*arguments[:at], setting, *arguments[at + 1 :])


if __name__ == "__main__":
    target, what, settings, *command = sys.argv[1:]
    if what == "tool":
        sys.exit(tool(json.loads(settings), *command))
    serve(target, json.loads(settings))
