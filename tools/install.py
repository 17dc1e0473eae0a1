"""Install packages with uv by pip's configuration, and with pip itself where uv cannot.

    python tools/install.py [--python PATH] ARGUMENTS OF `pip install`...

Behind a company's index, pip is configured for it, in pip.conf or PIP_* variables: which index, which certificates,
which proxy. uv reads none of that, so its own variables are made of it here; UV_* variables that are set already win.
uv is several times faster, but there are platforms without a wheel of it, and certificates that pip takes and it does
not: then pip installs. Hashes in the locks hold in both cases.

Needs nothing but pip and the standard library.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_UV_LOCK = _ROOT / "requirements" / "uv.lock"


def pip_settings(python: str) -> dict[str, str]:
    """The configuration of pip, by name (`index-url`). Of several places, pip names the one that wins last."""
    reported = subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "config", "list"],
        capture_output=True,
        text=True,
        check=False,
    )
    by_section: dict[str, dict[str, str]] = {}
    for line in reported.stdout.splitlines():
        name, equals, value = line.partition("=")
        section, _, key = name.partition(".")
        if equals and section in ("global", "install", ":env:"):
            by_section.setdefault(section, {})[key] = str(ast.literal_eval(value))
    return {**by_section.get("global", {}), **by_section.get("install", {}), **by_section.get(":env:", {})}


def uv_environment(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables by which uv does what pip would do."""
    made: dict[str, str] = {}

    def give(variable: str, value: str | None) -> None:
        if value and not environment.get(variable):
            made[variable] = value

    chosen = {"UV_DEFAULT_INDEX", "UV_INDEX_URL"} & environment.keys()
    if not chosen:
        give("UV_DEFAULT_INDEX", settings.get("index-url"))
    extra = " ".join(settings.get("extra-index-url", "").split())
    if not {"UV_INDEX", "UV_EXTRA_INDEX_URL"} & environment.keys():
        give("UV_INDEX", extra)
    if extra:
        give("UV_INDEX_STRATEGY", "unsafe-best-match")  # as pip: all indexes are equal. The hashes say what is safe
    give("UV_FIND_LINKS", ",".join(settings.get("find-links", "").split()))
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        give("UV_NO_INDEX", "1")
    give("UV_INSECURE_HOST", " ".join(settings.get("trusted-host", "").split()))
    # pip's own setting, then what the library that it uses takes.
    authorities = settings.get("cert") or environment.get("REQUESTS_CA_BUNDLE") or environment.get("CURL_CA_BUNDLE")
    if authorities:  # also before what is there: it is set for everything, and pip's for the index
        made["SSL_CERT_DIR" if Path(authorities).is_dir() else "SSL_CERT_FILE"] = authorities
    give("SSL_CLIENT_CERT", settings.get("client-cert"))
    give("ALL_PROXY", settings.get("proxy"))
    give("UV_HTTP_TIMEOUT", settings.get("timeout") or settings.get("default-timeout"))
    return made


def uv_of(python: str) -> str | None:
    """uv in our environment, installed by pip if it is not there yet; None where it is not to be had."""
    path = Path(sys.executable).with_name("uv")
    if not path.exists() or _installed_uv() != _UV_LOCK.read_text().split()[0]:
        command = ["install", "--quiet", "--only-binary", ":all:", "--require-hashes", "-r", str(_UV_LOCK)]
        if subprocess.run(_pip(python, command), check=False).returncode:
            print("uv is not to be had here (above): pip installs, which takes longer", file=sys.stderr)
            return None
    return str(path)


def _installed_uv() -> str:
    try:
        return f"uv=={version('uv')}"
    except PackageNotFoundError:
        return ""


def install(python: str, arguments: Sequence[str]) -> int:
    """The exit code."""
    uv = uv_of(sys.executable)
    if uv is not None:
        added = uv_environment(pip_settings(sys.executable), os.environ)
        command = [uv, "pip", "install", "--quiet", "--python", python, *arguments]
        if subprocess.run(command, env=os.environ | added, check=False).returncode == 0:
            return 0
        print("uv could not install this (above): pip tries", file=sys.stderr)
    return subprocess.run(_pip(python, ["install", "--quiet", *arguments]), check=False).returncode


def _pip(python: str, arguments: Sequence[str]) -> list[str]:
    other = [] if python == sys.executable else ["--python", python]
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", *other, *arguments]


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--python"] and len(arguments) > 1:
        return install(arguments[1], arguments[2:])
    return install(sys.executable, arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
