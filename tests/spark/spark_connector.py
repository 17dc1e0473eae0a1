"""Spark's own Kafka source, `format("kafka")`, in the session of the tests: the nearest version that Maven has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.interop import maven
from tests.interop.cluster import CACHE

POM = Path(__file__).with_name("spark_connector.pom.xml")
JARS = CACHE / "spark-kafka-4.2.0"


def missing() -> str | None:
    return None if maven.can_fetch(POM, JARS) else "needs Maven to fetch Spark's Kafka source (mvn is not on PATH)"


def add_to(spark: Any) -> None:
    for jar in sorted(maven.fetched(POM, JARS).glob("*.jar")):
        spark.sql(f"ADD JAR '{jar}'")
