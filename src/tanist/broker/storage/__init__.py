"""What a broker does to its logs beside replication: retention, checkpoints, compaction, salvage."""
