"""One node as a process: `python -m tanist.runtime.process.serve server.properties [--override KEY=VALUE]...`.

It reads the configuration, puts a `broker.Node` on the real ports, starts it, and stops it on a signal: the first
SIGTERM or SIGINT asks for a controlled shutdown and ends with exit code 0, a second one ends the process at once.
The node logs to standard output, a line for each message, in the shape of Kafka's own logs.

It must start fast (a cluster of three is up when the slowest of three processes on two cores is), so it imports only
what serving needs; the command line's libraries are not among it.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, Protocol

from tanist.broker.config import ConfigError, NodeConfig, PropertiesError, parse_properties
from tanist.broker.throttled import Throttled
from tanist.events.event import Event
from tanist.events.process import (
    CertificateRefused,
    CertificateTaken,
    ConfigWarned,
    ConnectionsExhausted,
    DescriptorLimitLow,
    DescriptorLimitReached,
    FolderMissing,
    FormatFailed,
    MetricsNotServed,
    MetricsServed,
    NodeStarted,
    TlsHandshakeFailed,
)
from tanist.events.stream import Events
from tanist.events.text import describe
from tanist.ports import Clock, Disk, Network, Random, TlsIdentity
from tanist.runtime.event_log import EventLog, log_time
from tanist.runtime.faults.node_agent import apply_faults
from tanist.runtime.ports.descriptors import NEEDED, PLENTY, keep_reserve, raise_limit, too_few, widen_table
from tanist.runtime.ports.disk import JOB_THREADS, RealDisk
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.network import SYSTEM_DEFAULT, SocketNetwork
from tanist.runtime.ports.random import SystemRandom
from tanist.runtime.ports.synced_lengths import LEDGER_NAME
from tanist.runtime.ports.urls import read_url
from tanist.runtime.process.ending import EXIT_FAILED, ProcessEnd, ServedNode
from tanist.runtime.readiness import tell_ready, tell_status
from tanist.runtime.titles import name_process

if TYPE_CHECKING:
    from tanist.runtime.ports.cold_ranges import ColdReads
    from tanist.runtime.process.metrics_http import MetricsServer

_READY_LOOK_MS = 10
_HANDSHAKES_FAILED_MS = 1_000

EXIT_USAGE = 2

_GC_THRESHOLDS = (50_000, 20, 50)
"""A broker allocates little that is cyclic: collecting 70 times less often than by default costs no memory."""


class MakeNode(Protocol):
    """The constructor of `broker.Node`."""

    def __call__(
        self,
        config: NodeConfig,
        clock: Clock,
        disk: Disk,
        network: Network,
        random: Random,
        events: Events,
        on_fatal: Callable[[str], None],
        on_crash: Callable[[str, str], None],
        *,
        read_url: Callable[[str], bytes],
    ) -> ServedNode: ...


def print_event(event: Event, now_ms: int) -> None:
    """Print the operator's line of an event, if it has one.

    A log that cannot be written to (a full disk, a closed pipe) must not take the node down.
    """
    line = describe(event)
    if line is None:
        return
    level, message = line
    try:
        print(f"[{log_time(now_ms)}] {level} {message}\n", end="", flush=True)  # one write: jobs report too
    except OSError:
        return


def _reporter(log: EventLog) -> Callable[[Event], None]:
    """The event into its file, then its line into the log, with the same time: so `tanist logs --json` joins them."""

    def write(event: Event) -> None:
        now_ms = time.time_ns() // 1_000_000
        log.write(now_ms, event)
        print_event(event, now_ms)

    return write


def load_config(path: str, overrides: Mapping[str, str]) -> NodeConfig:
    """The configuration in a properties file, overrides applied. `ConfigError`, `PropertiesError`, `OSError`."""
    with open(path, encoding="utf-8") as file:
        properties = parse_properties(file.read())
    properties.update(overrides)
    return NodeConfig.from_properties(properties, hostname=socket.gethostname())


def reported_events(config: NodeConfig) -> Events:
    """The events of this process, which come into its file and its log. While there is no folder, only into its log."""
    events = Events()
    events.subscribe(_reporter(EventLog(config.log_dirs[0])), fine=config.events_fine)
    return events


def serve(
    config: NodeConfig, make_node: MakeNode, on_ready: Callable[[], None] = tell_ready, events: Events | None = None
) -> int:
    """Run a node until it gets a signal to stop; gives the exit code. `on_ready`: once its broker is unfenced.

    `events`: where something has been emitted before.
    """
    began = time.monotonic()
    name_process(f"tanist: node {config.node_id}, data in {config.log_dirs[0]}", f"tanist-{config.node_id}")
    events = reported_events(config) if events is None else events
    for warning in config.warnings:
        events.emit(ConfigWarned(warning))
    for folder in config.log_dirs:
        if not os.path.isdir(folder):
            events.emit(FolderMissing(folder))
            return EXIT_FAILED
    process = ProcessEnd(config, events)
    descriptors = _descriptors(events)
    if descriptors is None:
        return process.cannot_start(too_few() or "too few open files")
    try:
        loop = process.loop = Loop(on_failure=process.failed)
        # One more than open logs at a start, for all else that runs off the loop meanwhile.
        job_threads = max(JOB_THREADS, 1 + len(config.log_dirs) * config.num_recovery_threads_per_data_dir)
        disk = RealDisk(loop, f"{config.log_dirs[0]}/{LEDGER_NAME}", job_threads=job_threads)
    except OSError as error:
        return process.cannot_start(_in_words(error))
    network = SocketNetwork(
        loop,
        # Half of the descriptors are for files: a partition has one to three open for each segment.
        max_connections=descriptors // 2,
        connect_timeout_ms=config.socket_connection_setup_timeout_ms,
        # Kafka's default, 100 KB, is worth having: what is sent from the page cache is then read while it is still in
        # the processor's cache, and answers of 1 MB take half the CPU. To receive, the kernel's own choice is better.
        send_buffer_bytes=config.socket_send_buffer_bytes,
        receive_buffer_bytes=(
            config.socket_receive_buffer_bytes if "socket.receive.buffer.bytes" in config.static else SYSTEM_DEFAULT
        ),
        on_exhausted=lambda open_now, why: events.emit(ConnectionsExhausted(open_now, why)),
        tls_reports=_TlsReports(loop, events),
    )
    node_faults = apply_faults(loop, network, disk, config.node_id, events)
    try:
        node = make_node(
            config, loop, disk, network, SystemRandom(), events, process.fatal, process.crash, read_url=read_url
        )
        process.stop_by_signals(node)
        metrics = _tell_metrics(loop, config, node, network.cold_reads, events)
        node.start()
    except (OSError, ValueError) as error:
        return process.cannot_start(_in_words(error))
    except Exception as error:
        process.failed("the start", error)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    where = tuple(f"{endpoint.name}://{endpoint.host}:{endpoint.port}" for endpoint in config.listeners)
    took_ms = round((time.monotonic() - began) * 1000)
    events.emit(NodeStarted(config.node_id, tuple(sorted(config.roles)), os.getpid(), where, took_ms))
    _tell_when_ready(loop, node, on_ready)
    if node_faults is not None:
        loop.post(node_faults.reload)
    process.hear_signals()
    loop.run()
    if metrics is not None:
        metrics.close()
    network.close()
    disk.close()
    loop.close()
    return process.exit_code


class _TlsReports:
    """What happens to TLS, as events (`ports.tls_side.TlsReports`)."""

    def __init__(self, loop: Loop, events: Events) -> None:
        self._events = events
        self._failed = Throttled(loop, events, _HANDSHAKES_FAILED_MS)

    def handshake_failed(self, profile: str, peer: str, reason: str, dialled: bool) -> None:
        self._failed.emit(lambda left_out: TlsHandshakeFailed(profile, peer, reason, dialled, left_out))

    def reloaded(self, profile: str, identity: TlsIdentity | None, problem: str | None) -> None:
        if identity is not None:
            self._events.emit(CertificateTaken(profile, identity.subject, identity.expires_ms))
        elif problem is not None:
            self._events.emit(CertificateRefused(profile, problem))


def _tell_metrics(
    loop: Loop, config: NodeConfig, node: ServedNode, cold_reads: ColdReads, events: Events
) -> MetricsServer | None:
    """Open the metrics' port, if there is to be one and it is to be had. A broker does not go down for its metrics."""
    from tanist.broker.node import Node

    if config.metrics_listener is None or not isinstance(node, Node):
        return None
    from tanist.runtime.process.metrics_http import MetricsServer, node_pages

    host, port = config.metrics_listener
    try:
        server = MetricsServer(loop, host, port, node_pages(node, loop, cold_reads), node.context.unexpected.met)
    except OSError as error:
        events.emit(MetricsNotServed(host, port, _in_words(error)))
        return None
    events.emit(MetricsServed(host, server.port))
    return server


