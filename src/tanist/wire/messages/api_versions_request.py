"""ApiVersionsRequest: API key 18, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Request


class ApiVersionsRequest(Request):
    client_software_name: str = ""
    client_software_version: str = ""
    cluster_id: str | None = None
    node_id: int = -1

    API_KEY: ClassVar[int] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("client_software_name", "string", (3, 5)),
        Field("client_software_version", "string", (3, 5)),
        Field("cluster_id", "string", (5, 5), nullable=(5, 5)),
        Field("node_id", "int32", (5, 5)),
    )
