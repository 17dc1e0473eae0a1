"""The GitHub actions (`actions/`) and the dev container feature (`devcontainer/`): their files, and scripts run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tanist.testing import Cluster
from tests.testing.wheel import build_wheel

ROOT = Path(__file__).resolve().parents[2]
ACTIONS = sorted((ROOT / "actions").glob("*/action.yml"))
FEATURE = ROOT / "devcontainer" / "tanist"
SCRIPTS = [*sorted((ROOT / "actions").glob("*/*.sh")), FEATURE / "install.sh"]

# GitHub: "Metadata syntax for GitHub Actions". Dev containers: "devcontainer-feature.json properties".
ACTION_KEYS = {"name", "author", "description", "inputs", "outputs", "runs", "branding"}
INPUT_KEYS = {"description", "required", "default", "deprecationMessage"}
STEP_KEYS = {"run", "shell", "if", "name", "id", "env", "working-directory", "uses", "with", "continue-on-error"}
FEATURE_KEYS = {
    *("id", "version", "name", "description", "documentationURL", "licenseURL", "keywords", "options", "containerEnv"),
    *("privileged", "init", "capAdd", "securityOpt", "entrypoint", "customizations", "dependsOn", "installsAfter"),
    *("legacyIds", "deprecated", "mounts", "onCreateCommand", "postCreateCommand", "postStartCommand"),
}


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.parent.name)
def test_an_action_has_the_form_that_github_reads(path: Path) -> None:
    action = yaml.safe_load(path.read_text())
    assert action.keys() <= ACTION_KEYS
    assert action.keys() >= {"name", "description", "runs"}
    for given in action["inputs"].values():
        assert given.keys() <= INPUT_KEYS
        assert isinstance(given["default"], str)
    assert action["runs"]["using"] == "composite"
    ids = set()
    for step in action["runs"]["steps"]:
        assert step.keys() <= STEP_KEYS
        assert ("run" in step) != ("uses" in step)
        assert ("run" in step) == ("shell" in step)
        ids.add(step.get("id"))
        for script in re.findall(r"\$GITHUB_ACTION_PATH/(\S+?)\"", step.get("run", "")):
            assert (path.parent / script).exists()
    for name in re.findall(r"inputs\.([\w-]+)", path.read_text()):
        assert name in action["inputs"]
    for output in action["outputs"].values():
        assert output.keys() == {"description", "value"}
        (step,) = re.findall(r"steps\.(\w+)\.outputs\.\w+", output["value"])
        assert step in ids


def test_a_script_reads_what_its_action_gives_it() -> None:
    for path in ACTIONS:
        given = set(re.findall(r"(INPUT_\w+):", path.read_text()))
        for script in path.parent.glob("*.sh"):
            assert set(re.findall(r"\bINPUT_\w+", script.read_text())) == given


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_scripts_are_sound(script: Path) -> None:
    assert os.access(script, os.X_OK)
    shell = "bash" if "bash" in script.read_text().partition("\n")[0] else "sh"
    subprocess.run([shell, "-n", script], check=True)


def test_the_feature_has_the_form_that_dev_containers_read() -> None:
    feature = json.loads((FEATURE / "devcontainer-feature.json").read_text())
    assert feature.keys() <= FEATURE_KEYS
    assert feature.keys() >= {"id", "version", "name"}
    assert feature["id"] == FEATURE.name
    assert re.fullmatch(r"\d+\.\d+\.\d+", feature["version"])
    script = (FEATURE / "install.sh").read_text()
    for name, option in feature["options"].items():
        assert option.keys() <= {"type", "default", "description", "proposals", "enum"}
        assert isinstance(option["default"], str if option["type"] == "string" else bool)
        assert f"${{{name.upper()}:-{option['default']}}}" in script
    assert feature["entrypoint"] == "/usr/local/share/tanist/start.sh"
    assert feature["containerEnv"]["TANIST_DATA"] == "/var/lib/tanist/cluster"


def job(tmp_path: Path) -> dict[str, str]:
    """The environment of a step."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TANIST_")} | {
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_ENV": str(tmp_path / "env"),
        "GITHUB_PATH": str(tmp_path / "path"),
    }


