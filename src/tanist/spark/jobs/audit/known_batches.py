"""Batches that several replicas have, summed up once.

Owns the memory of a task that sums up a partition's replicas one behind the other: what the records of each batch come
to, by the batch's bytes. A follower copies batches as they are, so nearly all of what the second and third replica have
is known, and only hashed. A batch is known by 64 bits of all its bytes, its CRC being right; it is learnt only if its
records are as many as its header says, so that damage within a batch is found in each replica.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tanist.spark.jobs.audit.sums import Sums, in_buckets
from tanist.spark.segments.batch_table import BatchTable
from tanist.spark.segments.fingerprints import fingerprints


class KnownBatches:
    def __init__(self) -> None:
        self._keys: Any = np.empty(0, np.uint64)
        """Ascending."""
        self._rows: Any = np.empty((0, 2), np.int64)
        """For each the rows [first, end) of `_sums`."""
        self._sums: Sums = {}
        self._met: list[Any] = []
        self._decoded: list[tuple[Any, Any, Any]] = []
        self._apart: list[Sums] = []

    def unknown(self, arena: Any, table: BatchTable) -> Any:
        """Which of these batches have to be decoded; those that are known are noted for `met`."""
        keys = fingerprints(arena, table.positions, table.positions + table.sizes)
        known = np.zeros(len(keys), bool)
        if len(self._keys):
            at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            known = self._keys[at] == keys
            self._met.append(at[known])
        headers = table.headers[~known]
        self._decoded.append((keys[~known], headers["base_offset"].astype(np.int64), headers["record_count"]))
        return ~known

    def add(self, sums: Sums) -> None:
        """What decoded batches come to: of `sums.apart`, with `batch_offset`."""
        self._apart.append(sums)

    def met(self) -> Sums | None:
        """The sums of the known batches that were met since the last time."""
        found = np.concatenate(self._met) if self._met else np.empty(0, np.int64)
        self._met = []
        if not len(found):
            return None
        first, end = self._rows[found].T
        rows = np.repeat(first - np.r_[0, np.cumsum(end - first)[:-1]], end - first) + np.arange((end - first).sum())
        return in_buckets({name: column[rows] for name, column in self._sums.items()})

    def learn(self) -> None:
        """What was decoded is known from now on."""
        if not self._apart or not self._decoded:
            return
        sums = {name: np.concatenate([each[name] for each in self._apart]) for name in self._apart[0]}
        keys, offsets, counts = (np.concatenate(column) for column in zip(*self._decoded))
        self._apart, self._decoded = [], []
        order = np.argsort(sums["batch_offset"], kind="stable")
        sums = {name: column[order] for name, column in sums.items()}
        first = np.searchsorted(sums["batch_offset"], offsets, "left")
        end = np.searchsorted(sums["batch_offset"], offsets, "right")
        records = np.r_[0, np.cumsum(sums["records"])]
        # Not those that share a base offset, in a log that no broker wrote: their sums are one.
        _, which, times = np.unique(offsets, return_inverse=True, return_counts=True)
        sound = (records[end] - records[first] == counts) & (times[which] == 1)
        rows = np.stack((first, end), axis=1)[sound]
        if self._sums:
            rows += len(self._sums["records"])
            sums = {name: np.concatenate((column, sums[name])) for name, column in self._sums.items()}
        self._sums = sums
        keys, rows = np.concatenate((self._keys, keys[sound])), np.concatenate((self._rows, rows))
        order = np.argsort(keys, kind="stable")
        self._keys, self._rows = keys[order], rows[order]
