"""Members of share groups: they join, fetch, and say of each record what has become of it; or they do not.

Owns what a workload needs beside the protocol, which `tanist.client` has: lives, what is done with records and how long
it takes, and what the witness hears. Some portions are spoken of too late, or never. The driver of a run calls `start`,
`leave` and `die`, and `settle` when everything is to come to an end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tanist.client.membership import Assigned, Effect, Failed, LearnTopics, Lost, MemberSettings, Pause
from tanist.client.requests import Ask
from tanist.client.share_member import ShareGroupMember
from tanist.client.share_session import ACCEPT, GAP, REJECT, RELEASE, RENEW, FetchLimits, Place, ShareSession, Words
from tanist.client.topic_partition import TopicPartition
from tanist.sim.workload.cluster_client import BACKOFF_MS, REQUEST_TIMEOUT_MS, ClusterClient
from tanist.sim.workload.group_client import ClientContext
from tanist.sim.workload.share_settings import SharePlan, ShareSettings
from tanist.wire.batch import decode_batch, iterate_batches

_WAIT_MS = 200
_VERSION = 2
_TOPICS_PAUSE_MS = 1_000


class Share(NamedTuple):
    """A partition, as one group's."""

    group: str
    topic: str
    partition: int

    @property
    def place(self) -> str:
        return f"{self.topic}-{self.partition}"


class ShareWitness:
    """Gets what members of share groups say and hear, before they act on it. This one looks at nothing."""

    def acquired(
        self, member_id: str, share: Share, first: int, last: int, delivery_count: int, values: Mapping[int, bytes]
    ) -> None:
        """A member receives these records; `values` by offset, of whole batches."""

    def says(self, member_id: str, share: Share, words: Mapping[int, int]) -> None:
        """A member will say this of its records: offset -> kind."""

    def heard(self, member_id: str, share: Share, words: Mapping[int, int], error: int) -> None:
        """It has an answer to that."""


@dataclass(slots=True, eq=False)
class _Link:
    """What is between the member and one broker."""

    node_id: int
    session: ShareSession
    words: dict[TopicPartition, dict[int, int]] = field(default_factory=dict)
    """What is to be said of records that it has from there."""
    renewals: dict[TopicPartition, dict[int, int]] = field(default_factory=dict)
    busy: bool = False


