"""Consumer groups as sans-IO state machines: members, assignments, committed offsets.

`Shard` has the groups of one partition of `__consumer_offsets`; `Group` is one group of the classic protocol.
"""
