"""The sources in a Declarative Pipeline: what a file of definitions calls first (examples/pipelines).

Owns what such a session needs beyond `tanist.spark.register`. The definition of a pipeline is a client of Spark
Connect: nothing here touches a JVM, and nothing reads.

A client of PySpark 4.3.0 takes only events from the server while a pipeline runs. The server also sends what Python
workers have counted, at the end of a run in which a source of Python was read by a batch; `spark-pipelines` then prints
UNKNOWN_RESPONSE and exits with 1, though all is done and written. So that answer, which nobody asked for, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import SparkSession

from tanist.spark import register

_COUNTED: Final = "__python_accumulator__"
_FETCH: Final = "_execute_and_fetch_as_iterator"


def attach(spark: SparkSession | None = None) -> SparkSession:
    """Add the sources to the pipeline's session, and give it. Every file of definitions may call it."""
    session = spark or SparkSession.active()
    register(session)
    client: Any = session.client
    # Of the instance, and once: a session of the same process that is no pipeline's is as it was.
    if _FETCH not in vars(client):
        setattr(client, _FETCH, _Uncounted(getattr(client, _FETCH)))
    return session


class _Uncounted:
    """The server's answer, without the counters of workers."""

    def __init__(self, fetch: Any) -> None:
        self._fetch = fetch

    def __call__(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        for response in self._fetch(*arguments, **named):
            if getattr(response, "name", None) != _COUNTED:
                yield response
