"""Start several nodes at once: import everything one time, then fork a process for each.

`python -m tanist.runtime.process.launch` reads lines of two paths, a properties file and a log, as a JSON list; at the
end of its input it starts a node for each, in a session of its own, its output appended to the log; prints their
process ids, one a line; and ends. Importing is what a start costs most, and three forks of one interpreter pay for it
once, while the command that started the launcher still writes the properties. The forks share the memory of it, too.
With `--watch` it leaves a watcher as well, which stops the nodes if the command that runs them is killed (`watcher`).

It must never hold a thread, a loop or an open file when it forks.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from tanist.runtime.cluster.watcher import close_in_node, watch_in_fork
from tanist.runtime.process.serve import MakeNode, run_file


def launch(pairs: Sequence[tuple[str, str]], make_node: MakeNode, watch: Sequence[str] = ()) -> list[int]:
    """Fork a node for each (properties, log); gives their process ids. In a fork it never returns."""
    gc.collect()
    gc.freeze()  # or the first collection in each fork would touch, and so copy, every page
    return [_fork(properties, log, make_node, watch) for properties, log in pairs]


def _fork(properties: str, log: str, make_node: MakeNode, watch: Sequence[str]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        _let_peers_finish()
        close_in_node(watch)
        _redirect(log)
        code = run_file(properties, {}, make_node)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _let_peers_finish() -> None:
    """A leader's answer to one follower must not wake it on the leader's own core, before the other has its answer.

    Nodes of a cluster on one machine are more than its cores. Linux lets a batch process finish what another has woken
    it by (`docs/decisions/0006-nodes-are-batch-processes.md`); where that is not to be had, nothing changes.
    """
    if hasattr(os, "SCHED_BATCH"):
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _redirect(log: str) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(nothing)
    os.close(output)


def main(make_node: MakeNode) -> int:
    pids = launch([tuple(json.loads(line)) for line in sys.stdin], make_node, sys.argv[1:])
    watch_in_fork(sys.argv[1:], pids)
    for pid in pids:
        print(pid, flush=True)
    return 0


if __name__ == "__main__":
    from tanist.broker.node import Node

    raise SystemExit(main(Node))
