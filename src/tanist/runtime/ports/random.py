"""The real `Random` port: the operating system's generator. Never seeded, so nothing in a process can predict it."""

from __future__ import annotations

import os


class SystemRandom:
    """Uniform integers and bytes from `os.urandom`."""

    def below(self, n: int) -> int:
        if n < 1:
            raise ValueError(f"below({n}): there is no integer in [0, {n})")
        bits = (n - 1).bit_length()
        size = (bits + 7) // 8
        excess = size * 8 - bits
        while True:  # rejection: each round succeeds with a probability above one half
            value = int.from_bytes(os.urandom(size), "big") >> excess
            if value < n:
                return value

    def bytes(self, n: int) -> bytes:
        return os.urandom(n)
