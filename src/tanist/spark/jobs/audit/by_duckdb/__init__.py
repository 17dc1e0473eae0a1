"""By DuckDB, in this process: for one machine. No Java."""
