"""franz-go's own tests of its client (package kgo), as its module has them, on a cluster that runs already.

The version is the one that `tests/clients/franz/go.mod` requires. The suite's knobs are environment variables: brokers
(KGO_SEEDS), and how many records its groups pass on (KGO_TEST_RECORDS, half a million by default; less here).
"""

from __future__ import annotations

import subprocess

from tests.clients import builds
from tests.clients.install import CACHE
from tests.suites.results import Result, from_go

NAME = "franz-go"
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
RECORDS = 5000
PARALLEL = 4


def run(bootstrap: str, *, only: str | None, limit_s: float) -> list[Result]:
    reason = builds.missing_go()
    if reason is not None:
        return [Result(PACKAGE, "skipped", reason)]
    command = [
        "go", "test", "-json", "-mod=readonly", "-count=1", f"-timeout={limit_s:.0f}s", f"-parallel={PARALLEL}",
        *(("-run", only) if only else ()), PACKAGE,
    ]  # fmt: skip
    environment = {"KGO_SEEDS": bootstrap, "KGO_TEST_RECORDS": str(RECORDS), "KGO_LOG_LEVEL": "none"}
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
