"""The part of a secured run that has quotas: its clients, the operator of quotas, and what judges both.

Owns when they begin and end. Everybody else has quotas that are never exceeded.
"""

from __future__ import annotations

from collections.abc import Sequence

from tanist.sim.checkers.checkers import Checkers
from tanist.sim.checkers.liveness import LivenessPhase
from tanist.sim.checkers.quotas import QuotaChecks
from tanist.sim.metered import ADDRESSES, CLIENTS
from tanist.sim.run.config import METERED_TOPICS
from tanist.sim.workload.history import History
from tanist.sim.workload.operations import QUOTA_OPERATIONS, Admin, Operation
from tanist.sim.workload.quota_admin import QuotaAdmin
from tanist.sim.workload.quota_clients import Dialer, QuotaClient
from tanist.sim.world.world import World
from tanist.wire.schema import MetadataRecord


class QuotaPart:
    """Of one run. Made after its `SecuredPart`, whose reading of records it passes on."""

    def __init__(self, world: World, history: History, checkers: Checkers, admin: Admin) -> None:
        self._admin = admin
        checks = QuotaChecks(world, checkers.metadata)
        before = checkers.metadata.on_record

        def committed(offset: int, record: MetadataRecord) -> None:
            checks.oracle.replay(offset, record)
            if before is not None:
                before(offset, record)

        checkers.metadata.on_record = committed
        self.operator = QuotaAdmin(world, history, checks.oracle)
        oracle = checkers.replicas.oracle
        self.clients = [QuotaClient(world, each, history, oracle, checks.oracle) for each in CLIENTS.values()]
        self.dialers = [Dialer(world, address, history, checks) for address in ADDRESSES]

    def begin(self, liveness: LivenessPhase) -> None:
        """The clients' topic, and quotas that hold for everybody else."""
        created: list[bool] = []
        self._admin.create_topics(lambda: created.append(True), METERED_TOPICS)
        liveness.must(lambda: bool(created), "L2", lambda: "the metered clients' topic cannot be created")
        self.operator.put_in_order(with_quotas=False)
        liveness.must(lambda: self.operator.in_order, "L17", lambda: "no quotas can be made")
        self.operator.stop()

    def start(self, operations: Sequence[Operation]) -> None:
        self.operator.start([each for each in operations if each.kind in QUOTA_OPERATIONS])
        for client in self.clients:
            client.start()
        for dialer in self.dialers:
            dialer.start()
