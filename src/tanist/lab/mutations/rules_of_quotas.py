"""Rules of quotas, broken: whose quota counts, what is counted, and how long a client is not heard.

Owns patches of `tanist.security.quotas`, of the broker's throttles and connections, and of the reading of snapshots;
and `QUOTA_MUTANTS`. All of them show in secured runs with quotas (`sim.metered`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tanist.broker.metadata import controller_channel, replay
from tanist.broker.network.client_connection import ClientConnection
from tanist.broker.network.client_throttles import ClientThrottles
from tanist.broker.network.connections import Connections
from tanist.controller.image.client_quotas import ClientQuotas
from tanist.controller.image.image import MetadataImage
from tanist.controller.image.snapshot import from_records
from tanist.lab.mutations.patching import Patch, always, fixed
from tanist.lab.mutations.simulator import Mutation, drawn
from tanist.lab.mutations.situations import metered
from tanist.security.connection_limits import UNLIMITED, ConnectionLimits
from tanist.security.quotas import Limit, Limits, Mutations, Rate, Throttle
from tanist.wire.frames import throttle_time_of

# -- whose quota counts


def users_come_first() -> tuple[Patch, ...]:
    """A quota of a user, before one of the user with a client id."""
    find = Limits.of

    def finds(limits: Any, user: str, client_id: str) -> Limit | None:
        for who in (user, None):
            if who in limits._users:
                return Limit(limits._users[who], (user, ""))
        return find(limits, user, client_id)

    return (Patch(Limits, "of", finds),)


def defaults_are_nobodys() -> tuple[Patch, ...]:
    """Only who is named has a quota."""

    def finds(limits: Any, user: str, client_id: str) -> Limit | None:
        for bounds, name, counter in (
            (limits._pairs, (user, client_id), (user, client_id)),
            (limits._users, user, (user, "")),
            (limits._clients, client_id, ("", client_id)),
        ):
            if name in bounds:
                return Limit(bounds[name], counter)
        return None

    return (Patch(Limits, "of", finds),)


def defaults_are_shared() -> tuple[Patch, ...]:
    """A default is one counter for all to whom it applies."""
    find = Limits.of

    def finds(limits: Any, user: str, client_id: str) -> Limit | None:
        limit = find(limits, user, client_id)
        named = (user, client_id) in limits._pairs or user in limits._users or client_id in limits._clients
        return limit if limit is None or named else Limit(limit.bound, ("", ""))

    return (Patch(Limits, "of", finds),)


def removed_quotas_stay() -> tuple[Patch, ...]:
    """What was a quota once is one as long as the process lives. (The metadata is right.)"""
    hear = ClientThrottles.quotas_changed

    def hears(throttles: Any, image: ClientQuotas) -> None:
        known = vars(throttles).setdefault("known_once", ClientQuotas())
        for record in image.records():
            known.replay(record)
        hear(throttles, known)

    return (Patch(ClientThrottles, "quotas_changed", hears),)


def first_quotas_stay() -> tuple[Patch, ...]:
    """A node goes on with the quotas that it has read first."""
    hear = ClientThrottles.quotas_changed

    def hears(throttles: Any, image: ClientQuotas) -> None:
        if image and "known_once" not in vars(throttles):
            vars(throttles)["known_once"] = True
            hear(throttles, image)

    return (Patch(ClientThrottles, "quotas_changed", hears),)


def quotas_are_not_in_snapshots() -> tuple[Patch, ...]:
    """Who reads a snapshot leaves them out."""

    def reads(*arguments: Any, **more: Any) -> MetadataImage:
        image = from_records(*arguments, **more)
        image.quotas = ClientQuotas()
        return image

    return (Patch(replay, "from_records", reads),)


def all_addresses_are_the_default() -> tuple[Patch, ...]:
    """The default of addresses, before an address's own quota."""
    throttle = ConnectionLimits._host_throttle_ms

    def throttles(limits: Any, host: str, now_ms: int) -> int:
        rates = limits.host_rates
        limits.host_rates = {None: rates.get(None, UNLIMITED)}
        try:
            return throttle(limits, host, now_ms)
        finally:
            limits.host_rates = rates

    return (Patch(ConnectionLimits, "_host_throttle_ms", throttles),)


