"""Tokens of OAUTHBEARER that nobody has signed, and the hashes of SCRAM by the numbers that requests give them."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Final

from tanist.security.sasl.scram import HASHES

BY_TYPE: Final = {each.type: each for each in HASHES.values()}


def unsecured_token(claims: Mapping[str, object]) -> str:
    """A token without a signature."""
    header: Mapping[str, object] = {"alg": "none"}
    return ".".join((*(_encoded(each) for each in (header, claims)), ""))


def _encoded(value: Mapping[str, object]) -> str:
    return urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")
