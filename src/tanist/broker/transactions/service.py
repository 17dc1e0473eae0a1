"""The transactions of a broker: each part is made when there is a first need of it.

Nothing of them is imported before: a broker without transactions starts faster by what it does not load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.coordinator_runtime.components import CoordinatorComponents
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.metadata.producer_ids import ProducerIds
from tanist.broker.replication.hosted_partition import HostedPartition

if TYPE_CHECKING:
    from tanist.broker.metadata.barrier import MetadataBarrier
    from tanist.broker.transactions.marker_writes import MarkerWrites
    from tanist.broker.transactions.open_transactions import OpenTransactions
    from tanist.broker.transactions.transaction_coordinator import TransactionCoordinator
    from tanist.broker.transactions.verification import TransactionVerifier


class Transactions:
    """The coordinator, the writer of markers and the verifier, as far as there are any; it hears of roles."""

    def __init__(
        self,
        components: CoordinatorComponents,
        controller_channel: ControllerChannel,
        lifecycle: Lifecycle,
        producer_ids: ProducerIds,
        groups: Groups,
    ) -> None:
        self._components = components
        self._controller_channel = controller_channel
        self._lifecycle = lifecycle
        self._producer_ids = producer_ids
        self._groups = groups
        self.loaded: TransactionCoordinator | None = None
        """The coordinator, if there was a transactional id to serve."""
        self._marker_writes: MarkerWrites | None = None
        self.asking: TransactionVerifier | None = None
        """The verifier, if there was a transaction to verify."""
        self._barrier: MetadataBarrier | None = None
        self._open: OpenTransactions | None = None

    def coordinator(self) -> TransactionCoordinator:
        """The coordinator. A new one finds all ids of the partitions that are led here."""
        if self.loaded is None:
            from tanist.broker.transactions.transaction_coordinator import TransactionCoordinator

            self.loaded = TransactionCoordinator(
                self._components, self._producer_ids, self.marker_writes(), self.barrier()
            )
            self.loaded.start()
        return self.loaded

    def barrier(self) -> MetadataBarrier:
        """The question whether the metadata is up to date."""
        if self._barrier is None:
            from tanist.broker.metadata.barrier import MetadataBarrier

            parts = self._components
            self._barrier = MetadataBarrier(parts.context, parts.metadata, self._controller_channel, self._lifecycle)
        return self._barrier

    def marker_writes(self) -> MarkerWrites:
        """The writer of markers to partitions that are led here."""
        if self._marker_writes is None:
            from tanist.broker.transactions.marker_writes import MarkerWrites

            self._marker_writes = MarkerWrites(self._components, self._groups)
        return self._marker_writes

    def verifier(self) -> TransactionVerifier:
        """The questions to the coordinators of transactions that write here."""
        if self.asking is None:
            from tanist.broker.transactions.verification import TransactionVerifier

            self.asking = TransactionVerifier(self._components.context, self._components.metadata, self.coordinator)
        return self.asking

    def has_open(self, hosted: HostedPartition) -> None:
        """A partition that is led here has transactions open which its leader may not see the end of."""
        if self._open is None:
            from tanist.broker.transactions.open_transactions import OpenTransactions
            from tanist.broker.transactions.survey import CoordinatorSurvey

            context = self._components.context
            survey = CoordinatorSurvey(context, self._components.metadata, self.barrier)
            self._open = OpenTransactions(context, self._components.replicas, survey, self.marker_writes)
        self._open.suspect(hosted)

    def role_changed(self, hosted: HostedPartition) -> None:
        """A partition of `__transaction_state` has another role here."""
        if self.loaded is not None:
            self.loaded.role_changed(hosted)
        elif hosted.leader is not None and hosted.log.log_end_offset > hosted.log.log_start_offset:
            self.coordinator()

    def close(self) -> None:
        """The broker is going down."""
        if self.loaded is not None:
            self.loaded.close()
        if self.asking is not None:
            self.asking.close()
        if self._open is not None:
            self._open.close()
