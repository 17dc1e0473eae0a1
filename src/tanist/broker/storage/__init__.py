"""Care of a broker's logs beside replication: retention, checkpoints, compaction, salvage."""
