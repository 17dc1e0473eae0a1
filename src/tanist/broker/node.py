"""`Node`: a broker, a controller, or both, built from four ports.

The node holds the components, starts and stops them, and passes on what the metadata and the quorum have to say. It is
the only object that the runtime and the simulator know. It decides nothing about replication, elections or votes; those
are in the core's state machines, whose effects the components carry out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tanist.broker.api.table import ApiTable
from tanist.broker.assembly import identify
from tanist.broker.components import assemble
from tanist.broker.config import NodeConfig
from tanist.broker.context import NodeContext, ReadUrl, no_url
from tanist.broker.unexpected import OnCrash, OnMet
from tanist.controller.features import Bootstrap
from tanist.controller.image.delta import ImageDelta
from tanist.events.process import LeadershipsNotHandedOver, ShutdownBegun, ShutdownDone
from tanist.events.stream import Events
from tanist.ports import Clock, Disk, Network, Random

_STOP_PATIENCE_MS = 10_000
_STOP_WITHOUT_CONTROLLER_MS = 1_000
_STOP_LOOK_MS = 250


class Node:
    """One tanist node, over folders that `tanist format` has made."""

    def __init__(
        self,
        config: NodeConfig,
        clock: Clock,
        disk: Disk,
        network: Network,
        random: Random,
        events: Events,
        on_fatal: Callable[[str], None],
        on_crash: OnCrash | None = None,
        on_met: OnMet | None = None,
        read_url: ReadUrl = no_url,
        bootstrap: Bootstrap | None = None,
    ) -> None:
        """`on_crash` ends the process after an unexpected exception (`unexpected`), `on_met` hears of each. `read_url`
        is asked for the keys of tokens. `bootstrap`: how a new cluster begins whose folders do not say it.
        """
        cluster_id, metas = identify(config, disk, random)
        self.context = NodeContext(
            config, cluster_id, clock, disk, network, random, events, on_fatal, on_crash, on_met, read_url, bootstrap
        )
        self.node_id = config.node_id
        self.is_broker = config.is_broker
        self.is_controller = config.is_controller
        self.components = assemble(self.context, metas)
        # Those at which the simulator looks.
        self.metadata = self.components.metadata
        self.quorum = self.components.quorum
        self.lifecycle = self.components.lifecycle
        self.replicas = self.components.replicas
        if self.quorum.controller_service is not None:
            self.quorum.controller_service.on_elected = self.components.access.load
        self.quorum.replay.on_applied = self._metadata_applied
        self.quorum.on_leader_changed = self._leader_changed
        self.lifecycle.on_registered = self._registered

    # -- life

    def start(self) -> None:
        """Take the listeners' addresses, join the quorum, load the logs, register. `OSError` when one is taken.

        Clients are heard when the metadata has the registration (`_metadata_applied`).
        """
        components = self.components
        apis = ApiTable(components)
        components.tls.start()
        for endpoint in self.context.config.listeners:
            served = apis.of_listener(endpoint.name)
            components.connections.bind(endpoint, served, components.gates.of_listener(endpoint.name, served))
        self._limit_connections()
        components.connections.open_controller()
        components.connections.look_for_idle()
        self.metadata.on_change(self._metadata_changed)
        self.quorum.start()
        if self.is_broker:
            components.salvage.start()
            self.lifecycle.starting(lambda: components.log_loading.progress)
            components.log_loading.start(self._loaded)

    def _loaded(self, previous_broker_epoch: int) -> None:
        self.components.housekeeping.start()
        self.lifecycle.start(previous_broker_epoch)

    def stop(self, done: Callable[[], None]) -> None:
        """Controlled shutdown: hand leaderships over, close the logs cleanly, leave the quorum; then call `done`."""
        context, clock = self.context, self.context.clock
        context.events.emit(ShutdownBegun(self.node_id))
        if not self.is_broker:
            self._leave_quorum(done)
            return
        if self.components.log_loading.under_way:
            self.components.log_loading.stop(partial(self._stop_before_registration, done))
            return
        finished = False

        def handed_over() -> None:
            nonlocal finished
            if not finished:
                finished = True
                deadline.cancel()
                self._stop_broker()
                self._leave_quorum(done)

        def check_controller() -> None:
            if finished:
                return
            if clock.now_ms() - self.lifecycle.last_answer_ms > _STOP_WITHOUT_CONTROLLER_MS:
                # The last ones of a cluster that goes down as a whole have no quorum left to hand over to.
                context.events.emit(LeadershipsNotHandedOver())
                handed_over()
                return
            clock.call_at(clock.now_ms() + _STOP_LOOK_MS, check_controller)

        now_ms = clock.now_ms()
        deadline = clock.call_at(now_ms + _STOP_PATIENCE_MS, handed_over)
        clock.call_at(now_ms + _STOP_WITHOUT_CONTROLLER_MS, check_controller)
        self.lifecycle.begin_controlled_shutdown(handed_over)

    def _stop_before_registration(self, done: Callable[[], None]) -> None:
        self._stop_components()
        self._leave_quorum(done)

    def _stop_broker(self) -> None:
        self._stop_components()
        self.replicas.close(self.lifecycle.broker_epoch)

    def _stop_components(self) -> None:
        components = self.components
        self.lifecycle.stop()
        components.housekeeping.stop()
        components.salvage.stop()
        components.fetchers.close()
        for hosted in self.replicas:
            hosted.leadership_lost()
        components.groups.close()
        components.transactions.close()
        components.shares.close()
        components.leadership.close()
        components.connections.close_broker()

    def _leave_quorum(self, done: Callable[[], None]) -> None:
        def leave() -> None:
            components = self.components
            self.context.stopping = True
            components.connections.close()
            components.purgatory.clear()
            components.controller_channel.close()
            if components.controller_registration is not None:
                components.controller_registration.close()
            self.quorum.close()
            self.context.events.emit(ShutdownDone(self.node_id))
            done()

        self.quorum.shut_down(leave)

    def crash(self, place: str, error: Exception) -> None:
        """An exception has come through to the loop, so nobody has given up what it may have torn: end the process."""
        self.context.unexpected.crash(place, error)

    def status(self) -> dict[str, Any]:
        """State, for people and tests."""
        return {
            "node_id": self.node_id,
            "state": self.lifecycle.state.value if self.is_broker else "CONTROLLER",
            "waits_for": self.lifecycle.waits_for if self.is_broker else None,
            "broker_epoch": self.lifecycle.broker_epoch,
            "quorum_leader": self.quorum.leader_id,
            "quorum_epoch": self.quorum.raft.epoch,
            "metadata_offset": self.metadata.applied_offset,
            "partitions": sum(1 for _ in self.replicas),
        }

    # -- news of the metadata and the quorum

    def _metadata_changed(self, delta: ImageDelta) -> None:
        components = self.components
        if delta.quotas:
            components.client_throttles.quotas_changed(self.metadata.image.quotas)
        if delta.quotas or delta.configs:
            self._limit_connections()
        components.tls.metadata_changed(delta)
        if self.is_broker:
            if delta.configs:
                components.quotas.configs_changed()
            self.replicas.metadata_changed(delta)
            if delta.brokers:
                components.fetchers.endpoints_changed()
            components.groups.metadata_changed(delta)
            components.shares.metadata_changed(delta)
        components.awaited_metadata.metadata_changed()

    def _limit_connections(self) -> None:
        components = self.components
        components.connections.limits_changed(components.configs.connection_limits, self.metadata.image.quotas)

    def _metadata_applied(self) -> None:
        """More metadata was applied, or the broker learned its epoch: perhaps it may take its roles now.

        What was committed before it registered is in the image then, so no answer denies it. It listens before it asks
        to be unfenced: a controller takes refused connections to an unfenced broker for the end of its process.
        """
        if self.is_broker and not self.context.stopping:
            if self.lifecycle.caught_up:
                self.replicas.activate()
                self.components.connections.open_broker()
            self.lifecycle.metadata_applied()
        registration = self.components.controller_registration
        if self.lifecycle.caught_up or (registration is not None and registration.registered):
            self.components.access.load()
        if self.components.controller_registration is not None:
            self.components.controller_registration.register_if_due()

    def _registered(self) -> None:
        self.components.isr_changes.registered()
        self._metadata_applied()

    def _leader_changed(self) -> None:
        """The quorum has another leader, or none."""
        self.components.controller_channel.leader_changed()
        if self.is_broker and self.quorum.leader_id is not None:
            self.lifecycle.controller_changed()
        if self.components.controller_registration is not None:
            self.components.controller_registration.register_if_due()
