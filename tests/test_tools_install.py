"""`make setup` where packages come from an index that only pip is configured with."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import importlib.util
import os
import shutil
import ssl
import subprocess
import sys
import threading
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "install.py"
_specification = importlib.util.spec_from_file_location("install", TOOL)
assert _specification is not None
assert _specification.loader is not None
install = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(install)


def made(settings: dict[str, str], **environment: str) -> dict[str, str]:
    found: dict[str, str] = install.uv_environment(settings, environment)
    return found


def test_what_pip_was_reported_becomes_what_uv_reads(tmp_path: Path) -> None:
    authorities = tmp_path / "ca.pem"
    assert made({}) == {}
    assert made(
        {
            "index-url": "https://a/simple",
            "extra-index-url": "https://b/simple\nhttps://c/simple",
            "trusted-host": "a b:8080",
            "cert": str(authorities),
            "client-cert": "/me.pem",
            "proxy": "http://proxy:3128",
            "timeout": "60",
            "find-links": "/wheels",
            "no-index": "true",
        }
    ) == {
        "UV_DEFAULT_INDEX": "https://a/simple",
        "UV_INDEX": "https://b/simple https://c/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_INSECURE_HOST": "a b:8080",
        "SSL_CERT_FILE": str(authorities),
        "SSL_CLIENT_CERT": "/me.pem",
        "ALL_PROXY": "http://proxy:3128",
        "UV_HTTP_TIMEOUT": "60",
        "UV_FIND_LINKS": "/wheels",
        "UV_NO_INDEX": "1",
    }


def test_what_uv_was_reported_itself_wins(tmp_path: Path) -> None:
    reported = {"index-url": "https://a/simple", "extra-index-url": "https://b/simple", "timeout": "60"}
    own = {"UV_INDEX_URL": "https://u/simple", "UV_EXTRA_INDEX_URL": "https://v/simple", "UV_HTTP_TIMEOUT": "5"}
    assert made(reported, **own) == {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    assert made({}, REQUESTS_CA_BUNDLE=str(tmp_path)) == {"SSL_CERT_DIR": str(tmp_path)}
    assert made({"cert": "/index.pem"}, SSL_CERT_FILE="/all.pem")["SSL_CERT_FILE"] == "/index.pem"


def test_the_places_where_pip_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://file/simple\ntimeout = 9\n[install]\ntimeout = 10\n[list]\ntimeout = 11\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    found = install.pip_settings(sys.executable)
    assert (found["index-url"], found["timeout"]) == ("https://file/simple", "10")
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable/simple")
    assert install.pip_settings(sys.executable)["index-url"] == "https://variable/simple"


# -- an index on this machine, with a certificate that nobody else trusts


def wheel(folder: Path) -> tuple[str, str]:
    """A package with one line in it; gives its file's name and hash."""
    name = "tanist_sample-1.0-py3-none-any.whl"
    files = {
        "tanist_sample.py": b"ANSWER = 42\n",
        "tanist_sample-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tanist-sample\nVersion: 1.0\n",
        "tanist_sample-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in files.items()
    )
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
        archive.writestr("tanist_sample-1.0.dist-info/RECORD", f"{record}tanist_sample-1.0.dist-info/RECORD,,\n")
    return name, hashlib.sha256((folder / name).read_bytes()).hexdigest()


class Quiet(http.server.SimpleHTTPRequestHandler):
    agents: list[str] = []

    def log_message(self, format: str, *args: object) -> None:
        self.agents.append(self.headers.get("User-Agent", ""))


@pytest.fixture(params=["as-a-company-has-it", "as-openssl-makes-it"])
def index(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, Path, Path]]:
    """Its address, its certificate and a lock. uv refuses a certificate that is its own authority; pip does not."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    leaf = "FALSE" if request.param == "as-a-company-has-it" else "TRUE"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-addext", f"basicConstraints=critical,CA:{leaf}"],
        check=True, capture_output=True,
    )  # fmt: skip
    files = tmp_path / "index" / "simple" / "tanist-sample"
    files.mkdir(parents=True)
    name, digest = wheel(files)
    (files / "index.html").write_text(f'<!DOCTYPE html><a href="{name}#sha256={digest}">{name}</a>')
    lock = tmp_path / "sample.lock"
    lock.write_text(f"tanist-sample==1.0 --hash=sha256:{digest}\n")
    Quiet.agents.clear()
    handler = functools.partial(Quiet, directory=str(tmp_path / "index"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}/simple", certificate, lock
    server.shutdown()
    thread.join()
    server.server_close()


def test_packages_come_from_the_index_that_pip_was_reported_of(index: tuple[str, Path, Path], tmp_path: Path) -> None:
    address, certificate, lock = index
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    clean = {
        name: value for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "SSL_")) and name not in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
        and not name.lower().endswith("_proxy")
    }  # fmt: skip
    configuration = tmp_path / "pip.conf"
    configuration.write_text(f"[global]\nindex-url = {address}\ncert = {certificate}\n")
    environment = clean | {"PIP_CONFIG_FILE": str(configuration), "UV_NO_CACHE": "1", "PIP_NO_CACHE_DIR": "1"}
    done = subprocess.run(
        [sys.executable, str(TOOL), "--python", str(python), "--require-hashes", "-r", str(lock)],
        env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = subprocess.run(
        [str(python), "-c", "import tanist_sample; print(tanist_sample.ANSWER)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert answer.stdout == "42\n"
    by_uv = any(agent.startswith("uv/") for agent in Quiet.agents)
    assert by_uv == ("pip tries" not in done.stderr)
