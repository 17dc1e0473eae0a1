"""Transactions on a broker: the coordinator of those whose ids are here, and the partitions to which they write."""
