"""Which operations a client may do on a topic, a group or the cluster, as Metadata and the Describe APIs report them.

A field has one bit for each operation, by the numbers of `wire.acls.AclOperation`; `Call.operations` gives them.
"""

from __future__ import annotations

from typing import Final

from tanist.wire.acls import SUPPORTED_OPERATIONS, ResourceType

NOT_ASKED: Final = -(1 << 31)
"""The value of the fields when the request does not ask for operations."""
TOPIC_OPERATIONS: Final = sum(1 << operation for operation in SUPPORTED_OPERATIONS[ResourceType.TOPIC])
"""All that can be done on a topic."""
