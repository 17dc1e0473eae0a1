"""`--add-scram` of `tanist format`, as `kafka-storage format` takes it: a credential that a new cluster begins with.

    SCRAM-SHA-256=[name=alice,password=alice-secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]

Must never show a password in an error.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping

from tanist.controller.security.scram import credential_record
from tanist.security.sasl.scram import HASHES, MAX_ITERATIONS, MIN_ITERATIONS, Random
from tanist.wire.metadata import UserScramCredentialRecord

_ARGUMENT = re.compile(r"\s*([^=]*)=\[(.*)\]\s*", re.DOTALL)
_KNOWN = ("name", "password", "salt", "iterations", "saltedpassword")
_SALT_BYTES = 16


class ScramArgumentError(ValueError):
    """An argument that says no credential. The message says what to write."""


def parse_credential(text: str, random: Random) -> UserScramCredentialRecord:
    """The record of one argument. ScramArgumentError."""
    found = _ARGUMENT.fullmatch(text)
    if found is None:
        raise ScramArgumentError("--add-scram takes MECHANISM=[name=NAME,password=PASSWORD]")
    hash_ = HASHES.get(found[1])
    if hash_ is None:
        raise ScramArgumentError(f"The add-scram mechanism {found[1]} is not supported; use {' or '.join(HASHES)}")
    given = _options(found[2])
    name = given.get("name")
    if not name:
        raise ScramArgumentError("You must supply 'name' to add-scram")
    if "password" in given and "saltedpassword" in given:
        raise ScramArgumentError("You must only supply one of 'password' or 'saltedpassword' to add-scram")
    if not given.get("password") and not given.get("saltedpassword"):
        raise ScramArgumentError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    iterations = _iterations(given, hash_.name)
    if "salt" in given:
        salt = _base64(given, "salt")
    elif "saltedpassword" in given:
        raise ScramArgumentError("You must supply 'salt' with 'saltedpassword' to add-scram")
    else:
        salt = random(_SALT_BYTES)
    if "saltedpassword" in given:
        salted = _base64(given, "saltedpassword")
    else:
        salted = hash_.salted_password(given["password"], salt, iterations)
    return credential_record(name, hash_.type, salted, salt, iterations)


def _options(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for component in text.split(","):
        name, separator, value = (part.strip() for part in component.partition("="))
        if not separator or name not in _KNOWN:
            raise ScramArgumentError(f"--add-scram knows {', '.join(_KNOWN)}, each as NAME=VALUE between commas")
        found[name] = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
    return found


def _iterations(given: Mapping[str, str], mechanism: str) -> int:
    text = given.get("iterations", str(MIN_ITERATIONS))
    if not text.isdecimal():
        raise ScramArgumentError("The 'iterations' value must be a number for add-scram")
    if int(text) < MIN_ITERATIONS:
        raise ScramArgumentError(f"The 'iterations' value must be >= {MIN_ITERATIONS} for add-scram using {mechanism}")
    if int(text) > MAX_ITERATIONS:
        raise ScramArgumentError(f"The 'iterations' value must be <= {MAX_ITERATIONS} for add-scram using {mechanism}")
    return int(text)


def _base64(given: Mapping[str, str], name: str) -> bytes:
    try:
        return b64decode(given[name], validate=True)
    except (Base64Error, ValueError):
        raise ScramArgumentError(f"The '{name}' value must be base64 for add-scram") from None
