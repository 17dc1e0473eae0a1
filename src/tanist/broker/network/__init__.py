"""Connections of a node: those that clients open, and those that it opens to other nodes."""
