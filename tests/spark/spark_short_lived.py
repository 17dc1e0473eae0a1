"""Spark in processes of its own that live for a minute: Java compiles little, Python nothing that is compiled."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tanist.spark.java_home import find_java_home
from tanist.spark.spark_home import linked

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def environment() -> dict[str, str]:
    """For `spark-submit` and the like. Everything that they start is on 127.0.0.1."""
    import pyspark

    return os.environ | {
        "JAVA_HOME": find_java_home(), "JAVA_TOOL_OPTIONS": JAVA_OPTIONS, "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": linked(Path(pyspark.__file__).parent), "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
