"""The report of a node whose process an unexpected exception has ended: a file in its first log directory.

It is for who looks for the cause: the exception with its traceback, the versions, the last events. The newest few are
kept. That there is one, and where, is in the exit record (`exit_record`), so `tanist status` names it.
"""

from __future__ import annotations

import os
import time
from typing import Final

_PREFIX: Final = "crash-report-"
_KEPT: Final = 5
_BYTES_MAX: Final = 4 << 20


def write_crash_report(folder: str, text: str) -> str | None:
    """The path of the new report; None if the disk does not take it: the process ends all the same."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = f"{folder}/{_PREFIX}{stamp}-{os.getpid()}.txt"
    try:
        for name in crash_reports(folder)[: 1 - _KEPT]:
            os.unlink(f"{folder}/{name}")
        with open(path, "xb") as file:
            file.write(text.encode(errors="replace")[:_BYTES_MAX])
    except OSError:
        return None
    return path


def crash_reports(folder: str) -> list[str]:
    """The names of the reports in a log directory, the oldest first."""
    return sorted(name for name in os.listdir(folder) if name.startswith(_PREFIX) and name.endswith(".txt"))
