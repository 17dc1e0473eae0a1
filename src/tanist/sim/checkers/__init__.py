"""The checkers of a run: the properties that must hold. Each checker alone owns its state."""
