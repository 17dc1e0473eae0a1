"""The operator's commands: `tanist ...`."""
