"""Metrics that clients push (KIP-714): who is to push what, and what has come."""
