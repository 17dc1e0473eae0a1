"""An S3 server of this machine: moto's, in an environment of its own."""

from __future__ import annotations

import os
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
def object_store(log: Path, *, asks_who: bool = False) -> Iterator[dict[str, str]]:
    """With the bucket `BUCKET`; the variables by which its clients find it. With `asks_who` it knows nobody of them."""
    moto = install.venv("object-store-venv", LOCK) / "bin" / "moto_server"
    port = free_port()
    place = f"http://127.0.0.1:{port}"
    with log.open("wb") as said:
        # The first request, which is not signed, makes the bucket.
        env = os.environ | ({"INITIAL_NO_AUTH_ACTION_COUNT": "1"} if asks_who else {})
        command = [str(moto), "--host", "127.0.0.1", "--port", str(port)]
        server = subprocess.Popen(command, env=env, stdout=said, stderr=said)
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


def upload(folder: Path, address: str) -> str:
    """The files below a folder, to `s3://BUCKET/...`; the address again."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            key = f"{address.removeprefix('s3://')}/{path.relative_to(folder)}"
            place, kind = f"{os.environ['AWS_ENDPOINT_URL']}/{key}", {"Content-Type": "application/octet-stream"}
            with urlopen(Request(place, path.read_bytes(), kind, method="PUT"), timeout=PATIENCE_S) as answer:
                assert answer.status == 200
    return address
