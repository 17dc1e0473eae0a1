"""The TLS profiles of a node, as its properties and the metadata have them now.

Owns when a profile is made, and made anew: at the start, and when the broker's dynamic configuration has changed. The
network makes it, and says what is wrong with it; what is refused while the node runs leaves the present profile in
place. It must never hold a secret longer than it takes to hand it on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from tanist.broker.authorizer_properties import refuse_a_stranger
from tanist.broker.context import NodeContext
from tanist.broker.metadata.view import MetadataView
from tanist.broker.tls_properties import names_of, profile_properties
from tanist.controller.configs.settings import BROKER_RESOURCE, Levels
from tanist.controller.image.delta import ImageDelta
from tanist.events.process import (
    CERTIFICATE_SOON_DAYS,
    AdvertisedHostNotInCertificate,
    CertificateExpires,
    CertificateRefused,
    CertificateTaken,
)
from tanist.ports import TlsIdentity, TlsProblem

_DAY_MS: Final = 86_400_000
_SOON_MS: Final = CERTIFICATE_SOON_DAYS * _DAY_MS
_LOOK_MS: Final = 10_000
"""How often certificates are looked at: the network may have taken others."""


class NodeProfiles:
    """Of one node."""

    def __init__(self, context: NodeContext, metadata: MetadataView) -> None:
        self._context = context
        self._metadata = metadata
        self._properties: dict[str, Mapping[str, str]] = {}
        """As they were handed to the network last."""
        self.identities: dict[str, TlsIdentity] = {}
        """Whom the certificate of each listener names."""
        self._said: dict[str, tuple[int, bool, int]] = {}
        """Of each listener's certificate: when it expires, whether it has, and when that was said."""

    def start(self) -> None:
        """Make all profiles by the properties file. `TlsProblem` if a listener could serve nobody."""
        config = self._context.config
        static = Levels({}, {}, config.static)
        for name in config.tls.profiles:
            try:
                identity = self._set(name, self._of(name, static))
            except TlsProblem as problem:
                raise TlsProblem(f"listener {name}: {problem}") from None
            if identity is None and any(endpoint.name == name for endpoint in config.listeners):
                raise TlsProblem(
                    f"listener {name} has TLS and no certificate: set "
                    f"listener.name.{name.lower()}.ssl.keystore.location (or ssl.keystore.location), and "
                    "ssl.keystore.type"
                )
        if self.identities:
            self._look()
        for dialled in dict.fromkeys((config.tls.to_brokers, config.tls.to_controllers)):
            if dialled is not None:
                self._check_own_principal(dialled)

    def metadata_changed(self, delta: ImageDelta) -> None:
        """The broker's dynamic configuration may have changed."""
        if not self._properties or (BROKER_RESOURCE, str(self._context.node_id)) not in delta.configs:
            return
        configs = self._metadata.image.configs
        own = configs.get((BROKER_RESOURCE, str(self._context.node_id)), {})
        levels = Levels.of(configs, self._context.node_id, self._context.config.static)
        for name in self._context.config.tls.profiles:
            properties = self._of(name, levels)
            # A value that was written again says that the file has changed.
            if properties != self._properties.get(name) or names_of(own, name):
                try:
                    self._set(name, properties)
                except TlsProblem as problem:
                    self._context.events.emit(CertificateRefused(name, str(problem)))

    def complaint(self, changed: Collection[str], after: Levels) -> str | None:
        """Why the network would not take the properties as they are to be; None: it would."""
        for name in self._context.config.tls.profiles:
            if names_of(changed, name):
                try:
                    self._context.network.set_tls_profile(
                        name, self._of(name, after), between_nodes=self._is_dialled(name), only_try=True
                    )
                except TlsProblem as problem:
                    return f"Validation of dynamic config update of SSLFactory failed: {problem}"
        return None

    # -- inner

    def _look(self) -> None:
        """Say of a certificate that it expires soon, and that it has; and each day again."""
        context = self._context
        now_ms = context.clock.now_ms()
        next_ms = now_ms + _LOOK_MS
        for name, identity in self.identities.items():
            expires_ms = context.metrics.certificates_expire_ms.get(name, identity.expires_ms)
            left_ms = expires_ms - context.clock.wall_ms()
            if left_ms > 0:
                next_ms = min(next_ms, now_ms + left_ms)
            if left_ms >= _SOON_MS:
                continue
            *said, at_ms = self._said.get(name, (0, False, 0))
            if said != [expires_ms, left_ms <= 0] or now_ms >= at_ms + _DAY_MS:
                self._said[name] = (expires_ms, left_ms <= 0, now_ms)
                context.events.emit(CertificateExpires(name, identity.subject, expires_ms, left_ms))
        context.clock.call_at(next_ms, self._look)

    def _check_own_principal(self, name: str) -> None:
        """By its certificate, whose name the properties file does not have."""
        config = self._context.config
        mapping = config.tls.mappings.get(name)
        if config.authorizer is None or mapping is None:
            return
        asked = self._properties[name].get("ssl.client.auth", "none").strip().lower() != "none"
        identity = self.identities.get(name)
        principal = mapping.principal_of(identity.subject if asked and identity is not None else None)
        remedy = "" if asked else f", or set listener.name.{name.lower()}.ssl.client.auth=required"
        alone = config.has_one_controller
        refuse_a_stranger(config.authorizer, principal, name, "SSL", alone=alone, remedy=remedy)

    def _of(self, name: str, levels: Levels) -> dict[str, str]:
        return profile_properties(levels, name, has_sasl=name in self._context.config.tls.has_sasl)

    def _is_dialled(self, name: str) -> bool:
        config = self._context.config
        return name in (config.tls.to_brokers, config.tls.to_controllers)

    def _set(self, name: str, properties: Mapping[str, str]) -> TlsIdentity | None:
        identity = self._context.network.set_tls_profile(name, properties, between_nodes=self._is_dialled(name))
        self._properties[name] = dict(properties)
        if identity is not None:
            self.identities[name] = identity
            self._context.events.emit(CertificateTaken(name, identity.subject, identity.expires_ms))
            self._warn_of_hosts(name, identity)
        return identity

    def _warn_of_hosts(self, name: str, identity: TlsIdentity) -> None:
        """Clients compare the host that they dial with the certificate: the advertised one, after the first time."""
        config = self._context.config
        for endpoint in (*config.advertised_listeners, *config.controller_endpoints):
            if endpoint.name == name and not covers(identity.hosts, endpoint.host):
                self._context.events.emit(AdvertisedHostNotInCertificate(name, endpoint.host, identity.hosts))


def covers(names: Collection[str], host: str) -> bool:
    """Whether a certificate with these names is this host's: by the same rules as clients have."""
    host = host.lower().rstrip(".")
    for each in names:
        name = each.lower()
        if name == host or (name.startswith("*.") and host.partition(".")[2] == name[2:] and host.partition(".")[0]):
            return True
    return False
