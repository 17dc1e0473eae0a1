from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from tanist.cli.spark import group as spark
from tanist.installed import add_extra


def test_without_pyspark_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "find_spec", lambda _: None)
    for job in (["audit"], ["merge-back"], ["story"], ["seeds", "--output", "t"], ["ingest", "t", "--topic", "x"]):
        result = CliRunner().invoke(spark.spark_command, job)
        assert (result.exit_code, result.output.count("\n")) == (2, 1)
        assert add_extra("spark") in result.output


def test_help_needs_no_pyspark_and_loads_none() -> None:
    code = (
        "import sys; sys.argv = ['tanist', 'spark', '--help']\n"
        "from tanist.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit('pyspark' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for job in ("audit", "merge-back", "story", "ingest", "egress", "seeds"):
        assert job in found.stdout
