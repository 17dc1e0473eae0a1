"""`Cluster`: a Kafka cluster of local processes for as long as a `with` block, or any other Kafka by its address.

A cluster that is made here ends with this process, however that ends, and its data folder with it, unless `keep` was
called. Clusters take ports that are free, so any number of them stand side by side.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.controller.configs.settings import base_name
from tanist.runtime.client.client import parse_bootstrap
from tanist.runtime.cluster import cluster as runtime
from tanist.runtime.cluster.cluster_file import ClusterError, load, locked_existing
from tanist.testing.errors import as_cluster_errors
from tanist.testing.operations import Backend, Operations

SETTINGS = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "200"}
"""A test does not wait 9 s until a broker that is paused, cut off, or dead with all others counts as dead."""


class Cluster(Operations):
    """A cluster of processes on this machine.

    with Cluster(brokers=3) as kafka:
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap})
        kafka.crash(1, lose="page-cache")
    """

    def __init__(
        self,
        brokers: int = 3,
        controllers: int = 0,
        config: Mapping[str, str] | None = None,
        *,
        log_dirs: int = 1,
        secure: bool = False,
        features: Mapping[str, int] | None = None,
        folder: Path | str | None = None,
    ) -> None:
        """`controllers` 0: brokers are controllers too. `config`: Kafka's settings, for every node.
        `secure`: with TLS, users and ACLs; `security()` has what clients need.

        With a `folder` the cluster stays: it is started there, or used if it runs already, and `close` leaves it alone.
        """
        super().__init__(Backend(()))
        for name in config or {}:
            if base_name(name) not in BROKER_SETTINGS:
                near = " or ".join(get_close_matches(name, BROKER_SETTINGS, n=2))
                meant = f"did you mean {near}?" if near else "`tanist configs describe --broker all --all` lists them"
                raise ClusterError(f"{name} is not a setting of a broker; {meant}")
        self._brokers = brokers
        self._controllers = controllers
        self._config = SETTINGS | dict(config or {})
        self._log_dirs = log_dirs
        self._secure = secure
        self._features = dict(features or {})
        self._folder = None if folder is None else Path(folder)
        self._kept = folder is not None

    @classmethod
    def connect(cls, bootstrap: str) -> Cluster:
        """Any other Kafka: the same object, where faults raise `NotAvailable`. `bootstrap` is `host:port,...`."""
        try:
            addresses = tuple(parse_bootstrap(bootstrap))
        except ValueError as error:
            raise ClusterError(f"connect: {error}; give it like localhost:9092") from None
        found = cls()
        found._backend.bootstrap = addresses
        with as_cluster_errors(f"connect({bootstrap!r})"), found._client() as client:
            client.metadata(())
        return found

    @property
    def folder(self) -> Path | None:
        """Where a cluster stays that is kept; None of any other."""
        return self._folder

    def __enter__(self) -> Cluster:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Start the cluster; returns when it is ready."""
        if self._backend.local is not None or self._backend.bootstrap:
            return
        folder = self._folder if self._folder is not None else Path(tempfile.mkdtemp(prefix="tanist-"))
        local = runtime.LocalCluster(folder)
        local.up(
            brokers=self._brokers,
            controllers=self._controllers,
            port=0,
            log_dirs=self._log_dirs,
            secure=self._secure,
            config=self._config,
            features=self._features,
            ends_with_us=not self._kept,
            ephemeral=not self._kept,
            join=self._kept,
        )
        self._backend.local = local

    def close(self) -> None:
        """Stop the cluster and remove its folder, unless it is to be kept. Harmless when it is closed already."""
        local, self._backend.local = self._backend.local, None
        if local is None or self._folder is not None:
            return
        with suppress(ClusterError):  # another command has removed it
            file = load(local.folder)
            if file is not None and file.ephemeral:
                local.down(patience_s=0.0)  # nobody reads its data any more: it need not stop in an orderly way
            else:
                local.down()

    def keep(self) -> Path:
        """Keep the data folder when the cluster is closed: `tanist up --data` and `tanist salvage` can read it."""
        local = self._need("keep", "keep a data folder")
        with locked_existing(local.folder) as file:
            if file.ephemeral:
                file.ephemeral = False
                file.save(local.folder)
        return local.folder

    def reset(self) -> None:
        """Make the cluster what it was when it was new: the same nodes and ports, no topics."""
        self._need("reset", "empty a cluster").reset()
