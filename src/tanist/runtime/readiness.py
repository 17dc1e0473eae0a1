"""How a node's process says that it is ready, and how somebody hears it: systemd's notification protocol.

A process that finds `NOTIFY_SOCKET` in its environment sends `READY=1` there once its broker is unfenced *in this
life*. From outside that cannot be seen: for some seconds after a restart the cluster still counts the registration
of the life before. So `tanist up` listens for it, and a unit with `Type=notify` may do so too.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Mapping

from tanist.runtime.ports.descriptors import opening

_VARIABLE = "NOTIFY_SOCKET"
_MESSAGE_BYTES_MAX = 4096
_FOLDER_BYTES_MAX = 70
_SHORT_FOLDER = "/tmp"


def tell_ready() -> None:
    _tell("READY=1")


def tell_status(text: str) -> None:
    """The reason why the process is not ready yet."""
    _tell(f"STATUS={text}")


def _tell(line: str) -> None:
    """To the listener; without one, or if it has stopped listening, to nobody.

    A node that has as many files open as it may tells why from its reserve.
    """
    address = os.environ.get(_VARIABLE)
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with opening(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as sender:
            sender.sendto(f"{line}\nMAINPID={os.getpid()}\n".encode(), address)
    except OSError:
        return


class Readiness:
    """The listening end: which processes have said that they are ready."""

    def __init__(self) -> None:
        # Not in the cluster's own folder: a socket's path may have some hundred characters only. TMPDIR may be as long.
        short = len(os.fsencode(tempfile.gettempdir())) < _FOLDER_BYTES_MAX
        self._folder = tempfile.TemporaryDirectory(prefix="tanist-", dir=None if short else _SHORT_FOLDER)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._path = f"{self._folder.name}/notify"
        self._socket.bind(self._path)
        self._socket.setblocking(False)
        self._ready: set[int] = set()
        self._status: dict[int, str] = {}

    def __enter__(self) -> Readiness:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._folder.cleanup()

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that the processes must find in their environment."""
        return {_VARIABLE: self._path}

    def is_ready(self, pid: int) -> bool:
        """Whether the process has said so by now."""
        while True:
            try:
                lines = self._socket.recv(_MESSAGE_BYTES_MAX).decode(errors="replace").splitlines()
            except BlockingIOError:
                return pid in self._ready
            fields = dict(line.split("=", 1) for line in lines if "=" in line)
            if not fields.get("MAINPID", "").isdecimal():
                continue
            if fields.get("READY") == "1":
                self._ready.add(int(fields["MAINPID"]))
            if "STATUS" in fields:
                self._status[int(fields["MAINPID"])] = fields["STATUS"]

    def status_of(self, pid: int) -> str | None:
        """The state that it waits for, if it has reported one; as of the last `is_ready`."""
        return self._status.get(pid)
