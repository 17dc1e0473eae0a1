"""Answers that are under way while their log is cut, with real files and sockets (KAFKA-18723).

A socket holds pages of the file, not copies of them: on the same machine until the other side has read them.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from uuid import UUID

import pytest

from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.runtime.ports.disk import RealDisk
from tests.log.log_batches import batch
from tests.runtime.conftest import Runner


@pytest.mark.parametrize("taken_by_the_socket", [False, True], ids=["in our queue", "in the socket"])
def test_an_answer_that_is_under_way_has_the_old_bytes_or_none(
    runner: Runner, tmp_path: Path, taken_by_the_socket: bool
) -> None:
    disk = RealDisk(runner.loop)
    log = Log.open(disk, str(tmp_path / "t-0"), "t", 0, UUID(int=5), LogConfig(), 0, recovery_point=0, clean=True)
    for _ in range(20):
        assert log.append_as_leader(batch([b"old".ljust(700)]), 1, 0).error == 0
    log.write_pending()
    found = log.read(0, 1 << 20, log.log_end_offset)
    assert found is not None
    piece = found.chunk
    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.create_connection(listener.getsockname())
    receiver, _ = listener.accept()
    fd: int = piece.file.fd  # type: ignore[attr-defined]  # of the real disk
    if taken_by_the_socket:
        assert os.sendfile(sender.fileno(), fd, piece.offset, piece.length) == piece.length
    log.truncate_to(7)
    for _ in range(13):
        assert log.append_as_leader(batch([b"new".ljust(700)]), 2, 0).error == 0
    log.write_pending()
    if not taken_by_the_socket:
        sent = os.sendfile(sender.fileno(), fd, piece.offset, piece.length)
        assert sent < piece.length, "the connection ends here: the file is shorter than what was to be sent"
    sender.close()
    got = b""
    while data := receiver.recv(1 << 16):
        got += data
    for each in (listener, receiver):
        each.close()
    log.close()
    disk.close()
    assert b"old" in got
    assert b"new" not in got
