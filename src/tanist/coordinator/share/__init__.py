"""Share groups (KIP-932): the group, the delivery of a partition's records, and the state of that delivery."""
