"""The process that Spark's Python workers are forked from, with what they import already there.

PySpark's own daemon imports nothing, so that no thread is there when it forks; each worker then imports PySpark's
worker, numpy, Arrow and pandas anew: 0.5 s of CPU, two without compiled bytecode, after each minute in which it had
nothing to do. This one imports them once. `spark.python.daemon.module=tanist.spark.worker_daemon` says so to Spark, and
it must never fork beside a thread: if a library has started one in spite of all, PySpark's daemon takes over.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Final

IMPORTED: Final = (
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    # Arrow looks whether what it is given is of pandas, and imports it therefore. It is the most expensive of all.
    "pandas",
    "pyarrow.pandas_compat",
    "pyarrow.compute",
    "tanist.spark.topic_source",
    "tanist.spark.topic.batch",
    "tanist.spark.topic.reading",
    "tanist.spark.segments.source",
    "tanist.spark.segments.planning",
    "tanist.spark.segments.reading",
    "tanist.spark.sink.missing_rows",
    "tanist.spark.sink.transaction",
)
_ARROW_MEMORY: Final = "JE_ARROW_MALLOC_CONF"
"""Arrow's build of jemalloc begins a thread when it is loaded, even if Arrow then takes its memory elsewhere."""


def main() -> None:
    if sys.platform == "linux":
        import_all()
        if threads() > 1:
            os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    from pyspark.daemon import manager

    manager()


def import_all() -> None:
    """What workers need. What is there now is none of the collector's business, neither here nor in the workers, which
    collect after each task; and its memory stays shared.
    """
    chosen = _ARROW_MEMORY in os.environ
    os.environ.setdefault(_ARROW_MEMORY, "background_thread:false")
    for name in IMPORTED:
        import_module(name)
    if not chosen:
        del os.environ[_ARROW_MEMORY]
    # Unlike Python's own, numpy's generator goes on as a copy in each fork: all workers would draw the same numbers.
    os.register_at_fork(after_in_child=import_module("numpy").random.seed)
    gc.collect()
    gc.freeze()


def threads() -> int:
    """Of this process: of libraries as well as of Python."""
    return len(os.listdir("/proc/self/task"))


if __name__ == "__main__":
    main()
