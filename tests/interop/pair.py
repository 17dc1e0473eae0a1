"""Apache Kafka and tanist side by side: one node each, with the same properties, asked the same requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from tanist.wire.frames import decode_response, encode_request
from tanist.wire.schema import Request, Response
from tests.interop.apache import PIN, ApacheCluster, random_cluster_id
from tests.interop.cluster import free_ports
from tests.interop.raw import RawClient
from tests.interop.tanist_cluster import TanistNode, tanist

_R = TypeVar("_R", bound=Response)


class Asker:
    """A connection to one node that is asked in our own messages, of any version."""

    def __init__(self, address: tuple[str, int], *, source: str | None = None) -> None:
        """`source`: the address that it has to the node."""
        self.address = address
        self._source = source
        self._client = RawClient(*address, timeout_s=30.0, source=source)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def ask(self, request: Request, version: int, expected: type[_R]) -> _R:
        """The answer. A connection that was closed is opened again, once: Apache closes some with its threads."""
        frame = encode_request(request, version, 1, "parity")
        try:
            data = self._client.exchange(frame)
        except OSError:
            self._client.close()
            self._client = RawClient(*self.address, timeout_s=30.0, source=self._source)
            data = self._client.exchange(frame)
        answer = decode_response(request.API_KEY, version, data)
        if not isinstance(answer, expected):
            raise TypeError(f"{type(answer).__name__} for {expected.__name__}")
        return answer


class Pair(NamedTuple):
    """The two nodes' addresses: their brokers' and their controllers' listeners."""

    apache: tuple[str, int]
    tanist: tuple[str, int]
    apache_controller: tuple[str, int]
    tanist_controller: tuple[str, int]


def alike(nodes: Pair, question: Callable[[Asker], Any], *, controllers: bool = False) -> Any:
    """What both have answered."""
    sides = (nodes.apache_controller, nodes.tanist_controller) if controllers else (nodes.apache, nodes.tanist)
    answers = []
    for address in sides:
        with Asker(address) as asker:
            answers.append(question(asker))
    theirs, ours = answers
    assert ours == theirs
    return ours


@contextmanager
def pair(folder: Path, properties: Mapping[str, str], classes: Path | None = None) -> Iterator[Pair]:
    """Both nodes, started on free ports and stopped in the end. `classes`: of plug-ins of Apache Kafka's."""
    theirs = ApacheCluster(
        folder / "apache", nodes=1, properties=properties, heap="384m", first_port=free_ports(2), classes=classes
    )
    ours = ApacheCluster(folder / "tanist", nodes=1, properties=properties, first_port=free_ports(2))
    file = ours.properties_file(1)
    ours.log_directory(1).mkdir(parents=True)
    file.write_text("".join(f"{key}={value}\n" for key, value in ours.node_properties(1).items()))
    level = f"metadata.version={PIN.metadata_version}"
    tanist("format", "-c", str(file), "-t", random_cluster_id(), "--feature", level)
    node = TanistNode(file)
    theirs.start()
    try:
        node.start()
        controllers = [controller_address(each) for each in (theirs.node_properties(1), node.properties)]
        yield Pair(theirs.address(1), node.address(1), *controllers)
    finally:
        node.stop()
        theirs.stop()


def controller_address(properties: Mapping[str, str]) -> tuple[str, int]:
    """The listener of the only voter."""
    host, _, port = properties["controller.quorum.voters"].partition("@")[2].rpartition(":")
    return host, int(port)
