"""Runs a client library's own tests, as its authors wrote them, on a cluster: what passed, what did not, and why.

    python -m tests.suites kafka-python                          three brokers of tanist, started for it
    python -m tests.suites franz-go --target apache              the same on Apache Kafka
    python -m tests.suites kafka-python --bootstrap HOST:PORT    a cluster that runs already
    python -m tests.suites kafka-python-secured                  its tests of SASL and TLS, which start nodes
    python -m tests.suites librdkafka-secured --checkout FOLDER  what concerns security, of a folder with its sources

The tests are fetched from PyPI or the Go module proxy in the version that is locked, but for those that neither has
(`--checkout`). Ends with 1 if a test failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from tests.interop import apache, target
from tests.interop.cluster import interrupt_on_sigterm, wait_ready
from tests.suites import aiokafka_suite, franz_go_suite, kafka_python_suite, librdkafka_suite, sarama_suite
from tests.suites.results import account

SUITES = {suite.NAME: suite.run for suite in (franz_go_suite, kafka_python_suite)}
SECURED = {
    franz_go_suite.SCRAM_NAME: franz_go_suite.run_scram,
    kafka_python_suite.SECURED_NAME: kafka_python_suite.run_secured,
    sarama_suite.NAME: sarama_suite.run,
}
"""Tests that need nodes of their own: with authentication, TLS, or behind a proxy."""
OF_CHECKOUTS = {suite.NAME: suite.run for suite in (aiokafka_suite, librdkafka_suite)}
"""The same, of sources that no package has."""
LIMIT_MINUTES = 15.0
START_S = 300.0


@contextmanager
def brokers(kind: str) -> Iterator[str]:
    """Three brokers with everything at its default; their bootstrap servers."""
    if kind == "apache" and (reason := apache.missing()) is not None:
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory(prefix=f"suites-{kind}-") as folder:
        cluster = target.make(kind, Path(folder))
        try:
            if isinstance(cluster, apache.ApacheCluster):
                # Three Java processes take minutes where the machine is busy: longer than `start` would wait.
                cluster.format()
                for node_id in cluster.node_ids:
                    cluster.start_node(node_id)
                wait_ready(cluster, timeout_s=START_S, alive=cluster.check_alive)
            else:
                cluster.start()
            yield cluster.bootstrap
        finally:
            cluster.stop()


@contextmanager
def running(bootstrap: str) -> Iterator[str]:
    yield bootstrap


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=__doc__.partition("\n\n")[0])
    parser.add_argument("suite", choices=sorted((*SUITES, *SECURED, *OF_CHECKOUTS)))
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--bootstrap", help="a cluster that runs already")
    where.add_argument("--target", choices=target.TARGETS, default="tanist", help="three brokers of it are started")
    parser.add_argument("--checkout", type=Path, help="the folder of the suite's sources, where no package has them")
    parser.add_argument("--only", help="tests whose names match, as the suite's runner understands it")
    parser.add_argument("--minutes", type=float, default=LIMIT_MINUTES, help="for all of it (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the results there too")
    chosen = parser.parse_args(arguments)
    interrupt_on_sigterm()
    limits = {"only": chosen.only, "limit_s": 60 * chosen.minutes}
    if chosen.suite in SECURED:
        results = SECURED[chosen.suite](chosen.target, **limits)
    elif chosen.suite in OF_CHECKOUTS:
        checkout = chosen.checkout and chosen.checkout.resolve()
        results = OF_CHECKOUTS[chosen.suite](chosen.target, checkout=checkout, **limits)
    else:
        with running(chosen.bootstrap) if chosen.bootstrap else brokers(chosen.target) as bootstrap:
            results = SUITES[chosen.suite](bootstrap, **limits)
    print(account(results))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")
    return 1 if any(result.outcome == "failed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
