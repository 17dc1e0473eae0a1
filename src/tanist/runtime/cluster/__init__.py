"""A cluster of local processes: its file, its folders, starting, stopping, crashing and looking at it."""
