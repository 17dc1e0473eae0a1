"""An error in a response: every error code that its version has for what was asked.

Each partition, topic, group or resource of the response gets the error, and so does the response as a whole. Fetch and
Metadata are exceptions: their top-level errors are those of the fetch session and of a client that has to bootstrap
again, so other errors go to partitions and topics (to the top level of a Fetch that has no partition). Records of a
fetched partition go, for a client that sees an error reads none.
"""

from __future__ import annotations

from tanist.wire.apis import ApiKey, response_class
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.frames import correlation_id_of, decode_response, encode_response
from tanist.wire.schema import Array, Struct

MESSAGE = "injected by a fault of the test"
_TOP_LEVEL: dict[int, frozenset[int]] = {
    ApiKey.FETCH: frozenset(
        {
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        }
    ),
    ApiKey.METADATA: frozenset({ErrorCode.REBOOTSTRAP_REQUIRED}),
}
"""Where the top level has errors of its own: which."""


def stamped(api_key: int, version: int, frame: bytes, error_code: int) -> bytes | None:
    """The whole frame (with its length) of a response with the error; None if it has no place for one.

    `frame` is without its length. A response that cannot be decoded is left alone.
    """
    first, last = response_class(api_key).VERSIONS
    if not first <= version <= last:
        return None
    try:
        message = decode_response(api_key, version, frame)
    except WireError:
        return None
    own_errors = _TOP_LEVEL.get(api_key)
    if own_errors is None:
        count = _stamp_below(message, version, error_code) + _stamp(message, version, error_code)
    elif error_code in own_errors:
        count = _stamp(message, version, error_code)
        if count and api_key == ApiKey.FETCH:
            message.responses = ()  # type: ignore[attr-defined]
    else:
        count = _stamp_below(message, version, error_code)
        if not count and api_key == ApiKey.FETCH:
            count = _stamp(message, version, error_code)
    if not count:
        return None
    return encode_response(message, version, correlation_id_of(frame))


def _stamp(struct: Struct, version: int, error_code: int) -> int:
    """The error codes of a struct itself; gives how many there are."""
    count = 0
    for field in struct.FIELDS:
        if not field.versions[0] <= version <= field.versions[1]:
            continue
        if field.name.endswith("error_code") and field.type == "int16":
            setattr(struct, field.name, error_code)
            count += 1
    if count:
        for field in struct.FIELDS:
            present = field.versions[0] <= version <= field.versions[1]
            if present and field.name == "error_message" and field.type == "string":
                struct.error_message = MESSAGE  # type: ignore[attr-defined]
            elif present and field.type == "records":
                setattr(struct, field.name, b"")
            elif present and field.name == "base_offset":
                struct.base_offset = -1  # type: ignore[attr-defined]
    return count


def _stamp_below(struct: Struct, version: int, error_code: int) -> int:
    """Those of all structs within it."""
    count = 0
    for field in struct.FIELDS:
        if not field.versions[0] <= version <= field.versions[1]:
            continue
        value = getattr(struct, field.name)
        if isinstance(field.type, Array):
            within = value or ()
        else:
            within = (value,)
        for each in within:
            if isinstance(each, Struct):
                count += _stamp(each, version, error_code) + _stamp_below(each, version, error_code)
    return count
