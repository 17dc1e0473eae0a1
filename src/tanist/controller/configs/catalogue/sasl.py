"""Broker properties of SASL. Only data, in the notation of `notation`."""

from __future__ import annotations

from .notation import read

SASL_SETTINGS = read(
    """
connection.failed.authentication.delay.ms int 100 read-only low >=0
    How long the answer to a client that could not authenticate, and the end of its connection, are held back.
connections.max.reauth.ms long 0 read-only medium
    How long an authentication is good, by listener and mechanism too; 0 is for ever.
sasl.enabled.mechanisms list GSSAPI per-broker medium list
    By which mechanisms clients of a listener may authenticate: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.
sasl.jaas.config password - per-broker medium
    Login module of a listener's mechanism, always as listener.name.NAME.MECHANISM.sasl.jaas.config.
sasl.mechanism.controller.protocol string GSSAPI read-only high
    Mechanism by which this node authenticates to controllers.
sasl.mechanism.inter.broker.protocol string GSSAPI per-broker medium
    Mechanism by which this node authenticates to other brokers.
sasl.server.callback.handler.class class - read-only medium
    Class that checks what clients say; there are no Java classes here, and one is refused.
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
)
"""What a listener may have for each of its mechanisms: `listener.name.NAME.MECHANISM.` stands before it."""
