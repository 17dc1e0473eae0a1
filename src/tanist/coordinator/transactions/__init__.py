"""Transactions of producers (KIP-98, KIP-890): the state of each transactional id, replayed from its records."""
