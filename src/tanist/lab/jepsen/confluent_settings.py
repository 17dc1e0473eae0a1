"""A Kafka client's security properties as librdkafka takes them.

What librdkafka does not have is refused: a client that left it out would connect in another way than was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tanist.client.security import is_of_security
from tanist.lab.jepsen.target import RunFailed
from tanist.security.jaas import parse_jaas

_SAME: Final = frozenset(
    {
        *("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"),
        *("ssl.ca.location", "ssl.key.password", "ssl.keystore.password", "enable.ssl.certificate.verification"),
    }
)
_PEM: Final = {
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
}
_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
_IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"


def of_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    """`RunFailed` for what it does not have. No message has a value."""
    found: dict[str, str] = {}
    for name, value in properties.items():
        store = name.rpartition(".")[0] if name.endswith(".location") else ""
        kind = properties.get(f"{store}.type", "JKS").upper()
        if not is_of_security(name) or name in _TYPES:
            continue
        if name in _SAME:
            found[name] = value
        elif name == "ssl.keystore.location" and kind != "PEM":
            found[name] = value  # PKCS12
        elif name in _PEM and (not store or kind == "PEM"):
            found |= dict.fromkeys(_PEM[name], value)
        elif name == _IDENTIFICATION:
            found[name] = value or "none"
        elif name == "sasl.jaas.config":
            options = parse_jaas(value).options
            if options.get("tokenauth", "").lower() == "true":
                raise RunFailed("librdkafka has no delegation tokens: use --client tanist")
            found |= {"sasl.username": options.get("username", ""), "sasl.password": options.get("password", "")}
        else:
            raise RunFailed(f"librdkafka has no {name} like this one: use --client tanist")
    return found
