"""librdkafka's tests that concern security, on three nodes that are started for them.

The C program that its sources build, in rounds as `tests/sasl_test.py` of them has them: each with a listener, a way to
log in, and the tests that look at it. Where that script expects a round to fail, a test that passes has failed here.
Tokens come from the issuer that librdkafka's tests bring along (trivup's, in an archive beside them).
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tanist.broker import sasl_properties
from tanist.security.jaas import OAUTH_MODULE
from tests.clients.install import CACHE
from tests.interop import apache
from tests.suites.librdkafka.files import ClientKey, TlsFiles
from tests.suites.librdkafka.issuer import Issuer, issuer
from tests.suites.nodes import ACLS, SECURED, SecuredNodes
from tests.suites.results import Result, from_librdkafka

NAME: Final = "librdkafka-secured"
USERS: Final = {"myuser": "mypassword", "admin": "admin"}
REAUTHENTICATE_MS: Final = 20_000
"""0142's tokens are good for half of it; a share consumer that it waits for joins by its second heartbeat, in 5 s."""
NO_SUMMARY: Final = "the program did not come to its end"


@dataclass(frozen=True, slots=True)
class Round:
    """Tests by number, and how their clients come in."""

    name: str
    listener: str
    tests: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    fails: bool = False
    """Nobody is to get in."""


def _login(mechanism: str, user: str = "myuser") -> dict[str, str]:
    return {"sasl.mechanisms": mechanism, "sasl.username": user, "sasl.password": USERS["myuser"]}


def _unsigned(scope: str) -> dict[str, str]:
    return {
        "sasl.mechanisms": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": f"scope={scope} principal=admin",
    }


OIDC: Final = "OIDC"
ROUNDS: Final = (
    # Of the client alone: certificates, keys and callbacks.
    Round("local", "PLAINTEXT", ("0080", "0097", "0124", "0128", "0133", "0134")),
    Round("PLAINTEXT", "PLAINTEXT", ("0001", "0109", "0115", "0119")),
    Round("SSL", "SSL", ("0001", "0097")),
    Round("PLAIN", "SASL_PLAINTEXT", ("0001", "0135", "0142"), _login("PLAIN")),
    Round("PLAIN, wrong user", "SASL_PLAINTEXT", ("0001",), _login("PLAIN", "wrongjoe"), fails=True),
    Round("SCRAM-SHA-256", "SASL_PLAINTEXT", ("0001", "0135"), _login("SCRAM-SHA-256")),
    Round("PLAIN in TLS", "SASL_SSL", ("0001", "0097"), _login("PLAIN")),
    Round("SCRAM-SHA-512 in TLS", "SASL_SSL", ("0001", "0081", "0135"), _login("SCRAM-SHA-512")),
    Round("OAUTHBEARER", "SASL_PLAINTEXT", ("0001", "0142"), _unsigned("requiredScope")),
    Round("OAUTHBEARER, wrong scope", "SASL_PLAINTEXT", ("0001",), _unsigned("wrongScope"), fails=True),
    Round(OIDC, OIDC, ("0001", "0126", "0142")),
)  # fmt: skip


def run(target: str, *, only: str | None, limit_s: float, checkout: Path | None) -> list[Result]:
    """`only`: a part of a round's name, or a test's number."""
    if (reason := _missing(checkout)) is not None or checkout is None:
        raise SystemExit(reason)
    rounds = _chosen(only)
    deadline = time.monotonic() + limit_s
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="suites-") as scratch:
        folder = Path(scratch)
        files, key = TlsFiles(folder), ClientKey(folder)
        tokens = stack.enter_context(issuer(_trivup(checkout, folder), key, folder)) if _wants_tokens(rounds) else None
        nodes = _nodes(target, folder, files, tokens)
        nodes.start()
        stack.callback(nodes.stop)
        nodes.add_scram_user("myuser", USERS["myuser"])
        common = {"TEST_KAFKA_VERSION": apache.VERSION, "BROKERS": nodes.bootstrap("PLAINTEXT")}
        common["KAFKA_PATH"] = str(_tools(folder))
        results = []
        with (CACHE / f"suites-librdkafka-{target}.log").open("w") as log:
            for each in rounds:
                settings = {
                    "broker.address.family": "v4",
                    "test.timeout.multiplier": "2",
                    "bootstrap.servers": nodes.bootstrap(each.listener),
                    "security.protocol": nodes.listeners[each.listener],
                    **(files.settings() if "SSL" in each.listener else {}),
                    **(tokens.settings() if tokens is not None and each.name == OIDC else each.settings),
                }
                conf = folder / "test.conf"
                conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
                more = {**common, "RDKAFKA_TEST_CONF": str(conf)}
                if "SSL" in each.listener:
                    more |= files.environment()
                if tokens is not None:
                    more |= tokens.environment() | key.environment()
                for number in each.tests:
                    output = _run(checkout, {**more, "TESTS": number}, max(deadline - time.monotonic(), 1.0))
                    log.write(f"\n======== {each.name}: {number}\n{output}")
                    log.flush()
                    results += _results(each, number, output)
        return results


