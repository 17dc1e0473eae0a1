"""The issuer of tokens that librdkafka's tests ask: trivup's program, in an environment of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from tests.clients.install import venv
from tests.interop.cluster import free_ports
from tests.interop.waiting import wait_for
from tests.suites.librdkafka.files import ClientKey

LOCK = Path(__file__).with_name("requirements.txt")


@dataclass(frozen=True, slots=True)
class Issuer:
    """A running issuer, on the loopback interface."""

    port: int

    @property
    def _url(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def keys_url(self) -> str:
        return f"{self._url}/keys"

    def settings(self) -> dict[str, str]:
        """Of a client that asks it."""
        return {
            "sasl.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.method": "OIDC",
            "sasl.oauthbearer.client.id": "123",
            "sasl.oauthbearer.client.secret": "abc",
            "sasl.oauthbearer.scope": "test",
            "sasl.oauthbearer.extensions": "ExtensionworkloadIdentity=develC348S,Extensioncluster=lkc123",
            "sasl.oauthbearer.token.endpoint.url": f"{self._url}/retrieve",
        }

    def environment(self) -> dict[str, str]:
        return {
            "VALID_OIDC_URL": f"{self._url}/retrieve",
            "INVALID_OIDC_URL": f"{self._url}/retrieve/badformat",
            "EXPIRED_TOKEN_OIDC_URL": f"{self._url}/retrieve/expire",
        }


@contextmanager
def issuer(package: Path, client: ClientKey, folder: Path) -> Iterator[Issuer]:
    """It runs, from the folder that has trivup's package."""
    python = venv("suites-librdkafka-venv", LOCK) / "bin" / "python"
    found = Issuer(free_ports(1))
    command = [str(python), "-m", "trivup.apps.OauthbearerOIDCApp", "--port", str(found.port)]
    with (folder / "issuer.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--client-public-key", str(client.public)], cwd=package,
            env={**os.environ, "PYTHONPATH": str(package)}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_for(lambda: _answers(found.keys_url, process), "the issuer answers", timeout_s=60.0)
        yield found
    finally:
        process.terminate()
        process.wait()


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    if process.poll() is not None:
        raise AssertionError(f"the issuer has ended with {process.returncode}")
    with urlopen(url, timeout=5.0) as answer:
        return bool(answer.status == 200)
