"""The pipeline's jobs: each a function over DataFrames, and a command `tanist spark JOB` (docs/pipeline.md).

A job's plan runs in Spark; what comes to the driver are findings and counts, bounded. Jobs know no command line, and
print nothing: progress is a callable that gets the name of each step.
"""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Is called with the name of each step as it begins."""
