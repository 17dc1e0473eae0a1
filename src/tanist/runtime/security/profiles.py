"""The TLS profiles of a node by name, and their exchange while the node runs.

A new profile holds for handshakes that begin from now on; connections that are open stay as they are. It is taken only
if handshakes with it can succeed: key and certificate belong together, it names the same subject and at least the same
hosts (`ssl.allow.dn.changes`, `ssl.allow.san.changes`), and what trusts the present one trusts it. What was refused
changes nothing.

Opt-in (`tanist.ssl.watch.interval.ms`): the files of the stores are looked at, and read again when they have changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from tanist.ports import Clock, TlsIdentity, TlsProblem
from tanist.runtime.security.profile import TlsProfile
from tanist.runtime.security.stores import files_of

WATCH: str = "tanist.ssl.watch.interval.ms"

_Stamps = tuple[tuple[int, int, int] | None, ...]

OnReloaded = Callable[[str, TlsIdentity | None, str | None], None]
"""(profile, whom the certificate names, or what is wrong with the files)"""


class TlsProfiles:
    """All of one process."""

    def __init__(self, clock: Clock, on_reloaded: OnReloaded) -> None:
        self._clock = clock
        self._on_reloaded = on_reloaded
        self._profiles: dict[str, TlsProfile] = {}
        self._stamps: dict[str, _Stamps] = {}
        """Of the files of each profile, as they were when it was last read."""
        self._between_nodes: dict[str, bool] = {}
        self._watching: set[str] = set()

    def __getitem__(self, name: str) -> TlsProfile:
        return self._profiles[name]

    def __contains__(self, name: str) -> bool:
        return name in self._profiles

    def set(
        self, name: str, properties: Mapping[str, str], *, between_nodes: bool, only_try: bool = False
    ) -> TlsIdentity | None:
        """Make a profile, and use it. `TlsProblem` if it cannot be used, or not in place of the present one."""
        stamps = _stamps(properties)  # before the files are read: what is written meanwhile is read again
        profile = TlsProfile(properties)
        present = self._profiles.get(name)
        if present is not None:
            _check_exchange(present, profile)
        if between_nodes:
            _check_between_nodes(present, profile)
        if not only_try:
            self._profiles[name] = profile
            self._stamps[name] = stamps
            self._between_nodes[name] = between_nodes
            self._watch(name)
        return profile.identity

    # -- files

    def _watch(self, name: str) -> None:
        interval_ms = int(self._profiles[name].properties.get(WATCH) or 0)
        if interval_ms > 0 and name not in self._watching:
            self._watching.add(name)
            self._clock.call_at(self._clock.now_ms() + interval_ms, lambda: self._look(name))

    def _look(self, name: str) -> None:
        self._watching.discard(name)
        properties = self._profiles[name].properties
        stamps = _stamps(properties)
        if stamps != self._stamps[name]:
            try:
                identity = self.set(name, properties, between_nodes=self._between_nodes[name])
                self._on_reloaded(name, identity, None)
            except TlsProblem as problem:
                self._stamps[name] = stamps  # said once for each change
                self._on_reloaded(name, None, str(problem))
        self._watch(name)


def _stamps(properties: Mapping[str, str]) -> _Stamps:
    found: list[tuple[int, int, int] | None] = []
    for path in files_of(properties):
        try:
            status = os.stat(path)
        except OSError:
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)


def _check_exchange(before: TlsProfile, after: TlsProfile) -> None:
    """Kafka's rules for a store that takes the place of another."""
    had, has = before.identity, after.identity
    if had is None and has is not None:
        raise TlsProblem("Cannot add SSL keystore to an existing listener for which no keystore was configured.")
    if had is not None and has is None:
        raise TlsProblem(
            "Cannot remove the SSL keystore from an existing listener for which a keystore was configured."
        )
    if before.trusted is None and after.trusted is not None:
        raise TlsProblem("Cannot add SSL truststore to an existing listener for which no truststore was configured.")
    if had is None or has is None:
        return
    allowed = after.properties
    if had.subject.lower() != has.subject.lower() and not _is_true(allowed.get("ssl.allow.dn.changes")):
        raise TlsProblem(
            f"Keystore DistinguishedName does not match: existing={{DN='{had.subject}'}}, new={{DN='{has.subject}'}}; "
            "ssl.allow.dn.changes=true allows it"
        )
    missing = [each for each in had.hosts if each not in has.hosts]
    if missing and not _is_true(allowed.get("ssl.allow.san.changes")):
        raise TlsProblem(
            f"Keystore SubjectAltNames do not match: existing={{SAN={list(had.hosts)}}}, "
            f"new={{SAN={list(has.hosts)}}}; ssl.allow.san.changes=true allows it"
        )
    if has.expires_ms <= time.time() * 1000:
        raise TlsProblem(f"the new certificate (DN='{has.subject}') has expired")


def _check_between_nodes(before: TlsProfile | None, after: TlsProfile) -> None:
    """Nodes that have the one settings and nodes that have the other must go on talking to each other."""
    if after.keys is None:
        return
    refusal = after.accepts(after)
    if refusal is not None:
        raise TlsProblem(
            "A client SSLEngine created with the provided settings can't connect to a server SSLEngine created with "
            f"those settings: {refusal}. The trust store has to hold the issuer of the key store's certificate"
        )
    if before is None or before.identity is None or before.identity.expires_ms <= time.time() * 1000:
        return
    for one, other, which, whose in ((before, after, "present", "new"), (after, before, "new", "present")):
        refusal = one.accepts(other)
        if refusal is not None:
            raise TlsProblem(
                f"the {which} settings do not accept the {whose} certificate ({refusal}), so nodes could not talk to "
                "each other: exchange the trust stores first, for such as hold both issuers"
            )


def _is_true(text: str | None) -> bool:
    return (text or "").strip().lower() == "true"
