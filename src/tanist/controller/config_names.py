"""Names of the configurations that decisions of the controller read.

Owns the names alone: `settings` resolves their values, `definitions` has their types and defaults.
"""

from __future__ import annotations

from typing import Final

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
PRODUCER_ID_EXPIRATION_MS: Final = "producer.id.expiration.ms"
UNCLEAN_LEADER_ELECTION_ENABLE: Final = "unclean.leader.election.enable"
UNCLEAN_RECOVERY_STRATEGY: Final = "unclean.recovery.strategy"
