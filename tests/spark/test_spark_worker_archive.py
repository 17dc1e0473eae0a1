"""What `tanist spark package` packs is enough for a Python that has no package."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.cli.spark.group import spark_command
from tanist.spark.worker_archive import write_archive

IMPORTED = "import tanist.sim.run.chaos_run, tanist.client.security, deltalake, pyarrow; print(tanist.__file__)"


def package(*arguments: str) -> Result:
    return CliRunner().invoke(spark_command, ["package", *arguments])


def test_a_python_without_packages_runs_with_it(tmp_path: Path) -> None:
    done = package(str(tmp_path / "env.tar.gz"), "--json")
    assert done.exit_code == 0, done.output
    written = json.loads(done.stdout)
    assert written["conf"]["spark.archives"] == f"{tmp_path / 'env.tar.gz'}#tanist-env"
    assert {"tanist", "pyarrow", "deltalake"} <= {each.split()[0] for each in written["packages"]}
    assert not {"pyspark", "pytest", "ruff"} & {each.split()[0] for each in written["packages"]}
    folder = tmp_path / "unpacked"
    with tarfile.open(written["path"]) as file:
        file.extractall(folder, filter="data")
    base = Path(sys.base_prefix) / "bin" / written["python"]
    command = [str(base), "-s", "-c", IMPORTED]
    ran = subprocess.run(command, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert Path(ran.stdout.strip()).is_relative_to(folder)


def test_names_that_spark_would_not_unpack_and_folders_that_are_not_there_are_refused(tmp_path: Path) -> None:
    done = package(str(tmp_path / "env.rar"))
    assert (done.exit_code, "end env.rar with .tar.gz" in done.output) == (2, True)
    done = package(str(tmp_path / "none" / "env.tar.gz"))
    assert (done.exit_code, "there is no folder" in done.output) == (2, True)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "env.tar.gz"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        write_archive(path)
    assert not path.is_symlink()
