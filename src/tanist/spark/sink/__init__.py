"""Writing rows to a topic, exactly once."""
