"""The virtual world: a clock, a network and disks under one scheduler, driven by one seed.

`broker.Node` cannot tell it from the real one. Time passes only from event to event, so hours take seconds; everything
that chance decides comes from the world's seed, so the same seed gives the same history, byte for byte.
"""
