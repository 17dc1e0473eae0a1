"""An S3 server of this machine: moto's, in an environment of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import free_port
from tests.clients import install

LOCK = Path(__file__).parent / "object_store" / "requirements.txt"
BUCKET = "bucket"
PATIENCE_S = 60


@contextmanager
def object_store(log: Path) -> Iterator[dict[str, str]]:
    """With the bucket `BUCKET`; the variables by which its clients find it."""
    moto = install.venv("object-store-venv", LOCK) / "bin" / "moto_server"
    port = free_port()
    place = f"http://127.0.0.1:{port}"
    with log.open("wb") as said:
        server = subprocess.Popen([moto, "--host", "127.0.0.1", "--port", str(port)], stdout=said, stderr=said)
    try:
        assert wait_until(lambda: _has_bucket(place), PATIENCE_S), log.read_text()
        yield {
            "AWS_ENDPOINT_URL": place, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "secret",
        }  # fmt: skip
    finally:
        server.kill()
        server.wait()


def _has_bucket(place: str) -> bool:
    try:
        with urlopen(Request(f"{place}/{BUCKET}", method="PUT")) as answer:
            return bool(answer.status == 200)
    except (URLError, ConnectionError):
        return False
