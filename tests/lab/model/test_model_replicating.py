"""A replica that is made anew from a tuple for each event does what one does that lives through them all."""

from __future__ import annotations

import random

import pytest

from tanist.lab.model.partition import replicating
from tanist.lab.model.partition.components import (
    AlterAnswer,
    Answer,
    Broker,
    LeaderReplica,
    Registration,
    Request,
    View,
    ids_of,
)
from tanist.lab.model.partition.model import PartitionModel
from tanist.lab.model.partition.replicating import LAG_MS, NOW_MS, Registrations, statuses
from tanist.lab.model.partition.symmetry import BROKERS, CONTROLLER, NETWORK
from tanist.lab.model.steps import Label, State
from tanist.replica.follower import Phase
from tanist.replica.isr import AlterPartitionResult
from tanist.replica.leader import LeaderState
from tanist.replica.memory import MemoryLog
from tanist.replica.metadata import ReplicaConfig
from tanist.replica.partition import Partition
from tanist.replica.remote import NEVER_MS
from tests.lab.model.models import partition_model


class Live:
    """One broker's real replica, which is never taken apart."""

    def __init__(self, broker: int, epoch: int, log: MemoryLog, checkpoint: int = 0) -> None:
        self.broker = broker
        self.epoch = epoch
        self.view = Registrations(())
        self.registrations: tuple[Registration, ...] = ()
        self.backlog: list[View] = []
        config = ReplicaConfig(min_insync_replicas=2, replica_lag_time_max_ms=LAG_MS)
        self.replica = Partition(broker + 1, log, config, self.view)
        self.replica.restore_high_watermark(checkpoint)

    @property
    def leader(self) -> LeaderState:
        assert self.replica.leader is not None
        return self.replica.leader

    def learn(self, view: View) -> None:
        before, self.view.statuses = self.view.statuses, statuses(view.registrations)
        self.registrations = view.registrations
        self.replica.apply_metadata(replicating.metadata_of(view), NOW_MS)
        leader = self.replica.leader
        if leader is not None:
            changed = [number for number, status in self.view.statuses.items() if before.get(number) != status]
            leader.brokers_changed(changed, NOW_MS)

    def learn_up_to(self, seen: View) -> None:
        """The last in a row of views that tell this broker no more than `seen`."""
        fits = [self._is_no_more(view, seen) for view in self.backlog]
        last = fits.index(True)
        while last + 1 < len(fits) and fits[last + 1]:
            last += 1
        self.learn(self.backlog[last])
        del self.backlog[: last + 1]

    def _is_no_more(self, view: View, seen: View) -> bool:
        narrow = view.seen_by(self.broker)
        return narrow == seen or narrow.says_no_more_than(seen)

    def time_passes(self) -> None:
        """The only simplification of the model: timers have expired, or have not started."""
        leader, follower = self.replica.leader, self.replica.follower
        if leader is not None:
            for remote in leader.remotes.values():
                remote.last_caught_up_ms = remote.last_fetch_ms = NEVER_MS
                remote.last_fetch_leader_end_offset = -1
        if follower is not None:
            follower.retry_at_ms = 0
            if follower.phase is Phase.FENCED:
                follower.phase = Phase.FETCHING

    def as_tuple(self) -> Broker:
        blank = Broker(self.epoch, (), (), 0, None)
        return replicating.result_of(blank, self.replica, (), self.registrations).broker


