"""UnregisterControllerRequest: API key 94, version 0. By hand: of Kafka 4.4, which kio does not know."""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Request


class UnregisterControllerRequest(Request):
    """An operator removes the registration of a controller that will not come back."""

    controller_id: int = 0

    API_KEY: ClassVar[int] = 94
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("controller_id", "int32", (0, 0)),)
