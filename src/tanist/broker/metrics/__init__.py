"""Counters and gauges of a node, by Kafka's names, and their text for a scrape."""
