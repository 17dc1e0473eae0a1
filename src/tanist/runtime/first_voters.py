"""The first voters of a cluster with dynamic voters (KIP-853): which they are, and the snapshot that names them.

Owns the choice that `tanist format` is given where the configuration names no voters: this controller alone, a list of
controllers, or none yet, which is for a controller that joins later. The snapshot `0-0` is each node's own; the first
leader writes its voters into the metadata log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from uuid import UUID

from tanist.broker.config import NodeConfig
from tanist.wire.ids import id_from_text

_CONTROLLER = re.compile(r"(\d+)@(?:\[([^\]]+)\]|([^:\[\]]+)):(\d+):([A-Za-z0-9_-]{22})")


class FirstVotersError(Exception):
    """Why these cannot be the first voters."""


class Choice(Enum):
    STANDALONE = auto()
    LISTED = auto()
    NONE_YET = auto()


@dataclass(frozen=True, slots=True)
class Controller:
    node_id: int
    host: str
    port: int
    directory_id: UUID


@dataclass(frozen=True, slots=True)
class FirstVoters:
    choice: Choice
    controllers: tuple[Controller, ...] = ()

    def directory_of(self, node_id: int) -> UUID | None:
        """The id that the list gives to this node's folder of the metadata log."""
        return next((each.directory_id for each in self.controllers if each.node_id == node_id), None)


def parse_controllers(text: str) -> FirstVoters:
    """`--initial-controllers`: id@host:port:directory-id,... . `FirstVotersError`."""
    controllers: list[Controller] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        match = _CONTROLLER.fullmatch(item)
        if match is None:
            raise FirstVotersError(f"'{item}' is not a controller; write id@host:port:directory-id")
        if any(each.node_id == int(match[1]) for each in controllers):
            raise FirstVotersError(f"controller {match[1]} stands there twice; ids are unique")
        try:
            directory_id = id_from_text(match[5])
        except ValueError as error:
            raise FirstVotersError(f"'{item}': {error}") from None
        controllers.append(Controller(int(match[1]), match[2] or match[3], int(match[4]), directory_id))
    if not controllers:
        raise FirstVotersError("no controller is named; write id@host:port:directory-id,...")
    return FirstVoters(Choice.LISTED, tuple(controllers))


def check(config: NodeConfig, voters: FirstVoters | None, kraft_version: int | None) -> None:
    """`FirstVotersError` unless the choice goes with the configuration, as `kafka-storage format` has it."""
    if config.controller_quorum_voters:
        if voters is not None:
            raise FirstVotersError(
                "controller.quorum.voters names the voters; put controller.quorum.bootstrap.servers in its place to "
                "format with --standalone, --initial-controllers or --no-initial-controllers"
            )
        if kraft_version:
            raise FirstVotersError(
                "kraft.version 1 needs controller.quorum.bootstrap.servers in place of controller.quorum.voters; a "
                "cluster that runs is upgraded by `tanist features`"
            )
        return
    if not config.is_controller:
        if voters is not None and voters.choice is Choice.STANDALONE:
            raise FirstVotersError("--standalone is for a controller, and process.roles has none")
        return
    if voters is None:
        raise FirstVotersError(
            "controller.quorum.voters is not set on this controller; say which the first voters are: --standalone, "
            "--initial-controllers or --no-initial-controllers"
        )
    if kraft_version == 0:
        raise FirstVotersError("kraft.version 0 needs controller.quorum.voters in the configuration")
    if voters.choice is Choice.LISTED and voters.directory_of(config.node_id) is None:
        raise FirstVotersError(
            f"--initial-controllers lacks node {config.node_id}, which is a controller; format one that joins later "
            "with --no-initial-controllers"
        )


def snapshot(config: NodeConfig, voters: FirstVoters, directory_id: UUID, wall_ms: int) -> tuple[str, bytes] | None:
    """The file with the first voters, as a path below the metadata log's folder; None: this node has no voters yet."""
    # Not before: the quorum takes 50 ms to import.
    from tanist.quorum.storage.voter_history import address, first_snapshot
    from tanist.quorum.voters import Listener, Voter, VoterSet

    if voters.choice is Choice.NONE_YET or not config.is_controller:
        return None
    name = config.controller_listener_names[0]
    if voters.choice is Choice.STANDALONE:
        listeners = tuple(Listener(each.name, each.host, each.port) for each in config.controller_endpoints)
        first = VoterSet([Voter(config.node_id, directory_id, *address(listeners, name), listeners)])
    else:
        first = VoterSet(
            Voter(each.node_id, each.directory_id, each.host, each.port, (Listener(name, each.host, each.port),))
            for each in voters.controllers
        )
    return first_snapshot(first, name, wall_ms)
