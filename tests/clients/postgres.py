"""A PostgreSQL server of the machine, in a folder of its own: what Debezium captures.

`missing()` says why there can be none. The server writes its log for logical replication, and ends by `stop()`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.interop.cluster import HOST, free_ports

USER = "postgres"
DEBIAN = Path("/usr/lib/postgresql")


def programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`. Debian's is not on PATH, for there may be several."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    folders = [folder / "bin" for folder in DEBIAN.glob("*") if (folder / "bin" / "initdb").exists()]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


def missing() -> str | None:
    if programs() is None or shutil.which("psql") is None:
        return "needs PostgreSQL (initdb and psql are neither on PATH nor in /usr/lib/postgresql)"
    if os.geteuid() == 0 and USER not in {each.pw_name for each in pwd.getpwall()}:
        return f"needs a user {USER}, for root cannot run PostgreSQL"
    return None


@dataclass(slots=True)
class Postgres:
    """One server with the user and the database `postgres`, on 127.0.0.1 without a password."""

    port: int = 0
    _folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="tanist-postgres-")), init=False)

    def start(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self._folder, USER, USER)
        self._run("initdb", "-U", USER, "-A", "trust", "--no-sync", "-D", str(self._folder / "data"))
        self.port = free_ports(1)
        settings = {
            "listen_addresses": HOST, "port": self.port, "unix_socket_directories": "", "wal_level": "logical",
            "fsync": "off",
        }  # fmt: skip
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        log = str(self._folder / "log")
        self._run("pg_ctl", "-w", "-t", "120", "-D", str(self._folder / "data"), "-l", log, "-o", options, "start")

    def run_sql(self, script: str) -> None:
        """Run statements, each a transaction by itself unless they say otherwise."""
        command = ["psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", HOST, "-p", str(self.port), "-U", USER]
        subprocess.run(command, input=script, text=True, check=True, capture_output=True, timeout=60)

    def stop(self) -> None:
        if (self._folder / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "-w", "-m", "immediate", "-D", str(self._folder / "data"), "stop")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        folder = programs()
        assert folder is not None, missing()
        as_user = ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []
        command = [*as_user, str(folder / program), *arguments]
        # The server inherits what it is given: no pipe, or its end would be waited for.
        with (self._folder.with_suffix(".out")).open("w+") as output:
            Path(output.name).unlink()
            done = subprocess.run(
                command, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=180, check=False
            )
            output.seek(0)
            assert done.returncode == 0, f"{program}: {output.read()}"
