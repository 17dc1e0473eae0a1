"""The runtime of coordinators: shards over the partitions of an internal topic, for groups and transactions."""
