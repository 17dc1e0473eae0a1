"""The scripted cluster of combined nodes that tests of what nodes answer use, with its lines and events."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tanist.broker.logins import ChannelLogin
from tanist.broker.metadata.bootstrap import FILE_NAME, bootstrap_of, encode_bootstrap
from tanist.client.admin import BROKER_RESOURCE, alter_configs_request, delete_topic_request
from tanist.events.event import Event
from tanist.sim.scripted.cluster import ScriptedCluster
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.scheduler import Process
from tanist.sim.world.world import BROKER_PORT, DATA, Host, Watcher, World
from tanist.wire.metadata import UserScramCredentialRecord
from tests.api_versions import API_VERSIONS

EventT = TypeVar("EventT", bound=Event)


TLS_BETWEEN_CONTROLLERS: Mapping[str, str] = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
    "ssl.keystore.location": "/node.pem",
}
"""Clients need none."""


class Heard(Watcher):
    """Events of some kinds, or all, from here on, and who has emitted each; `then` is called with each of them."""

    def __init__(
        self, cluster: ScriptedCluster, *kinds: type[Event], then: Callable[[Event], None] = lambda _: None
    ) -> None:
        self.events: list[tuple[int, Event]] = []
        self._kinds = kinds or (Event,)
        self._then = then
        cluster.world.watchers.append(self)

    def observed(self, host: Host, event: Event) -> None:
        if isinstance(event, self._kinds):
            self.events.append((host.node_id, event))
            self._then(event)

    def of(self, kind: type[EventT]) -> list[EventT]:
        return [event for _, event in self.events if isinstance(event, kind)]


class Cluster(ScriptedCluster):
    """`nodes` combined nodes, or those of `roles`, started and ready."""

    def __init__(
        self,
        *,
        nodes: int = 3,
        seed: int = 1,
        roles: Mapping[int, str] | None = None,
        config: Mapping[str, str] | None = None,
        per_node: Mapping[int, Mapping[str, str]] | None = None,
        features: Mapping[str, int] | None = None,
        credentials: Sequence[UserScramCredentialRecord] = (),
        login: ChannelLogin | None = None,
        tls: bool = False,
        directories: int = 1,
    ) -> None:
        """`credentials`: with which the folders are formatted. `login`: by what the client authenticates. `tls`: it
        dials by TLS. `directories`: log directories of each node.
        """
        self.log: list[str] = []
        """The lines of operators, of faults and of nodes."""
        world = World(seed, nodes=nodes, roles=roles, directories=directories, config=config, trace=self._trace)
        super().__init__(world, SimClient(world, "client", History(), login, tls=tls))
        self.heard = Heard(self)
        """All events of all nodes."""
        for node_id, more in (per_node or {}).items():
            self.host(node_id).properties.update(more)
        if features is not None or credentials:
            content = encode_bootstrap(bootstrap_of(features or {}, credentials), wall_ms=0)
            for host in self.world.hosts.values():
                host.disk.view(Process("format")).write_file(f"{DATA}/{FILE_NAME}", content)
        self.start()

    def seen(self, kind: type[EventT]) -> list[EventT]:
        """The events of this kind."""
        return self.heard.of(kind)

    def _trace(self, _us: int, who: str, level: str, message: str) -> None:
        self.log.append(f"{who} {level} {message}")

    def new_client(self, name: str, login: ChannelLogin | None = None, *, tls: bool = False) -> SimClient:
        """Another client, with connections of its own."""
        return SimClient(self.world, name, History(), login, tls=tls)

    def asked_by(
        self, login: ChannelLogin | None, *, to: int = 1, port: int = BROKER_PORT, tls: bool = False, name: str = ""
    ) -> str | None:
        """As whom a node knows a client that logs in so, and asks for the APIs; None: it does not let it in."""
        client = self.new_client(name or f"client-{len(self.world.clients)}", login, tls=tls)
        answers = self.send(API_VERSIONS, 4, to=to, port=port, timeout_ms=5_000, client=client)
        self.until(lambda: bool(answers))
        known = [each for each in self.node(to).components.connections if each.client_id == client.name]
        client.end_life()
        return str(known[0].session.principal) if answers[0] is not None else None

    def stop(self, node_id: int) -> Host:
        """A controlled shutdown, to its end: the mark of it is left."""
        host = self.host(node_id)
        host.stop(lambda: None)
        self.until(lambda: not host.up)
        return host

    def configure(self, kind: int, name: str, changes: Mapping[str, str | None]) -> None:
        """An operator's change of configurations; a broker checks its own before it passes them on."""
        to = int(name) if kind == BROKER_RESOURCE and name else self.controller()
        answer = self.ask(alter_configs_request(kind, name, changes), 1, to=to)
        assert [each.error_code for each in answer.responses] == [0], answer

    def delete_topic(self, name: str) -> None:
        answer = self.ask(delete_topic_request(name), 5, to=self.controller())
        assert answer.responses[0].error_code == 0, answer

    def values(self, topic: str, *, partition: int = 0, to: int | None = None) -> list[bytes]:
        """All committed values of a partition."""
        return [bytes(record.value or b"") for record in self.read(topic, partition=partition, to=to)]


def out_of_descriptors(host: Host, folder: str) -> Callable[[], None]:
    """From now on no file below the folder can be opened; gives what ends that."""
    check = host.disk.check

    def short(path: str, *, writing: bool = False) -> None:
        if path.startswith(folder):
            raise OSError(errno.EMFILE, "Too many open files", path)
        check(path, writing=writing)

    host.disk.check = short  # type: ignore[method-assign]

    def enough() -> None:
        host.disk.check = check  # type: ignore[method-assign]

    return enough
