"""The lab: what tanist is held to, and the same faults again and again."""