def _tell_when_ready(loop: Loop, node: ServedNode, on_ready: Callable[[], None], reported: str | None = None) -> None:
    """Look at the node's state until its broker runs (a controller alone has nobody to wait for), and tell."""
    status = node.status()
    if status["state"] in ("RUNNING", "CONTROLLER"):
        gc.freeze()  # the logs stay
        on_ready()
        return
    waits = status.get("waits_for")
    if waits is not None and waits != reported:
        tell_status(waits)
    loop.call_at(loop.now_ms() + _READY_LOOK_MS, lambda: _tell_when_ready(loop, node, on_ready, waits))


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}{f': {error.filename}' if error.filename else ''}"
    return str(error)


def _descriptors(events: Events) -> int | None:
    """How many files the process may have open, some of them in reserve; None if they are too few for a node."""
    number = raise_limit()
    widen_table()
    if number < NEEDED:
        return None
    if number < PLENTY:
        events.emit(DescriptorLimitLow(number, PLENTY))
    keep_reserve(number, lambda: events.emit(DescriptorLimitReached(number)))
    return number


def _usage(problem: str) -> NoReturn:
    print(
        f"Error: {problem}\nusage: tanist serve FILE [--override KEY=VALUE]...\n"
        "       tanist serve [FILE] --from-environment [--print-config] [--override KEY=VALUE]...",
        file=sys.stderr,
    )
    raise SystemExit(EXIT_USAGE)


