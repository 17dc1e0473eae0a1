"""In place of the extension module `cramjam`: the simulator's clients compress nothing, and any use is an error."""

from __future__ import annotations

from typing import NoReturn


class DecompressionError(Exception):
    pass


class _Nothing:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> NoReturn:
        raise NotImplementedError(f"{self._name}.{function}: there is no compression here")


gzip, lz4, snappy, zstd = (_Nothing(name) for name in ("gzip", "lz4", "snappy", "zstd"))
