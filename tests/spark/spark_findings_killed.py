"""Adds a run to a table of findings, and is killed between its files and what makes them count."""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime
from typing import Any

from deltalake import DeltaTable

from tanist.spark import session
from tanist.spark.jobs.audit.by_spark.findings import written
from tanist.spark.jobs.audit.findings import SCHEMA
from tanist.spark.jobs.audit.findings_table import FindingsTable, Run

RUN = Run("killed", datetime(2026, 1, 1, tzinfo=UTC), "c0ffee", "data")


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(place: str, table_format: Any) -> None:
    spark = session(master="local[2]", spark__sql__shuffle__partitions=2)
    DeltaTable.create_write_transaction = die
    os.rename = die
    rows = spark.createDataFrame([("lost-write", "orders", 0, 7, 9, 3)], ", ".join(SCHEMA.split(",")[:6]))
    others = [f"CAST(NULL AS {each.split()[1]}) AS {each.split()[0]}" for each in SCHEMA.split(",")[6:]]
    whole = rows.selectExpr("*", *others, "CAST(NULL AS string) AS explained")
    FindingsTable(place, table_format).append(written(whole), RUN)


if __name__ == "__main__":
    main(*sys.argv[1:])
