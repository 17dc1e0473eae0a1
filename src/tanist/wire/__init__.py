"""Bytes <-> messages: the room that knows Kafka's formats and nothing of what they mean."""
