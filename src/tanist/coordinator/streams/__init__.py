"""Streams groups (KIP-1071): the topology of an application, and its tasks among its members."""
