"""Consumer groups as sans-IO state machines: who the members are, what each was assigned, what they have committed.

`Shard` is what one partition of `__consumer_offsets` says; `Group` one group of the classic protocol in it.
"""
