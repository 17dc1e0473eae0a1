"""Replays: the events of a run, moment by moment."""
