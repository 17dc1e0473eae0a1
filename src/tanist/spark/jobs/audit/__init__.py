"""The audit of a topic's replicas: read, compare, explain."""