def changes_are_the_brokers() -> tuple[Patch, ...]:
    """The controller counts a change that is passed on to it as the broker's."""
    count = ClientThrottles.mutations_of

    def counts(throttles: Any, call: Any) -> Mutations:
        session, call.session = call.session, call.connection.session
        try:
            return count(throttles, call)
        finally:
            call.session = session

    return (Patch(ClientThrottles, "mutations_of", counts),)


# -- what is counted


def windows_do_not_roll() -> tuple[Patch, ...]:
    """What was used is never forgotten."""

    def record(rate: Any, value: float, now_ms: int) -> None:
        if not rate._samples:
            rate._samples.append([now_ms, now_ms, 0.0])
        rate._samples[0][2] += value

    def measure(rate: Any, now_ms: int) -> tuple[float, int]:
        seconds = rate._windows.samples - 1
        return (rate._samples[0][2] if rate._samples else 0.0) / seconds, seconds * 1_000

    return (Patch(Rate, "record", record), Patch(Rate, "measure", measure))


throttled_fetches_count = fixed(Throttle, "unrecord", always(None))


def refused_changes_count() -> tuple[Patch, ...]:
    """A change that is refused takes its tokens all the same."""
    take = Mutations.take

    def takes(mutations: Any, partitions: int) -> bool:
        taken = take(mutations, partitions)
        if not taken:
            mutations._bucket.take(partitions, mutations._rate, mutations._now_ms)
        return taken

    return (Patch(Mutations, "take", takes),)


# -- how long a client is not heard

throttled_clients_are_heard = fixed(ClientConnection, "mute", always(None))
throttled_clients_are_forgotten = fixed(Connections, "release_later", always(None))


def throttles_of_controllers_are_only_said() -> tuple[Patch, ...]:
    """A broker passes the controller's throttle on, and hears its client all the same."""

    def none(api_key: int, version: int, frame: bytes) -> int:
        throttle_time_of(api_key, version, frame)
        return 0

    return (Patch(controller_channel, "throttle_time_of", none),)


QUOTA_MUTANTS: Mapping[str, Mutation] = {
    "quota-precedence": drawn("a quota of a user wins over one of a user with a client id", users_come_first, metered),
    "quota-default": drawn("nobody has a default's quota", defaults_are_nobodys, metered),
    "quota-shared": drawn("a default is one counter for all", defaults_are_shared, metered),
    "quota-removed": drawn("a quota that was removed is obeyed", removed_quotas_stay, metered),
    "quota-replayed": drawn("a node obeys the quotas that it has read first", first_quotas_stay, metered),
    "quota-snapshot": drawn("quotas in a snapshot are not read", quotas_are_not_in_snapshots, metered),
    "quota-address": drawn(
        "the default of addresses wins over an address's own", all_addresses_are_the_default, metered
    ),
    "quota-passed-on": drawn(
        "a controller counts a change as that of the broker that passes it on", changes_are_the_brokers, metered
    ),
    "quota-window": drawn("what was used is never forgotten", windows_do_not_roll, metered),
    "quota-unsent": drawn("an answer that a throttle holds back counts", throttled_fetches_count, metered),
    "quota-refused": drawn("a change that is refused counts", refused_changes_count, metered),
    "quota-heard": drawn("a client that is throttled is heard", throttled_clients_are_heard, metered),
    "quota-muted": drawn("a client that was throttled is never heard again", throttled_clients_are_forgotten, metered),
    "quota-said": drawn(
        "a broker hears a client that its controller throttles", throttles_of_controllers_are_only_said, metered
    ),
}
