"""Named protocol situations, counted in a run by the events of its nodes."""
