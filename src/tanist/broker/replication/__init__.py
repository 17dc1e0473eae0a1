"""Hosted partitions: leading, following, the ISR, reads that wait, and elections' effects."""
