from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tanist.spark import java_home


def test_the_packaged_java_starts_with_the_module_that_it_lacks(tmp_path: Path) -> None:
    """As Spark's launcher asks it to; without the wrapper it ends with FindException."""
    home = Path(java_home.packaged_java_home(tmp_path))
    java = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Dsome=a b", "-version"]
    reported = subprocess.run(java, env={}, capture_output=True, text=True, timeout=60, check=False)
    assert reported.returncode == 0, reported.stderr
    assert java_home.java_version(java[0]) in java_home.SUPPORTED
    bare = subprocess.run(
        [(home / "lib").resolve().parent / "bin" / "java", *java[1:]], capture_output=True, timeout=60, check=False
    )
    assert bare.returncode != 0


def test_the_wrapper_is_written_once(tmp_path: Path) -> None:
    first = Path(java_home.packaged_java_home(tmp_path)) / "bin" / "java"
    made = first.stat().st_mtime_ns
    second = Path(java_home.packaged_java_home(tmp_path)) / "bin" / "java"
    assert (second, second.stat().st_mtime_ns) == (first, made)
    assert os.listdir(first.parent) == ["java"]


def test_which_java_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    named = tmp_path / "named"
    monkeypatch.setenv("JAVA_HOME", str(named))
    with pytest.raises(java_home.NoJava, match="has no bin/java"):
        java_home.find_java_home()
    (named / "bin").mkdir(parents=True)
    (named / "bin" / "java").touch()
    assert java_home.find_java_home() == str(named)
    monkeypatch.delenv("JAVA_HOME")
    fake = tmp_path / "home" / "bin" / "java"
    fake.parent.mkdir(parents=True)
    fake.write_text("#!/bin/sh\necho 'openjdk version \"17.0.2\"' >&2\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    assert java_home.find_java_home() == str(tmp_path / "home")
    fake.write_text("#!/bin/sh\necho 'java version \"1.8.0_1\"' >&2\n")
    assert java_home.find_java_home().startswith(str(tmp_path / "tanist"))
    monkeypatch.setattr(java_home, "find_spec", lambda name: None)
    with pytest.raises(java_home.NoJava, match=r"\[spark\]"):
        java_home.find_java_home()
