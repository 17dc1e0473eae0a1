"""The command's end of the pipe by which a cluster ends with the command that runs it.

A `tanist up` in the foreground stops its nodes when it gets a signal. It cannot do so when it is killed. So its
launcher leaves a *watcher* process behind (`watcher`), which reads from a pipe whose other end only the command has.
The system closes that end however the command dies.

Owns the pipe, the byte that lets the watcher go, and the arguments that ask the launcher for a watcher.
Signals of the parent's death (PR_SET_PDEATHSIG) are Linux only, and nodes are not the command's children.
"""

from __future__ import annotations

import os
from pathlib import Path

from tanist.runtime.cluster.processes import ProcessMark

LOG_NAME = "watcher.log"
"""In the data folder: the log of a watcher. Most watchers have nothing to log."""

LET_GO = b"."
"""A watcher that reads this has nothing to stop. The end of the pipe instead means that the command is gone."""
WATCH_OPTION = "--watch"


class ParentWatch:
    """The command's end of the pipe. A process that has one must not die without its cluster."""

    def __init__(self) -> None:
        self.watched_fd, self._held_fd = os.pipe()

    def hand_over(self) -> None:
        """The launcher has the watched end by now; ours must not keep it open."""
        if self.watched_fd >= 0:
            os.close(self.watched_fd)
            self.watched_fd = -1

    def let_go(self) -> None:
        """The watcher may end without touching anything: the cluster is stopped, or shall live on."""
        self.hand_over()
        if self._held_fd < 0:
            return
        try:
            os.write(self._held_fd, LET_GO)
        except BrokenPipeError:
            pass  # there never was a watcher, or it was killed
        finally:
            os.close(self._held_fd)
            self._held_fd = -1


def watch_arguments(parent_watch: ParentWatch, owner: ProcessMark, folder: Path) -> list[str]:
    """The arguments that ask the launcher to leave a watcher behind."""
    return [WATCH_OPTION, str(parent_watch.watched_fd), str(owner.pid), owner.started, str(folder)]
