"""The catalogue of properties: every name that Kafka 4.4.0 has for brokers, topics, groups, client metrics; and ours.

The only definition of a property: its type, default, check, importance, how it may be changed, its fallbacks, and
whether it has an effect here. `settings` validates, resolves and describes by it.
"""

from __future__ import annotations

from .groups import CLIENT_METRICS_SETTINGS, GROUP_SETTINGS, SHARE_SETTINGS, STREAMS_SETTINGS
from .logs import LOG_SETTINGS
from .no_effect import NO_EFFECT_SETTINGS
from .nodes import NODE_SETTINGS
from .sasl import PREFIXED_BY_MECHANISM, SASL_SETTINGS
from .tls import TLS_SETTINGS
from .topics import TOPIC_SETTINGS

BROKER_SETTINGS = dict(
    sorted(
        {
            **NODE_SETTINGS,
            **LOG_SETTINGS,
            **SHARE_SETTINGS,
            **STREAMS_SETTINGS,
            **SASL_SETTINGS,
            **TLS_SETTINGS,
            **NO_EFFECT_SETTINGS,
        }.items()
    )
)
"""Every broker name, in alphabetical order."""

__all__ = [
    "BROKER_SETTINGS",
    "CLIENT_METRICS_SETTINGS",
    "GROUP_SETTINGS",
    "NO_EFFECT_SETTINGS",
    "PREFIXED_BY_MECHANISM",
    "TLS_SETTINGS",
    "TOPIC_SETTINGS",
]
