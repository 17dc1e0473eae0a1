"""tanist: a Kafka-compatible replicated log cluster with KIP-966 in full."""

__version__ = "0.1.0"