def main(arguments: Sequence[str]) -> int:
    """The command line, by hand: a click command costs more to import than a node takes to start."""
    path: str | None = None
    overrides: dict[str, str] = {}
    flags = {"--from-environment": False, "--print-config": False}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--override" or word.startswith("--override="):
            pair = word.partition("=")[2] if "=" in word else (rest.pop(0) if rest else "")
            name, equals, value = pair.partition("=")
            if not equals or not name:
                _usage(f"--override takes KEY=VALUE, not {pair!r}")
            overrides[name.strip()] = value.strip()
        elif word in flags:
            flags[word] = True
        elif word.startswith("-") or path is not None:
            _usage(f"unexpected argument {word!r}")
        else:
            path = word
    print_only = flags["--print-config"]
    if not flags["--from-environment"]:
        if print_only:
            _usage("--print-config goes with --from-environment only")
        if path is None:
            _usage("FILE is missing: the node's properties file, or --from-environment")
    from tanist.broker.node import Node

    if path is None or flags["--from-environment"]:
        return run_environment(path, overrides, os.environ, Node, print_only=print_only)
    return run_file(path, overrides, Node)


def run_file(path: str, overrides: Mapping[str, str], make_node: MakeNode) -> int:
    """`serve` the node of a properties file; what is wrong with the file is said, with the exit code for it."""
    try:
        config = load_config(path, overrides)
    except (ConfigError, PropertiesError, UnicodeDecodeError) as error:
        print(f"Error: {path}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        print(f"Error: cannot read {path}: {error.strerror or error}", file=sys.stderr)
        return EXIT_USAGE
    return serve(config, make_node)


def run_environment(
    path: str | None,
    overrides: Mapping[str, str],
    environment: Mapping[str, str],
    make_node: MakeNode,
    *,
    print_only: bool = False,
) -> int:
    """`serve` the node of a container's environment, in folders that are formatted if they are new.

    `print_only`: print the node's properties, and serve nothing.
    """
    from tanist.log.properties import encode_properties
    from tanist.runtime.format import FormatError
    from tanist.runtime.process.environment import format_new, properties_from, tell_started

    try:
        properties = {**properties_from(path, environment), **overrides}
        config = NodeConfig.from_properties(properties, hostname=socket.gethostname())
    except (ConfigError, PropertiesError, UnicodeDecodeError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        print(f"Error: cannot read {path}: {error.strerror or error}", file=sys.stderr)
        return EXIT_USAGE
    if print_only:
        print(encode_properties(dict(sorted(properties.items()))), end="")
        return 0
    events = reported_events(config)
    try:
        format_new(config, environment, events.emit)
    except (FormatError, OSError) as error:
        events.emit(FormatFailed(tuple(config.log_dirs), _in_words(error)))
        return EXIT_FAILED

    def ready() -> None:
        tell_ready()
        tell_started(config, events.emit)

    return serve(config, make_node, ready, events)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
