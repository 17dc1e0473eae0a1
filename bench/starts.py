"""`python -m bench.starts`: how long a broker takes to load its logs after a clean stop and after a crash.

    python -m bench.starts                              3,000 small logs, and four of 1 GB; with 1, 2 and 4 threads
    python -m bench.starts --logs 10000x16k,4x6g --threads 2 --batch 64

Only the loading is measured (`broker/replication/log_loading.py`), in a process of its own each time, on the real disk,
without a cluster. *After a crash* no log has a recovery point, so every batch is read and its CRC checked. *Cold*: the
system has dropped the segments from its page cache, as after a loss of power. *Longest turn*: how long the event loop
had to wait, which is what elections and clients notice of the threads.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

from tanist.broker.config import NodeConfig
from tanist.broker.context import NodeContext
from tanist.broker.log_directories import LogDirectories
from tanist.broker.replication.log_loading import LogLoading
from tanist.events.stream import Events
from tanist.log.checkpoints import CLEAN_SHUTDOWN, RECOVERY_POINT_CHECKPOINT, encode_clean_shutdown
from tanist.log.config import LogConfig
from tanist.log.directory import LogDirectory
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.network import SocketNetwork
from tanist.runtime.ports.random import SystemRandom
from tanist.wire.batch import NewRecord, encode_batch

RECORD_BYTES = 1000
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_TICK_MS = 5
_GC_THRESHOLDS = (50_000, 20, 50)  # as runtime/process/serve.py


def raised(where: str, error: BaseException) -> None:
    raise SystemExit(f"{where}: {error!r}")


def fill(folder: Path, logs: int, size_bytes: int, batch_records: int) -> None:
    """Logs of that many bytes each, of records of 1,000 bytes."""
    loop = Loop(on_failure=raised)
    disk = RealDisk(loop)
    directory = LogDirectory(disk, str(folder), UUID(int=9))
    directory.load(0, lambda _topic: LogConfig())
    record = NewRecord(timestamp=0, key=None, value=bytes(RECORD_BYTES))
    batch = bytes(encode_batch([record] * batch_records))
    for number in range(logs):
        log = directory.create_log("bench", number, UUID(int=7), LogConfig(), 0)
        log.assign_epoch(0, 0)
        for at in range(max(1, size_bytes // len(batch))):
            log.append_as_leader(memoryview(bytearray(batch)), 0, 0)
            if at % 64 == 63:
                log.write_pending()
        log.write_pending()
    directory.shutdown_cleanly(1, {})
    disk.close()


def load(folder: Path, threads: int) -> dict[str, float]:
    """In this process: load the folder once, and leave it as it was."""
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    loop = Loop(on_failure=raised)
    disk = RealDisk(loop, job_threads=threads + 1)
    config = NodeConfig.from_properties(
        {
            "node.id": "1",
            "process.roles": "broker",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "controller.quorum.voters": "2@127.0.0.1:1",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(folder),
            "num.recovery.threads.per.data.dir": str(threads),
        }
    )
    network = SocketNetwork(loop)
    context = NodeContext(
        config, "bench", loop, disk, network, SystemRandom(), Events(), lambda why: raised("node", OSError(why))
    )
    directories = LogDirectories([LogDirectory(disk, str(folder), UUID(int=9))])
    loading = LogLoading(context, directories, lambda _topic: LogConfig(), lambda _: None, lambda _: None)
    longest_s, last = 0.0, time.perf_counter()

    def tick() -> None:
        nonlocal longest_s, last
        now = time.perf_counter()
        longest_s, last = max(longest_s, now - last), now
        loop.call_at(loop.now_ms() + _TICK_MS, tick)

    began, cpu = time.perf_counter(), time.process_time()
    loop.post(tick)
    loop.post(lambda: loading.start(lambda _: loop.stop()))
    loop.run()
    found = {
        "s": time.perf_counter() - began,
        "cpu_s": time.process_time() - cpu,
        "longest_turn_ms": longest_s * 1000,
        "logs": float(sum(len(each.logs) for each in directories)),
    }
    disk.close()
    return found


def forget_pages(folder: Path) -> None:
    """Have the system drop the segments from its page cache."""
    os.sync()
    for path in folder.rglob("*.log"):
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def parse_logs(text: str) -> list[tuple[str, int, int]]:
    """`3000x16k,4x1g` -> each kind as it was written, the number of its logs, and the bytes of one."""
    kinds = []
    for kind in text.split(","):
        number, _, size = kind.partition("x")
        kinds.append((kind, int(number), int(size[:-1]) * _UNITS[size[-1]]))
    return kinds


def measured(folder: Path, threads: int, *, clean: bool, cold: bool) -> str:
    if clean:
        (folder / CLEAN_SHUTDOWN).write_bytes(encode_clean_shutdown(1))
    else:
        for name in (CLEAN_SHUTDOWN, RECOVERY_POINT_CHECKPOINT):
            (folder / name).unlink(missing_ok=True)
    if cold:
        forget_pages(folder)
    command = [sys.executable, "-m", "bench.starts", "--load", str(folder), "--threads", str(threads)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.starts", description=__doc__.split("\n")[0])
    parser.add_argument("--logs", help="how many, x bytes of each (3000x16k,4x1g)", default="3000x16k,4x1g")
    parser.add_argument("--threads", help="num.recovery.threads.per.data.dir (1,2,4)", default="1,2,4")
    parser.add_argument("--batch", type=int, help="records of 1,000 bytes in a batch (16)", default=16)
    parser.add_argument("--data", type=Path, help="where the logs are made (a temporary folder)")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.load is not None:
        found = load(chosen.load, int(chosen.threads))
        print(", ".join(f"{name} {value:.2f}" for name, value in found.items()))
        return 0
    for kind, number, size_bytes in parse_logs(chosen.logs):
        with tempfile.TemporaryDirectory(prefix="tanist-bench-", dir=chosen.data) as name:
            folder = Path(name)
            fill(folder, number, size_bytes, chosen.batch)
            for title, clean, cold in (
                ("after a crash", False, False),
                ("after a crash, cold", False, True),
                ("after a clean stop", True, False),
            ):
                for threads in map(int, chosen.threads.split(",")):
                    row = measured(folder, threads, clean=clean, cold=cold)
                    print(f"{kind}, {title}, threads {threads}: {row}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
