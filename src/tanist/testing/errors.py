"""What a test reads when something cannot be done: one line, with the cause and the remedy.

`ClusterError` is the base class, the same that the commands have. `as_cluster_errors` turns what brokers and
sockets say into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tanist.runtime.client.client import KafkaError, OutcomeUnknown, Unreachable, Unsupported
from tanist.runtime.cluster.cluster_file import ClusterError as ClusterError


class NotAvailable(ClusterError):
    """A fault, or a view, that this cluster cannot give: only clusters that tanist has started can."""


class NotInTime(TimeoutError):
    """A condition did not hold within the time; the text says what was missing last."""


@contextmanager
def as_cluster_errors(what: str) -> Iterator[None]:
    """The body asks brokers for `what`; what they refuse is a `ClusterError`."""
    try:
        yield
    except KafkaError as error:
        raise ClusterError(f"{what}: {error}") from error
    except Unsupported as error:
        raise ClusterError(f"{what}: {error}; use a newer Kafka, or a cluster of tanist's own") from error
    except OutcomeUnknown as error:
        raise ClusterError(f"{what}: {error}") from error
    except Unreachable as error:
        raise ClusterError(f"{what}: {error.in_words}; start() those that are down, heal() the links") from error
