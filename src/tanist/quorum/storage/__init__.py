"""The files of a quorum node: the metadata log, its snapshots, the voters that it names, and `quorum-state`."""
