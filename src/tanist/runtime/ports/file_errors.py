"""Errors of a file system in words: the cause, and the remedy."""

from __future__ import annotations

import errno
import os

from tanist.ports import is_descriptor_shortage
from tanist.runtime.ports import descriptors

_REMEDIES = {
    errno.ENOSPC: "free space there, or use another folder",
    errno.EDQUOT: "free space there, or use another folder",
    errno.EROFS: "mount it for writing, or use another folder",
    errno.EACCES: "give yourself the right to, or use another folder",
    errno.EPERM: "give yourself the right to, or use another folder",
    errno.ENOTDIR: "a folder was expected there: remove the file, or use another folder",
    errno.EEXIST: "a folder was expected there: remove the file, or use another folder",
    errno.EIO: "the disk does not work: see the system's log, or use another disk",
}


def remedy(error: OSError) -> str | None:
    """The cause and the remedy, in one line without a full stop; None of an error that is not known here."""
    if is_descriptor_shortage(error):
        limit = descriptors.limits()[0]
        return f"too many open files; the limit is {limit}: `ulimit -n {descriptors.PLENTY}`, then try again"
    if error.errno not in _REMEDIES:
        return None
    where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    cause = os.strerror(error.errno)
    return f"{where}{cause[0].lower()}{cause[1:]}: {_REMEDIES[error.errno]}"
