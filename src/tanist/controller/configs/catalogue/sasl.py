"""Broker properties of SASL. Only data, in the notation of `notation`."""

from __future__ import annotations

from .notation import read

SASL_SETTINGS = read(
    """
connection.failed.authentication.delay.ms int 100 read-only low >=0
    How long the answer to a client that could not authenticate, and the end of its connection, are held back.
connections.max.reauth.ms long 0 read-only medium
    How long an authentication is good, by listener and mechanism too; 0 is for ever.
delegation.token.expiry.check.interval.ms long 3600000 read-only low >=1
    How often the controller removes delegation tokens that have expired.
delegation.token.expiry.time.ms long 86400000 read-only medium >=1
    How long a delegation token is good, and again after each renewal.
delegation.token.max.lifetime.ms long 604800000 read-only medium >=1
    How long a delegation token can be renewed.
delegation.token.secret.key password - read-only medium
    By which delegation tokens are made and judged: the same on all nodes. Without it there are none.
sasl.enabled.mechanisms list GSSAPI per-broker medium list
    By which mechanisms clients of a listener may authenticate: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER.
sasl.jaas.config password - per-broker medium
    Login module of a listener's mechanism, always as listener.name.NAME.MECHANISM.sasl.jaas.config.
sasl.mechanism.controller.protocol string GSSAPI read-only high
    Mechanism by which this node authenticates to controllers.
sasl.mechanism.inter.broker.protocol string GSSAPI per-broker medium
    Mechanism by which this node authenticates to other brokers.
sasl.oauthbearer.clock.skew.seconds int 30 read-only low
    By how much the clocks of a token's issuer and of this node may differ.
sasl.oauthbearer.expected.audience list "" read-only high list
    One of these a token has to be for; none: anybody's.
sasl.oauthbearer.expected.issuer string - read-only high
    Who must have issued a token; none: anybody.
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000 read-only low
    How often the keys to judge tokens by are fetched.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000 read-only low
    Longest pause after the keys could not be fetched.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100 read-only low
    First pause after the keys could not be fetched.
sasl.oauthbearer.jwks.endpoint.url string - read-only medium
    Where the keys to judge tokens by are: https://..., http://... or file:///....
sasl.oauthbearer.jwt.validator.class class \
org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator read-only medium
    Class that judges tokens: Apache Kafka's default, or its BrokerJwtValidator.
sasl.oauthbearer.scope.claim.name string scope read-only low
    The claim of a token that has its scope.
sasl.oauthbearer.sub.claim.name string sub read-only low
    The claim of a token that says who it is.
sasl.server.callback.handler.class class - read-only medium
    Of OAUTHBEARER: whether tokens are signed. There are no Java classes here, and others are refused.
sasl.server.max.receive.size int 524288 read-only medium
    Size of a request beyond which it is refused, before its client has authenticated.
""",
    on_brokers=True,
)

PREFIXED_BY_MECHANISM = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "sasl.server.max.receive.size",
    *(name for name in SASL_SETTINGS if name.startswith("sasl.oauthbearer.")),
)
"""What a listener may have for each of its mechanisms: `listener.name.NAME.MECHANISM.` stands before it."""
