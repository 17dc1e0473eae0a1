"""Waiting for a state of a cluster that may be broken in any way: asked for until it is so, or the time is over.

Owns the patience of `tanist wait` and of `tanist.testing`, and what is said when it ends: what was lacking last, and
that there is no quorum. Without one a state only is remembered: those that led or were in sync may be dead.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.quorum import metadata_age_ms, silence
from tanist.runtime.cluster.cluster_file import ClusterError

POLL_EVERY_S = 0.05
_ASK_S = 5.0


def wait_until_so(lack_of: Callable[[Client], str], connect: Callable[[], Client], timeout_s: float) -> str:
    """Ask until nothing is lacking, or the time is over; gives what was lacking last.

    `connect` is called again where no broker answers: brokers may have come back elsewhere. `KafkaError` for a refusal
    that time does not mend, `ClusterError` if at the end there is no cluster.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            with connect() as client:
                client.timeout_s = min(_ASK_S, max(0.5, timeout_s))
                reached = True
                while reached:
                    old = ""
                    try:
                        # Of a broker that hears from a controller, if one does: what another knows may be past.
                        age_ms = metadata_age_ms(client, election_s=0.0)
                        old = "" if age_ms is None else silence(age_ms)
                        lack = lack_of(client)
                    except Unreachable as error:
                        lack, reached = error.in_words, False
                    except KafkaError as error:
                        if not error.retriable:
                            raise
                        lack = str(error)
                    if not lack and not old:
                        return ""
                    if time.monotonic() >= deadline:
                        return "; ".join(filter(None, (lack, old)))
                    time.sleep(POLL_EVERY_S)
        except ClusterError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_EVERY_S)
