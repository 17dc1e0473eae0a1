"""An exception in the middle of a change of a log: what the log holds in memory is not to be trusted any more.

It is treated as a failure of the log's disk: the log refuses reads and appends, its directory goes offline, and what a
start finds in the files is what counts. So there is one way by which a log is given up, and it is an `OSError`.
"""

from __future__ import annotations

from tanist.log.checkpoints import CheckpointError
from tanist.log.indexes import CorruptIndexError
from tanist.log.scan import DamagedBatch
from tanist.wire.errors import WireError

_DAMAGE = (DamagedBatch, CorruptIndexError, CheckpointError, WireError)
"""What the disk holds is not what was written to it."""


class TornLog(OSError):
    """The log was given up for `cause`, which is no failure of a disk."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"the log may be torn: {cause!r}")
        self.__cause__ = self.cause = cause


def as_failure(error: Exception) -> OSError:
    """The failure of a log that met `error` in the middle of a change."""
    if isinstance(error, OSError):
        return error
    return OSError(str(error)) if isinstance(error, _DAMAGE) else TornLog(error)
