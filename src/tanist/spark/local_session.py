"""A Spark session that is ready on one machine, with tanist's data sources in it.

Owns the settings without which the sources do not work (workers' Python, push-down of filters, UTC) and those that a
session on a laptop or in CI wants. A session of a cluster must not get what is right for one machine alone: executors
would look for the driver on their own. To a session that somebody else has made, `register` adds the sources; it then
needs `spark.sql.python.filterPushdown.enabled=true` for filters to reach the files.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tanist.spark.java_home import find_java_home
from tanist.spark.metadata.source import MetadataDataSource
from tanist.spark.segments.source import SegmentsDataSource
from tanist.spark.spark_home import own_packages, own_python, without_zips
from tanist.spark.topic_source import TopicDataSource

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.log.level": "ERROR",
    # Kafka's timestamps are instants; a session in the machine's zone would show and filter them by another clock.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Of each plan there is a text, for a page that is off. Those of cached tables are in it wherever they are used: an
    # audit's would be hundreds of MB.
    "spark.sql.maxPlanStringLength": "100000",
    # Thousands of jobs that have ended would be kept for that page: 10 MB of each audit of a service.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    # A stream writes two small files into its checkpoint at every trigger. Hadoop's checksums make them four, and
    # without its native library it starts a process for each, to set the file's mode: half of a small trigger's time.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}

_ONE_MACHINE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # 200 tasks for each shuffle are for clusters.
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
}
"""Where driver and executors are on this machine, and it alone has the cores: `local`, `local[4]`, `local-cluster`."""
_DAEMON: Final = "spark.python.daemon.module"
_PYTHONS: Final = ("spark.pyspark.python", "spark.pyspark.driver.python")
_REMOTE: Final = "sc://"
_OF_SESSIONS: Final = ("spark.sql.session.timeZone", "spark.sql.python.filterPushdown.enabled")
"""The settings that a session may change on a server that is not its own."""


def session(**conf: str | int | bool) -> SparkSession:
    """A session with the sources registered, local unless `master` says otherwise: `spark://...` is a cluster, `sc://...`
    a Spark Connect server. `getOrCreate`, so that a second call gives the same one. The options of spark-submit
    count where nothing is said here.

    Settings are named as Spark's, with `__` for dots where Python wants a word: `session(master="local[2]",
    spark__driver__memory="8g")`, or `session(**{"spark.driver.memory": "8g"})`. No Java need be on the machine.
    """
    asked = {setting_name(name): _text(value) for name, value in conf.items()}
    asked = _submitted() | asked
    master = asked.pop("spark.master", "local[*]")
    if master.startswith(_REMOTE):
        return _remote_session(master, asked)
    local = master.startswith("local")
    settings = _SETTINGS | (_ONE_MACHINE if local else {}) | asked
    os.environ.setdefault("JAVA_HOME", find_java_home())
    # Else workers run whatever `python3` is on the PATH, in which tanist and pyarrow are not installed.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(settings.pop("spark.app.name", "tanist"))
    # Elsewhere nothing says that a worker's Python has tanist before a task has brought it.
    own = local and own_python() and not settings.keys() & set(_PYTHONS)
    if own:
        settings.setdefault(_DAEMON, "tanist.spark.worker_daemon")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with without_zips() if own else own_packages():
        spark = builder.getOrCreate()
    register(spark)
    return spark


def _submitted() -> dict[str, str]:
    """The settings of spark-submit, which has started Java before Python."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    # Java's defaults are in a configuration that is made when Python knows Java, and in no other.
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _remote_session(address: str, asked: dict[str, str]) -> SparkSession:
    """A session of a Spark Connect server. The server configures its machines: no Java is looked for here."""
    settings = {name: value for name, value in _SETTINGS.items() if name in _OF_SESSIONS}
    settings |= asked
    builder = SparkSession.builder.remote(address)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def register(spark: SparkSession | None = None) -> None:
    """Add `tanist`, `tanist-segments` and `tanist-metadata` to a session: to the active one, if none is named."""
    spark = spark or SparkSession.active()
    for source in (TopicDataSource, SegmentsDataSource, MetadataDataSource):
        spark.dataSource.register(source)


def setting_name(name: str) -> str:
    """`master` and `spark__driver__memory`, as Spark has them."""
    dotted = name.replace("__", ".")
    return dotted if dotted.startswith("spark.") else f"spark.{dotted}"


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