class SimShareMember(ClusterClient):
    """A member through all its lives."""

    def __init__(
        self, context: ClientContext[ShareWitness], name: str, plan: SharePlan, settings: ShareSettings
    ) -> None:
        super().__init__(name, context.clock, context.network, context.bootstrap, context.login)
        self.context = context
        self.group = plan.group
        self.running = False
        self.assigned: frozenset[TopicPartition] = frozenset()
        self.received = 0
        self._settings = settings
        self._member_settings = MemberSettings(
            plan.group, plan.topics, topics_ms=_TOPICS_PAUSE_MS, backoff_ms=BACKOFF_MS
        )
        self._ids = 0
        self._member = self._another()
        self._links: dict[int, _Link] = {}
        self._is_settling = False
        self._is_looking = False

    @property
    def member_id(self) -> str:
        return self._member.member_id

    # -- for the driver of a run

    def start(self) -> None:
        """Join the group, as another process than before."""
        if not self.running:
            self.running = True
            self.end_life()
            self._carry_out(self._member.start())

    def leave(self) -> None:
        """Say what there is to say, end the sessions, and leave the group."""
        if self.running:
            for link in self._links.values():
                if link.session.is_open:
                    self._acknowledge(link, link.words, ends=True)
            self._carry_out(self._member.leave())
            self._stop()

    def die(self) -> None:
        """Die without a word."""
        if self.running:
            self._stop()
            self.end_life()

    def settle(self) -> None:
        """From here on it accepts all that it gets, and soon."""
        self._is_settling = True

    def _stop(self) -> None:
        self.running = False
        self.next_life()
        self._member = self._another()
        self._links.clear()
        self._is_looking = False
        self.assigned = frozenset()

    def _another(self) -> ShareGroupMember:
        self._ids += 1
        return ShareGroupMember(self._member_settings, f"{self.name}-{self._ids}")

    # -- the group

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        member = self._member
        for effect in effects:
            match effect:
                case Ask():
                    self.ask(
                        effect,
                        lambda response, asked=effect: self._carry_out(  # type: ignore[misc]
                            member.handle_response(asked, response)
                        ),
                    )
                case Pause():
                    self.later(effect.ms, lambda pause=effect: self._carry_out(member.due(pause)))  # type: ignore[misc]
                case LearnTopics():
                    self.learn_topics(effect.names, lambda view: self._carry_out(member.learnt(view)))
                case Assigned():
                    self.assigned = effect.partitions
                    self._fetch_everywhere()
                case Lost():
                    self.assigned = frozenset()
                case Failed():
                    pass

    # -- sessions

    def _fetch_everywhere(self) -> None:
        """Have a request under way at each broker that leads what is assigned."""
        places = self._places_by_leader()
        for node_id in sorted(places.keys() - self._links.keys()):
            self._links[node_id] = _Link(node_id, ShareSession(self.group, self.member_id))
        for link in list(self._links.values()):
            self._go_on(link)
        if sum(map(len, places.values())) < len(self.assigned):
            self._look_again()

    def _look_again(self) -> None:
        """Ask who leads; then go on with everybody."""
        self.refresh(sorted({topic for topic, _ in self.assigned}))
        if not self._is_looking:
            self._is_looking = True
            self.later(BACKOFF_MS, self._have_looked)

    def _have_looked(self) -> None:
        self._is_looking = False
        self._fetch_everywhere()

    def _places_by_leader(self) -> dict[int, list[Place]]:
        found: dict[int, list[Place]] = {}
        for topic, partition in sorted(self.assigned):
            leader = self.leader_of(topic, partition)
            if leader is not None:
                found.setdefault(leader[0], []).append((self._view.topics[topic].topic_id, partition))
        return found

    def _next(self, link: _Link) -> None:
        """The next request to this broker, if there is one to make."""
        wanted = self._places_by_leader().get(link.node_id, [])
        if not link.session.is_open and not wanted:
            del self._links[link.node_id]
        elif link.renewals:
            words, link.renewals = link.renewals, {}
            self._acknowledge(link, words, renews=True)
        elif link.words and self.context.rng.random() < self._settings.explicit_share:
            words, link.words = link.words, {}
            self._acknowledge(link, words)
        elif not wanted and not link.words:
            self._acknowledge(link, {}, ends=True)
            self._links.pop(link.node_id, None)
        else:
            words, link.words = link.words, {}
            self._fetch(link, wanted, words)

    def _fetch(self, link: _Link, wanted: list[Place], words: dict[TopicPartition, dict[int, int]]) -> None:
        limits = FetchLimits(
            self.context.rng.randint(1, self._settings.records_max), _WAIT_MS, exact=self._settings.exact
        )
        self._ask(link, link.session.fetch(wanted, self._by_id(words), limits), words)

    def _acknowledge(
        self, link: _Link, words: dict[TopicPartition, dict[int, int]], *, renews: bool = False, ends: bool = False
    ) -> None:
        request = link.session.acknowledge(self._by_id(words), renews=renews, ends=ends)
        self._ask(link, request, words, goes_on=not ends)

    def _by_id(self, words: Mapping[TopicPartition, Mapping[int, int]]) -> Words:
        """By topic id; and the witness hears it."""
        found = {}
        for (topic, partition), said in words.items():
            found[(self._view.topics[topic].topic_id, partition)] = said
            self.context.witness.says(self.member_id, Share(self.group, topic, partition), said)
        return found

    def _ask(
        self, link: _Link, request: Any, words: Mapping[TopicPartition, Mapping[int, int]], *, goes_on: bool = True
    ) -> None:
        broker = self._view.brokers.get(link.node_id)
        link.busy = True

        def handle_response(response: Any | None) -> None:
            link.busy = False
            goes_well = link.session.handle_response(response) and self._take(link, response, words)
            if not goes_on or self._links.get(link.node_id) is not link:
                return
            if goes_well:
                self.later(1, lambda: self._go_on(link))
                return
            if not link.session.is_open:  # others have the records, and what was to be said of them is in vain
                del self._links[link.node_id]
            self._look_again()

        if broker is None:
            handle_response(None)
            return
        timeout_ms = REQUEST_TIMEOUT_MS + _WAIT_MS
        self._call(self.channel(broker.address), request, _VERSION, handle_response, timeout_ms)

    def _go_on(self, link: _Link) -> None:
        if not link.busy and self._links.get(link.node_id) is link:
            self._next(link)

    # -- answers

    def _take(self, link: _Link, response: Any, words: Mapping[TopicPartition, Mapping[int, int]]) -> bool:
        """Whether there was no error."""
        names = {topic.topic_id: name for name, topic in self._view.topics.items()}
        for topic in response.responses:
            name = names[topic.topic_id]
            for part in topic.partitions:
                where = (name, part.partition_index)
                share = Share(self.group, *where)
                error = getattr(part, "acknowledge_error_code", part.error_code)
                if where in words:
                    self.errors[error] += 1
                    self.context.witness.heard(self.member_id, share, words[where], error)
                if getattr(part, "acquired_records", ()):
                    self._receive(link, share, part)
        return not any(part.error_code for topic in response.responses for part in topic.partitions)

    def _receive(self, link: _Link, share: Share, part: Any) -> None:
        values = {
            record.offset: record.value or b""
            for header, batch in iterate_batches(memoryview(part.records or b""))
            if not header.is_control
            for record in decode_batch(batch)
        }
        for each in part.acquired_records:
            self.received += each.last_offset - each.first_offset + 1
            self.context.witness.acquired(
                self.member_id, share, each.first_offset, each.last_offset, each.delivery_count, values
            )
            offsets = range(each.first_offset, each.last_offset + 1)
            self._work(link, (share.topic, share.partition), offsets, values.keys())

    def _work(self, link: _Link, where: TopicPartition, offsets: range, there: Collection[int]) -> None:
        """Say something of the records, after a while. `there`: where records are; elsewhere is a gap."""
        rng, settings = self.context.rng, self._settings
        fate, work_ms = rng.random(), rng.randint(0, settings.work_ms)
        if not self._is_settling:
            if fate < settings.silent_share:
                return
            if fate < settings.silent_share + settings.late_share:
                work_ms += rng.randint(settings.lock_ms // 2, 2 * settings.lock_ms)
            elif fate > 1 - settings.renew_share:
                work_ms += settings.lock_ms
                self.later(settings.lock_ms // 2, lambda: self._renew(link, where, offsets))
        self.later(work_ms, lambda: self._done(link, where, offsets, there))

    def _renew(self, link: _Link, where: TopicPartition, offsets: range) -> None:
        link.renewals.setdefault(where, {}).update(dict.fromkeys(offsets, RENEW))

    def _done(self, link: _Link, where: TopicPartition, offsets: range, there: Collection[int]) -> None:
        said = {offset: self._kind() if offset in there else GAP for offset in offsets}
        link.words.setdefault(where, {}).update(said)

    def _kind(self) -> int:
        drawn = self.context.rng.random()
        if self._is_settling:
            return ACCEPT
        if drawn < self._settings.release_share:
            return RELEASE
        return REJECT if drawn < self._settings.release_share + self._settings.reject_share else ACCEPT
