"""ApiVersions as a client asks it that says which software it is (KIP-511): without that a node refuses it."""

from __future__ import annotations

from typing import Final

from tanist.wire.messages.api_versions_request import ApiVersionsRequest

API_VERSIONS: Final = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
