"""The secured part of a run: its subjects, the operator of access, and what judges both.

Owns when they begin and end. Everything else is a run's as any: the workload's clients are super users.
"""

from __future__ import annotations

from collections.abc import Sequence

from tanist.sim.checkers.access import AccessChecks
from tanist.sim.checkers.checkers import Checkers
from tanist.sim.checkers.liveness import LivenessPhase
from tanist.sim.run.config import SUBJECT_TOPICS
from tanist.sim.secured import NOBODY, SUBJECTS, Keys, workload_login
from tanist.sim.workload.access_admin import AccessAdmin
from tanist.sim.workload.history import History
from tanist.sim.workload.operations import ACCESS_OPERATIONS, Admin, Operation
from tanist.sim.workload.subjects import Stranger, Subject
from tanist.sim.world.clock import stream
from tanist.sim.world.world import World


def give_logins(world: World) -> None:
    """Clients that are made from now on say who they are."""
    login = workload_login(stream(world.seed, "logins"))
    world.login_of = lambda name: None if name == NOBODY else login


class SecuredPart:
    """Of one run. Made after its workload, whose checks of records it passes on."""

    def __init__(self, world: World, history: History, checkers: Checkers, admin: Admin) -> None:
        self._admin = admin
        keys = Keys()
        checks = AccessChecks(world, checkers)
        self.operator = AccessAdmin(world, history, checks.oracle, keys)
        self.subjects = [
            Subject(world, name, history, checkers.replicas.oracle, checks.oracle, keys) for name in SUBJECTS
        ]
        self._stranger = Stranger(world, history)

    def begin(self, liveness: LivenessPhase) -> None:
        """The subjects' topics, and what they may do at first."""
        created: list[bool] = []
        self._admin.create_topics(lambda: created.append(True), SUBJECT_TOPICS)
        liveness.must(lambda: bool(created), "L2", lambda: "the subjects' topics cannot be created")
        self.operator.put_in_order()
        liveness.must(lambda: self.operator.in_order, "L16", lambda: "no entries can be made")
        self.operator.stop()

    def start(self, operations: Sequence[Operation]) -> None:
        self.operator.start([each for each in operations if each.kind in ACCESS_OPERATIONS])
        for subject in self.subjects:
            subject.start()
        self._stranger.start()
