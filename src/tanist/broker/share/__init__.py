"""Share groups on a broker (KIP-932): what members get of the partitions that it leads, and the state of that."""