class Cluster:
    """Live replicas beside a model: whatever step the model takes, they take."""

    def __init__(self, model: PartitionModel) -> None:
        self.model = model
        self.state = model.initial()
        view = self._controller_view(self.state)
        self.brokers = [Live(broker, 0, MemoryLog()) for broker in range(model.configuration.brokers)]
        for live in self.brokers:
            live.learn(view)

    def _controller_view(self, state: State) -> View:
        return self.model.tables.controllers[state[CONTROLLER]].view()

    def take(self, label: Label, after: State) -> None:
        before, self.state = self.state, after
        view = self._controller_view(after)
        if view != self._controller_view(before):
            for live in self.brokers:
                live.backlog.append(view)
        getattr(self, f"_{label.name}", lambda *_: None)(label, before)
        for live in self.brokers:
            live.time_passes()

    def _write(self, label: Label, _: State) -> None:
        live = self.brokers[label.who]
        payload = self.model.tables.brokers[self.state[BROKERS + label.who]].log[-1][1]
        assert isinstance(live.replica.log, MemoryLog)
        live.replica.log.append_as_leader((str(payload),), live.leader.leader_epoch)
        live.leader.appended(NOW_MS)

    def _ask(self, label: Label, _: State) -> Answer:
        live = self.brokers[label.who]
        follower = live.replica.follower
        assert follower is not None
        asked = Request(label.who, live.epoch, *follower.fetch_position()[:3])
        leader = self.brokers[follower.leader - 1].leader
        return replicating.ask(leader, asked, self.model.configuration.records_a_fetch)[1]

    def _fetch(self, label: Label, before: State) -> None:
        answer = self._ask(label, before)
        follower = self.brokers[label.who].replica.follower
        assert follower is not None
        replicating.tell(follower, answer)

    def _lag(self, label: Label, _: State) -> None:
        late = {int(number) for number in label.detail.removeprefix("for ").split(",")}
        leader = self.brokers[label.who].leader
        for remote in leader.remotes.values():
            remote.last_caught_up_ms = NEVER_MS if remote.broker_id in late else NOW_MS
        leader.check_lag(NOW_MS)

    def _learn(self, label: Label, before: State) -> None:
        tables = self.model.tables
        inboxes = BROKERS + self.model.configuration.brokers
        waiting = tables.inboxes[before[inboxes + label.who]]
        left = int(label.detail.removeprefix("but for ")) if label.detail else 0
        live = self.brokers[label.who]
        live.learn_up_to(tables.views[waiting[len(waiting) - left - 1]])
        if live.replica.role is None:  # its log is deleted
            self.brokers[label.who] = Live(label.who, live.epoch, MemoryLog())
            self.brokers[label.who].backlog = live.backlog

    def _answer(self, label: Label, before: State) -> None:
        tables = self.model.tables
        gone = set(tables.networks[before[NETWORK]]) - set(tables.networks[self.state[NETWORK]])
        gone_messages = [tables.messages[number] for number in gone]
        for each in gone_messages:
            if isinstance(each, AlterAnswer) and each.receiver == label.who:
                result = AlterPartitionResult(
                    error=each.error,
                    leader=label.who + 1,
                    leader_epoch=each.leader_epoch,
                    isr=ids_of(each.isr),
                    partition_epoch=each.partition_epoch,
                    recovering=each.recovering,
                )
                leader = self.brokers[label.who].leader
                sent = replicating.propose_isr(each.proposal)
                if leader.pending is not None and sorted(leader.pending.proposal.isr) == list(sent.isr):
                    sent = leader.pending.proposal  # the same, in the order in which it came about
                leader.alter_partition_done(sent, result, NOW_MS)

    def _lose(self, label: Label, _: State) -> None:
        was = self.brokers[label.who]
        log = was.replica.log
        assert isinstance(log, MemoryLog)
        # The recovery of a log forgets an epoch that has no records, also if it cuts none.
        log.truncate_to(int(label.detail.split()[1]) if label.name == "lose" else log.log_end_offset)
        checkpoint = was.replica.high_watermark if label.name == "restart" else 0
        now = self.brokers[label.who] = Live(label.who, was.epoch + 1, log, checkpoint)
        now.learn(self._controller_view(self.state))

    _crash = _restart = _lose


def _comparable(state: Broker) -> Broker:
    """Without the ghost, and what the model forgets of those who do not lead because it decides nothing."""
    role = state.role
    return state._replace(role=role._replace(heard=0)) if isinstance(role, LeaderReplica) else state


LIVED = ("last-replica-standing", "slow-followers", "two-records", "preferred-leaders", "reassignment", "checkpoints")


@pytest.mark.parametrize("name", LIVED)
@pytest.mark.parametrize("seed", range(5))
def test_it_does_the_same(name: str, seed: int) -> None:
    model = partition_model(name)
    cluster = Cluster(model)
    rng = random.Random(seed)
    for _ in range(60):
        steps = [(label, after) for label, after, broken in model.expand(cluster.state) if broken is None]
        if not steps:
            break
        label, after = rng.choice(steps)
        cluster.take(label, after)
        for broker, live in enumerate(cluster.brokers):
            sent = model.tables.brokers[cluster.state[BROKERS + broker]]
            assert _comparable(live.as_tuple()) == _comparable(sent), f"{label}: {broker + 1}"
