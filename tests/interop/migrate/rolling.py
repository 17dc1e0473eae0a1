"""A dynamic cluster (KIP-853) that is rolled by `tanist migrate`, with this process as the operator.

The command prints what to do and waits; `Shell` runs it, does what it says to the nodes' processes, and keeps a
transcript of the steps that are to be shown.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.interop import apache
from tests.interop.cluster import HOST
from tests.interop.mixed.dynamic_quorum import DynamicCluster, Kind
from tests.interop.tanist_cluster import PROGRAM

PROMPT = "$ "
_WAITING = re.compile(r"waiting for node (\d+)")
_PATIENCE_S = 300.0


class Refused(AssertionError):
    """`tanist migrate` ended with another exit code than 0."""


@dataclass(slots=True)
class Shell:
    """The operator's terminal. `printed`: commands and their output, with addresses and folders of real machines."""

    cluster: DynamicCluster
    printed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.printed.append(f"{PROMPT}export TANIST_BOOTSTRAP={self._plain(self.cluster.bootstrap)}")

    @property
    def properties(self) -> str:
        """The nodes' properties files, as `--properties` takes them."""
        return str(self.cluster.directory / "node-{node}" / "server.properties")

    def migrate(self, *arguments: str, code: int = 0, shown: bool = True) -> str:
        """`tanist migrate`, and the operator's acts when it waits for one."""
        transcript = [f"{PROMPT}tanist migrate {' '.join(self._quoted(arguments))}"]
        command = [str(PROGRAM), "migrate", *arguments]
        environment = {**os.environ, "TANIST_BOOTSTRAP": self.cluster.bootstrap}
        lines: list[str] = []
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as process:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                transcript.append(self._plain(line))
                if (waiting := _WAITING.match(line)) is not None:
                    self._change(int(waiting[1]), "ours" if arguments[0] == "next" else "apache")
            process.wait(_PATIENCE_S)
        if shown:
            self.printed += transcript
        if process.returncode != code:
            raise Refused(f"tanist migrate {arguments}: exit code {process.returncode}\n" + "\n".join(lines))
        return "\n".join(lines)

    def quorum(self, node_id: int) -> set[int]:
        """`kafka-metadata-quorum`, asked of one node; the voters that it names."""
        at = ("--bootstrap-server", self.cluster.members[node_id].address)
        text = apache.tool(apache.METADATA_QUORUM, *at, "describe", "--status").stdout
        (voters,) = re.findall(r"^CurrentVoters:\s*(.*)$", text, re.MULTILINE)
        return {int(found) for found in re.findall(r'"id": ?(\d+)', voters)}

    def topic(self, node_id: int, name: str) -> list[str]:
        """`kafka-topics`, asked of one node; its partitions, ISRs in order."""
        at = ("--bootstrap-server", self.cluster.members[node_id].address)
        text = apache.tool(apache.TOPICS, *at, "--describe", "--topic", name).stdout
        return [_sorted_isr(line) for line in text.splitlines() if "\tPartition: " in line]

    def _change(self, node_id: int, kind: Kind) -> None:
        """What the printed instructions ask for."""
        self.cluster.end(node_id)
        self.cluster.members[node_id].kind = kind
        self.cluster.start(node_id)

    def _quoted(self, arguments: Sequence[str]) -> list[str]:
        return [f"'{each}'" if " " in each else self._plain(each) for each in arguments]

    def _plain(self, text: str) -> str:
        """The cluster of this test as one of three machines."""
        text = text.replace(self.properties, "/etc/kafka/server.properties")
        for node_id, member in self.cluster.members.items():
            address = f"{HOST}:{member.port}"
            text = text.replace(f"{address}  ", f"kafka{node_id}:9092".ljust(len(address)) + "  ")  # in a table
            text = text.replace(address, f"kafka{node_id}:9092")
            text = text.replace(f"{HOST}:{member.controller_port}", f"kafka{node_id}:9093")
            text = text.replace(str(member.folder / "data"), "/var/lib/kafka")
            text = text.replace(str(member.properties_file), "/etc/kafka/server.properties")
        return text.expandtabs(2).rstrip()


def _sorted_isr(line: str) -> str:
    def ordered(found: re.Match[str]) -> str:
        return f"{found[1]}: {','.join(sorted(found[2].split(',')))}"

    return re.sub(r"(Isr|Elr|LastKnownElr): ([\d,]+)", ordered, line.strip())


def shape(transcript: str) -> list[str]:
    """A transcript without what differs from run to run: ids, counts, offsets, and states on the way to in sync."""
    masks = ((r"(?<=[ :])[-_A-Za-z0-9]{22}(?=[ ,\"]|$)", "ID"), (r"\d+([.,]\d+)*", "N"), (r"N\*", "N"), (r" +", " "))
    lines = []
    waiting = False
    for line in transcript.splitlines():
        if waiting and not re.search(r"is stopped$|is back, and runs|^all partitions are in sync", line):
            continue
        waiting = "waiting for node" in line or (waiting and not line.startswith("all partitions"))
        for pattern, instead in masks:
            line = re.sub(pattern, instead, line)
        # A transactional id may be in any state just then.
        lines.append(re.sub(r"Elr:.*|(?<=^settling: ).*", "", line.strip()).strip())
    return lines


def block(page: Path, name: str) -> tuple[str, int, int]:
    """The text of a page between two comments that name it, and where it begins and ends."""
    text = page.read_text()
    start = text.index(f"<!-- {name} -->\n```console\n") + len(f"<!-- {name} -->\n```console\n")
    end = text.index(f"```\n<!-- end of {name} -->", start)
    return text[start:end], start, end
