"""Bytes <-> messages: Kafka's formats, without their meaning."""
