"""The process that stops a cluster once the command that runs it is gone.

It does what `tanist down` does: brokers before controllers, paused nodes too, and nodes that `tanist start` has
started since. `cluster.json` names the command as the cluster's `owner`; the watcher stops a cluster only while it has
that owner, never one that was started after it. `parent_watch` is the command's end of the pipe that it reads from.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tanist.runtime.cluster.parent_watch import LET_GO, LOG_NAME, WATCH_OPTION
from tanist.runtime.cluster.processes import ProcessMark, start_time
from tanist.runtime.titles import name_process


def watch_in_fork(arguments: Sequence[str], nodes: Sequence[int]) -> None:
    """In the launcher: fork the watcher that the command line asks for, if it does, and close the pipe here.

    `nodes` are the processes just started, in the cluster's order: a command that is killed this very moment may not
    have noted them.
    """
    if len(arguments) != 5 or arguments[0] != WATCH_OPTION:
        return
    fd, owner, folder = int(arguments[1]), ProcessMark(int(arguments[2]), arguments[3]), Path(arguments[4])
    launched = [ProcessMark(pid, start_time(pid) or "gone") for pid in nodes]
    if os.fork():
        os.close(fd)
        return
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        os.close(nothing)
        name_process(f"tanist up: watcher of process {owner.pid}, data in {folder}", "tanist-up")
        _watch(fd, owner, folder, launched)
        code = 0
    finally:
        os._exit(code)


def close_in_node(arguments: Sequence[str]) -> None:
    """In a node's fork: the pipe is the watcher's business."""
    if len(arguments) == 5 and arguments[0] == WATCH_OPTION:
        os.close(int(arguments[1]))


def _watch(fd: int, owner: ProcessMark, folder: Path, launched: Sequence[ProcessMark]) -> None:
    if os.read(fd, 1) == LET_GO:
        return
    if not folder.is_dir():
        for node in launched:
            node.kill()  # there is nothing left for it to write, and nobody else who knows of it
        return
    # Not before: the nodes need the processor while they start.
    from tanist.runtime.cluster.cluster import LocalCluster

    log = open(folder / LOG_NAME, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 (it ends with the process)
    os.dup2(log.fileno(), sys.stderr.fileno())

    def say(line: str) -> None:
        log.write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {line}\n")

    try:
        stopped = LocalCluster(folder, say).down_if_owned_by(owner, launched)
    except BaseException:
        import traceback

        say(traceback.format_exc())
        raise
    if stopped:
        nodes = ", ".join(map(str, stopped))
        say(f"process {owner.pid}, `tanist up`, ended without stopping its cluster: stopped nodes {nodes}")