def pairs(path: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in Path(path).read_text().splitlines())


@pytest.mark.clients
def test_the_actions_steps(tmp_path: Path) -> None:
    """`cluster`, a failing test's step, and `keep-data`, with what GitHub carries from one to the next."""
    settings = "min.insync.replicas=1\n\nnum.partitions=3\n"
    inputs = {"INPUT_PACKAGE": str(build_wheel()), "INPUT_BROKERS": "1", "INPUT_PORT": "0", "INPUT_CONFIG": settings}
    environment = job(tmp_path) | inputs
    subprocess.run(["bash", ROOT / "actions/cluster/up.sh"], env=environment, cwd=tmp_path, check=True, timeout=300)
    outputs, exported = pairs(environment["GITHUB_OUTPUT"]), pairs(environment["GITHUB_ENV"])
    path = f"{Path(environment['GITHUB_PATH']).read_text().strip()}:{os.environ['PATH']}"
    later = environment | exported | {"PATH": path, "INPUT_DATA": ""}
    try:
        assert exported == {"TANIST_DATA": outputs["data"], "TANIST_BOOTSTRAP": outputs["bootstrap"]}
        with Cluster.connect(outputs["bootstrap"]) as cluster:
            assert cluster.create_topic("orders", partitions=-1) == "orders"
            assert len(cluster.partition_states("orders")) == 3
        said = subprocess.run(["tanist", "status"], env=later, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "broker" in said.stdout
    finally:
        packing: list[str | Path] = ["bash", ROOT / "actions/keep-data/pack.sh"]
        done = subprocess.run(packing, env=later, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Topic: orders" in done.stdout
    with tarfile.open(pairs(environment["GITHUB_OUTPUT"])["archive"]) as archive:
        names = archive.getnames()
    assert any(name.endswith("/cluster.json") for name in names)
    assert any("orders-0/" in name for name in names)


def test_the_feature_asks_no_index_for_tanist(tmp_path: Path) -> None:
    feature = Path(shutil.copytree(FEATURE, tmp_path / "feature"))
    environment = os.environ | {"PREFIX": str(tmp_path / "usr"), "DATA": str(tmp_path / "data"), "PACKAGE": ""}
    done = subprocess.run(["sh", feature / "install.sh"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"no wheel of tanist in {feature}: `make wheel`" in done.stderr
    assert not (tmp_path / "usr").exists()


@pytest.mark.clients
def test_the_feature_installs_and_starts_a_cluster(tmp_path: Path) -> None:
    prefix, data = tmp_path / "usr", tmp_path / "data"
    feature = Path(shutil.copytree(FEATURE, tmp_path / "feature"))
    shutil.copy(build_wheel(), feature)
    options = {"BROKERS": "1", "PREFIX": str(prefix), "DATA": str(data)}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TANIST_")}
    subprocess.run(["sh", feature / "install.sh"], env=environment | options, check=True, timeout=300)
    tanist = prefix / "bin" / "tanist"
    entry = prefix / "share" / "tanist" / "start.sh"
    try:
        said = subprocess.run([entry, "echo", "the container's command"], capture_output=True, text=True, check=True)
        assert said.stdout == "the container's command\n", said.stderr
        status: list[str | Path] = [tanist, "status", "--json", "--data", data / "cluster"]
        found: dict[str, Any] = json.loads(subprocess.run(status, capture_output=True, text=True, check=True).stdout)
        with Cluster.connect(found["bootstrap"]) as cluster:
            assert cluster.brokers == (1,)
    finally:
        subprocess.run([tanist, "down", "--data", data / "cluster"], check=True)
