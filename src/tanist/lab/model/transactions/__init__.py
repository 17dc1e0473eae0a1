"""The model of transactions: one transactional id and two instances of its application as a space of states."""
