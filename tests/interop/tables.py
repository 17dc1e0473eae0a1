"""`python -m tests.interop.tables [--write]`: what ApiVersions says, beside each pinned version of Apache Kafka.

A node of each version and one of ours are asked for their requests and features, on a broker's listener and on a
controller's. The rows that differ, or that only one of them has, are the table of GAPS.md: the command prints them and
ends with 1 if GAPS.md says anything else, `--write` writes them there. `tests/interop/test_interop_tables.py` holds it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tests.interop import apache
from tests.interop.apache import ApacheCluster, random_cluster_id
from tests.interop.cluster import ROOT, free_ports, interrupt_on_sigterm
from tests.interop.pair import Asker, controller_address
from tests.interop.tanist_cluster import TanistNode, tanist
from tests.interop.versions import PINS, Pin
from tools.page_tables import with_table

PAGE = ROOT / "GAPS.md"
NAME = "requests"
OURS = "tanist"
_BROKER, _CONTROLLER = "broker", "controller"
_ASKED_IN = 4
"""ApiVersions of this version lists features whose lowest level is 0; all of the pinned versions have it."""

_ON_CONTROLLERS = "Apache Kafka's controllers offer it, and do not serve it"

REASONS: Mapping[str, str] = {
    "DescribeDelegationToken": _ON_CONTROLLERS,
    "DescribeUserScramCredentials": _ON_CONTROLLERS,
    "ElectLeaders": "Version 3 is KIP-966's, and names the leader",
    **dict.fromkeys(
        (
            "ApiVersions",
            "DeleteGroups",
            "StreamsGroupDescribe",
            "StreamsGroupHeartbeat",
            "TxnOffsetCommit",
            "UnregisterController",
            "metadata.version",
            "share.version",
        ),
        "As in Apache Kafka 4.4",
    ),
    "StreamsGroupTopologyDescriptionUpdate": "For a plugin in Java, without which Apache Kafka refuses it too",
}
"""Why a row of that name is not as in Apache Kafka."""

Versions = tuple[int, int]


class Row(NamedTuple):
    """A request or a feature, on one kind of listener."""

    name: str
    listener: str


Table = Mapping[Row, Versions]


class Difference(NamedTuple):
    """What each side says of a row, by the side's name; None if it has no such row."""

    row: Row
    sides: Mapping[str, Versions | None]


def of_apache(folder: Path, pin: Pin) -> Table:
    """The tables of a node of Apache Kafka of this version, at its defaults."""
    cluster = ApacheCluster(folder, nodes=1, heap="256m", first_port=free_ports(2), pin=pin)
    cluster.start()
    try:
        return _asked(cluster.address(1), controller_address(cluster.node_properties(1)))
    finally:
        cluster.stop()


def of_tanist(folder: Path) -> Table:
    """The tables of a node of ours, with the same properties."""
    like = ApacheCluster(folder, nodes=1, first_port=free_ports(2))
    file = like.properties_file(1)
    like.log_directory(1).mkdir(parents=True)
    file.write_text("".join(f"{key}={value}\n" for key, value in like.node_properties(1).items()))
    tanist("format", "-c", str(file), "-t", random_cluster_id())
    node = TanistNode(file)
    node.start()
    try:
        return _asked(node.address(1), controller_address(node.properties))
    finally:
        node.stop()


def _asked(broker: tuple[str, int], controller: tuple[str, int]) -> Table:
    names = request_names()
    found: dict[Row, Versions] = {}
    for listener, address in ((_BROKER, broker), (_CONTROLLER, controller)):
        request = ApiVersionsRequest(client_software_name="tables", client_software_version="1")
        with Asker(address) as asker:
            answer = asker.ask(request, _ASKED_IN, ApiVersionsResponse)
        for api in answer.api_keys:
            found[Row(f"{names[api.api_key]} ({api.api_key})", listener)] = api.min_version, api.max_version
        for feature in answer.supported_features:
            found[Row(f"`{feature.name}`", listener)] = feature.min_version, feature.max_version
    return found


def request_names() -> Mapping[int, str]:
    """The name of each request that any pinned version has, by its key, as the schemas in the jars say."""
    names = {}
    for pin in PINS.values():
        with zipfile.ZipFile(apache.jars(pin) / f"kafka-clients-{pin.version}.jar") as jar:
            for file in jar.namelist():
                if re.fullmatch(r"common/message/\w+Request\.json", file):
                    text = re.sub(r"^\s*//.*$", "", jar.read(file).decode(), flags=re.MULTILINE)
                    key = re.search(r'"apiKey":\s*(\d+)', text)
                    if key is not None:
                        names[int(key[1])] = Path(file).stem.removesuffix("Request")
    return names


def differences(tables: Mapping[str, Table]) -> list[Difference]:
    """The rows that are not the same on all sides, those of brokers first, by name of the side."""
    rows = sorted(set().union(*tables.values()), key=lambda row: (row.listener, "`" in row.name, _key(row.name), row))
    every = (Difference(row, {side: table.get(row) for side, table in tables.items()}) for row in rows)
    return [each for each in every if any(versions != each.sides[OURS] for versions in each.sides.values())]


def _key(name: str) -> int:
    key = re.search(r"\((\d+)\)", name)
    return int(key[1]) if key is not None else 0


def lines(found: list[Difference]) -> Iterator[str]:
    """The table as GAPS.md has it. What is alike on both kinds of listeners stands once. `KeyError`: no reason."""
    sides = (OURS, *PINS)
    yield f"| Request or feature | Listener | {' | '.join((OURS, *(f'Apache Kafka {each}' for each in PINS)))} | Why |"
    yield f"|{'---|' * (len(sides) + 3)}"
    listeners: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for each in found:
        cells = tuple(_cell(each.sides[side]) for side in sides)
        listeners.setdefault((each.row.name, cells), []).append(each.row.listener)
    for (name, cells), where in listeners.items():
        yield f"| {name} | {', '.join(where)} | {' | '.join(cells)} | {REASONS[name.partition(' ')[0].strip('`')]} |"


def _cell(versions: Versions | None) -> str:
    return "-" if versions is None else str(versions[0]) if versions[0] == versions[1] else "{}-{}".format(*versions)


def asked() -> Iterator[str]:
    """The lines of GAPS.md's table, as the nodes answer now."""
    with tempfile.TemporaryDirectory(prefix="tables-") as folder:
        tables = {OURS: of_tanist(Path(folder) / OURS)}
        for pin in PINS.values():
            tables[pin.version] = of_apache(Path(folder) / pin.version, pin)
    return lines(differences(tables))


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.interop.tables", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into GAPS.md")
    write = parser.parse_args().write
    interrupt_on_sigterm()
    table = list(asked())
    print("\n".join(table))
    before = PAGE.read_text()
    page = with_table(before, NAME, table)
    if write:
        PAGE.write_text(page)
    return int(page != before and not write)


if __name__ == "__main__":
    sys.exit(main())
