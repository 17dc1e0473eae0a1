"""Hosts of their own on one machine: network namespaces with an address each, joined by a bridge in another.

Needs Linux, `ip` and root. Nothing of it is reached from the machine's own network, or reaches it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack

import pytest

_NETWORK = "10.213.71"


class Namespaces:
    """`with Namespaces("kafka", "master") as hosts`: their addresses, and commands `hosts.on("kafka", ...)`."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._prefix = f"tanist{os.getpid()}"
        self._stack = ExitStack()

    def __enter__(self) -> Namespaces:
        if os.geteuid() != 0 or shutil.which("ip") is None:
            pytest.skip("network namespaces need root and the command ip")
        try:
            bridge = self._add("bridge")
            _ip("-n", bridge, "link", "add", "br0", "type", "bridge")
            _ip("-n", bridge, "link", "set", "br0", "up")
            for number, name in enumerate(self._names):
                host = self._add(name)
                peer = ("type", "veth", "peer", "name", "eth0", "netns", host)
                _ip("-n", bridge, "link", "add", f"port{number}", *peer)
                _ip("-n", bridge, "link", "set", f"port{number}", "master", "br0", "up")
                _ip("-n", host, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
                for device in ("lo", "eth0"):
                    _ip("-n", host, "link", "set", device, "up")
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def address(self, name: str) -> str:
        return f"{_NETWORK}.{self._names.index(name) + 1}"

    def on(self, name: str, *command: str) -> list[str]:
        return ["ip", "netns", "exec", f"{self._prefix}-{name}", *command]

    def processes(self, name: str) -> list[int]:
        """All that run there."""
        found = subprocess.run(["ip", "netns", "pids", f"{self._prefix}-{name}"], stdout=subprocess.PIPE, check=True)
        return [int(each) for each in found.stdout.split()]

    def _add(self, name: str) -> str:
        namespace = f"{self._prefix}-{name}"
        added = subprocess.run(["ip", "netns", "add", namespace], capture_output=True, text=True, check=False)
        if added.returncode:
            pytest.skip(f"network namespaces cannot be made: {added.stderr.strip()}")
        self._stack.callback(_ip, "netns", "delete", namespace)
        return namespace


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
