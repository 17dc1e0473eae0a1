"""Clients of a run: producers, readers, group members, and operators who change topics."""
