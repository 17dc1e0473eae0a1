"""A node's process for the tests of `runtime.cluster`: it answers what readiness asks, and misbehaves on demand.

The stand-ins know of each other by files: each writes its process id into the folder above its own, and believes
those that run. `stand.in=dies|mute|lonely|late|stubborn` in the properties makes one misbehave.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tanist.broker.config import NodeConfig
from tanist.events.process import ShutdownBegun
from tanist.runtime.process.launch import main
from tanist.wire.apis import ApiKey
from tanist.wire.frames import decode_request, encode_response, parse_request_header
from tanist.wire.messages import (
    api_versions_response,
    describe_cluster_response,
    describe_quorum_response,
    metadata_response,
)

_LAST_VERSIONS = {
    ApiKey.API_VERSIONS: 1,
    ApiKey.METADATA: 1,
    ApiKey.DESCRIBE_QUORUM: 1,
    ApiKey.DESCRIBE_CLUSTER: 2,
}


class StandIn:
    def __init__(
        self,
        config: NodeConfig,
        clock: Any,
        disk: Any,
        network: Any,
        random: Any,
        events: Any,
        on_fatal: Any,
        on_crash: Any,
        *,
        read_url: Any,
    ):
        del disk, random, on_fatal, on_crash, read_url
        self.config, self.clock, self.network, self.events = config, clock, network, events
        self.behaviour = config.static.get("stand.in", "")
        if self.behaviour == "dies":
            raise ValueError("this folder smells")
        self.alive = Path(config.log_dirs[0]).parent.parent / f"alive-{config.node_id}"

    def start(self) -> None:
        for endpoint in self.config.listeners:
            self.network.bind(
                endpoint.host, endpoint.port, lambda connection: Answers(self, connection), max_frame_bytes=1000
            ).open()
        self.alive.write_text(f"{os.getpid()} {self.config.listeners[0].port} {'broker' in self.config.roles}")

    def stop(self, done: Callable[[], None]) -> None:
        self.alive.unlink(missing_ok=True)
        self.events.emit(ShutdownBegun(self.config.node_id))
        if self.behaviour != "stubborn":
            self.clock.call_soon(done)

    def crash(self, place: str, error: Exception) -> None: ...

    def status(self) -> dict[str, str]:
        if self.behaviour == "late":
            return {"state": "STARTING", "waits_for": "better days"}
        return {"state": "RUNNING"}

    def brokers(self) -> dict[int, int]:
        """Ids and ports of the brokers that run."""
        found = {}
        for path in self.alive.parent.glob("alive-*"):
            pid, port, is_broker = path.read_text().split()
            node_id = int(path.name.partition("-")[2])
            if (
                is_broker == "True"
                and Path(f"/proc/{pid}/cmdline").exists()
                and (self.behaviour != "lonely" or node_id == self.config.node_id)
            ):
                found[node_id] = int(port)
        return found


class Answers:
    def __init__(self, node: StandIn, connection: Any) -> None:
        self.node, self.connection = node, connection

    def on_open(self, connection: Any) -> None: ...

    def on_close(self, reason: str) -> None: ...

    def on_frame(self, frame: memoryview) -> None:
        if self.node.behaviour == "mute":
            return
        header = parse_request_header(frame)
        decode_request(header, frame)
        answer: Any
        if header.api_key == ApiKey.API_VERSIONS:
            answer = api_versions_response.ApiVersionsResponse(
                api_keys=tuple(
                    api_versions_response.ApiVersion(api_key=key, min_version=0, max_version=last)
                    for key, last in _LAST_VERSIONS.items()
                )
            )
        elif header.api_key == ApiKey.DESCRIBE_CLUSTER:
            answer = describe_cluster_response.DescribeClusterResponse(
                brokers=tuple(
                    describe_cluster_response.DescribeClusterBroker(broker_id=node_id, host="127.0.0.1", port=port)
                    for node_id, port in sorted(self.node.brokers().items())
                )
            )
        elif header.api_key == ApiKey.METADATA:
            answer = metadata_response.MetadataResponse(
                brokers=tuple(
                    metadata_response.MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=port)
                    for node_id, port in sorted(self.node.brokers().items())
                )
            )
        else:
            partition = describe_quorum_response.PartitionData(
                leader_id=self.node.config.controller_quorum_voters[0].node_id
            )
            topic = describe_quorum_response.TopicData(topic_name="__cluster_metadata", partitions=(partition,))
            answer = describe_quorum_response.DescribeQuorumResponse(topics=(topic,))
        version = header.api_version
        if version > _LAST_VERSIONS[ApiKey(header.api_key)]:
            version, answer.error_code = 0, 35
        self.connection.send([encode_response(answer, version, header.correlation_id)])


if __name__ == "__main__":
    raise SystemExit(main(StandIn))
