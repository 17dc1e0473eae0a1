"""A program that `spark-submit` starts, and that calls `session()`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.spark.spark_short_lived import environment

QUERY = Path(__file__).with_name("spark_submitted_query.py")


def test_its_options_count() -> None:
    """A master that is ignored is a job that runs on one machine, in silence."""
    variables = environment()
    options = ("--master", "local[1]", "--name", "submitted", "--conf", "spark.sql.session.timeZone=Asia/Tokyo")
    command = [f"{variables['SPARK_HOME']}/bin/spark-submit", *options, str(QUERY)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("spark.sql.shuffle.partitions") != "200"
    assert found == {
        "spark.master": "local[1]", "spark.app.name": "submitted", "spark.sql.session.timeZone": "Asia/Tokyo",
    }  # fmt: skip
