"""Decisions about partitions: leaders, ISR and ELR (KIP-966), unclean recovery, reassignments, directories."""
