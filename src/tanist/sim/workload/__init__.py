"""Clients of a run: producers, consumers, group members, and operators who change topics."""
