"""Spark beside a Kafka-wire cluster: topics, replicas' files and histories as DataFrames (docs/spark.md).

Needs the extra `spark`. Importing this imports PySpark, so that no other room does: import-linter holds it. The modules
`batch_table`, `record_columns` and `fingerprints` know numpy only; `arrow_rows` makes Arrow of what they find.
"""

from tanist.spark.local_session import register, session

__all__ = ["register", "session"]
