"""A client's security properties in the words of librdkafka."""

from __future__ import annotations

import pytest

from tanist.lab.jepsen.confluent_settings import of_librdkafka
from tanist.lab.jepsen.target import RunFailed

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def test_users_and_stores() -> None:
    found = of_librdkafka(
        {
            "bootstrap.servers": "h:1",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{SCRAM} username="app" password="one;secret";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "/me.pem",
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "app",
        "sasl.password": "one;secret",
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }
    pkcs12 = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "/me.p12", "ssl.keystore.password": "x"}
    assert of_librdkafka(pkcs12) == {"ssl.keystore.location": "/me.p12", "ssl.keystore.password": "x"}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"ssl.truststore.type": "PKCS12", "ssl.truststore.location": "/ca.p12"}, "no ssl.truststore.location"),
        ({"ssl.truststore.password": "one-secret"}, "no ssl.truststore.password"),
        ({"sasl.oauthbearer.token.endpoint.url": "file:///t"}, "no sasl.oauthbearer.token.endpoint.url"),
        ({"sasl.jaas.config": f'{SCRAM} username="t" password="one-secret" tokenauth="true";'}, "no delegation tokens"),
    ],
)
def test_what_it_does_not_have_is_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(RunFailed, match=message) as raised:
        of_librdkafka(properties)
    assert "one-secret" not in str(raised.value)
