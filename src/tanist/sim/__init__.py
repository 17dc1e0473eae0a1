"""The virtual world: a clock, a network and disks under one scheduler, driven by one seed.

`broker.Node` runs on it unchanged. Time passes only from event to event, so hours take seconds. Every random choice
comes from the world's seed, so the same seed gives the same history, byte for byte.
"""
