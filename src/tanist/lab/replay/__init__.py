"""Replays: what happened in a run, moment by moment."""
