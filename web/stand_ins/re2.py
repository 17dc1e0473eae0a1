"""In place of the extension module `google-re2`: the simulator's expressions mean the same to Python's own."""

from __future__ import annotations

import re

error = re.error


class Options:
    log_errors = False
    max_mem = 0


def compile(pattern: str, options: Options | None = None) -> re.Pattern[str]:
    return re.compile(pattern)
