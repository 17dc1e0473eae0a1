"""Faults of real nodes: slow and cut links, disks that are full, read-only or broken."""