def _missing(checkout: Path | None) -> str | None:
    if checkout is None or not (checkout / "tests" / "test-runner").is_file():
        return f"{NAME} needs --checkout FOLDER: librdkafka's sources, with the tests built that they have"
    return apache.missing()


def _chosen(only: str | None) -> Sequence[Round]:
    if only is None:
        return ROUNDS
    found = [each if only in each.name else replace(each, tests=tuple({only} & {*each.tests})) for each in ROUNDS]
    return [each for each in found if each.tests]


def _wants_tokens(rounds: Sequence[Round]) -> bool:
    return any(each.name == OIDC for each in rounds)


def _nodes(target: str, folder: Path, files: TlsFiles, tokens: Issuer | None) -> SecuredNodes:
    listeners = SECURED if tokens is None else {**SECURED, OIDC: "SASL_PLAINTEXT"}
    bearer = "listener.name.sasl_plaintext.oauthbearer.sasl"
    oidc = "listener.name.oidc.oauthbearer.sasl"
    more = {
        "num.partitions": "4",
        "default.replication.factor": "3",
        # As their scripts have it: with TLS 1.3 a client hears after its handshake that its certificate is refused.
        "ssl.enabled.protocols": "TLSv1.2",
        "connections.max.reauth.ms": str(REAUTHENTICATE_MS),
        "group.share.min.record.lock.duration.ms": "1000",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{bearer}.server.callback.handler.class": sasl_properties.UNSECURED,
        f"{bearer}.jaas.config": f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="admin" '
        'unsecuredLoginLifetimeSeconds="3600" unsecuredValidatorRequiredScope="requiredScope";',
    }
    java: tuple[str, ...] = ()
    if tokens is not None:
        java = (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens.keys_url}",)
        more |= {
            "listener.name.oidc.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{oidc}.server.callback.handler.class": sasl_properties.SECURED,
            f"{oidc}.jaas.config": f"{OAUTH_MODULE} required;",
            f"{oidc}.oauthbearer.jwks.endpoint.url": tokens.keys_url,
            f"{oidc}.oauthbearer.scope.claim.name": "scp",
            f"{oidc}.oauthbearer.expected.audience": "api://default",
        }
    return SecuredNodes(target, folder, listeners, stores=files.node_stores(), users=USERS, more=more, java=java)


def _tools(folder: Path) -> Path:
    """A folder with the one script of Apache Kafka's that these tests call."""
    script = folder / "kafka" / "bin" / "kafka-acls.sh"
    script.parent.mkdir(parents=True)
    command = apache.java_command(ACLS, flags=apache.TOOL_FLAGS)
    script.write_text(f'#!/bin/bash\nexec {shlex.join(command)} "$@"\n')
    script.chmod(0o755)
    return script.parent.parent


def _trivup(checkout: Path, folder: Path) -> Path:
    """The folder of the Python package `trivup`, unpacked."""
    (packed,) = (checkout / "tests" / "trivup").glob("trivup-*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder / "trivup", filter="data")
    (root,) = (folder / "trivup").iterdir()
    return root


def _run(checkout: Path, more: Mapping[str, str], limit_s: float) -> str:
    """What the program prints, as far as it comes. A process for each test: the next one outlives it."""
    tests = checkout / "tests"
    libraries = {"LD_LIBRARY_PATH": f"{checkout / 'src'}:{checkout / 'src-cpp'}"}
    # It aborts when a test has failed, and takes along what it has not written.
    command = ["stdbuf", "-oL", "./test-runner", "-p1", "-K"]
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        try:
            subprocess.run(
                command, cwd=tests, env={**os.environ, **libraries, **more}, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, check=False, timeout=limit_s,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            output.write("\nno time is left\n")
        output.seek(0)
        return output.read()


def _results(each: Round, number: str, output: str) -> list[Result]:
    """Under the round's name; a test that did not run at all has failed."""
    results = []
    for result in from_librdkafka(output) or [Result(number, "failed", NO_SUMMARY)]:
        if each.fails and result.outcome == "passed":
            result = replace(result, outcome="failed", reason="somebody got in")
        elif each.fails and result.reason != NO_SUMMARY:
            result = replace(result, outcome="passed", reason="")
        results.append(replace(result, name=f"{each.name}: {result.name}"))
    return results
