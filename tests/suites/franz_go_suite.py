"""franz-go's own tests of its client (package kgo), as its module has them, on a cluster that runs already.

The version is the one that `tests/clients/franz/go.mod` requires. The suite's knobs are environment variables: brokers
(KGO_SEEDS), and how many records its groups pass on (KGO_TEST_RECORDS, half a million by default; less here). Its
tests of SCRAM want a listener with SASL beside the plain one (KGO_TEST_SCRAM_SEEDS), and a user.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.clients import builds
from tests.clients.install import CACHE
from tests.clients.secured import PASSWORDS, running
from tests.suites.results import Result, from_go

NAME = "franz-go"
SCRAM_NAME = "franz-go-scram"
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
RECORDS = 5000
PARALLEL = 4


def run_scram(target: str, *, only: str | None, limit_s: float) -> list[Result]:
    """The tests that authenticate, on a node that has users."""
    password = PASSWORDS["SCRAM-SHA-512"]
    with tempfile.TemporaryDirectory(prefix="suites-") as folder, running(target, Path(folder)) as node:
        scram = {"KGO_TEST_SCRAM_SEEDS": node.bootstrap, "KGO_TEST_SCRAM": f"alice:{password}:512"}
        return run(node.plain, only=only or "SCRAM", limit_s=limit_s, more=scram)


def run(bootstrap: str, *, only: str | None, limit_s: float, more: Mapping[str, str] | None = None) -> list[Result]:
    reason = builds.missing_go()
    if reason is not None:
        return [Result(PACKAGE, "skipped", reason)]
    command = [
        "go", "test", "-json", "-mod=readonly", "-count=1", f"-timeout={limit_s:.0f}s", f"-parallel={PARALLEL}",
        *(("-run", only) if only else ()), PACKAGE,
    ]  # fmt: skip
    environment = {"KGO_SEEDS": bootstrap, "KGO_TEST_RECORDS": str(RECORDS), "KGO_LOG_LEVEL": "none", **(more or {})}
    log = CACHE / "suites-franz-go.log"
    with log.open("w") as output:
        subprocess.run(
            command, cwd=builds.FRANZ, env=dict(builds.go_environment()) | environment, stdout=output,
            stderr=subprocess.STDOUT, check=False, timeout=2 * limit_s + builds.INSTALL_S,
        )  # fmt: skip
    results = from_go(log.read_text(errors="replace").splitlines())
    if not results:
        return [Result(PACKAGE, "failed", f"no test ran: see {log.relative_to(CACHE.parent)}")]
    return results
