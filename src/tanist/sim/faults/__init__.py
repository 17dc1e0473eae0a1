"""Faults of a run: nodes, links, disks and stored bytes. They emit events and judge nothing."""
