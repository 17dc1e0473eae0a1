"""A frame: length, header and body of every request and response.

A received frame comes without its length prefix; a written frame has it. The header's version follows from whether the
body's version is flexible (KIP-482), with one exception: the response to ApiVersions always has the old header, because
a client that reads it does not know yet what the broker speaks.

For the same reason an ApiVersions request of a version that we do not have is no `WireError`: Kafka answers it with
version 0 and UNSUPPORTED_VERSION. Nothing after its client id can be read.
"""

from __future__ import annotations

from struct import Struct as Layout
from struct import error as struct_error
from typing import Any, Final, NamedTuple

from tanist.wire.apis import ApiKey, request_class, response_class
from tanist.wire.codec import chunk_encoder, decoder, joined
from tanist.wire.errors import EncodingError, UnsupportedVersion, WireError
from tanist.wire.primitives import Buffer, read_uvarint, skip_tagged_fields
from tanist.wire.schema import ApiMessage, Request, Response

_FIXED: Final = Layout(">hhih")
"""Api key, api version, correlation id, length of the client id."""
_CORRELATION: Final = Layout(">i")
_RESPONSE_HEAD: Final = Layout(">ii")
_FLEXIBLE_RESPONSE_HEAD: Final = Layout(">iix")
MAX_FRAME_BYTES: Final = 0x7FFFFFFF


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int
    """Where in the frame the body begins."""


def parse_request_header(frame: Buffer) -> RequestHeader:
    """The header of a request, without its body. `WireError` if there is no such request or version."""
    try:
        api_key, api_version, correlation_id, length = _FIXED.unpack_from(frame, 0)
        flexible = _FLEXIBLE.get((api_key, api_version))
        if flexible is None:
            flexible = _learn_request(api_key, api_version)
        offset = 10
        client_id = None
        if length >= 0:
            offset += length
            if offset > len(frame):
                raise WireError(f"client id of {length} bytes in a frame of {len(frame)}")
            client_id = str(frame[10:offset], "utf-8")
        if flexible:
            count = frame[offset]
            offset += 1
            if count:
                count, offset = read_uvarint(frame, offset - 1)
                offset = skip_tagged_fields(frame, offset, count)
    except (struct_error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"request header: {error}") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id, offset)


def decode_request(header: RequestHeader, frame: Buffer) -> Request:
    """The body of a request. Bytes after it are ignored, as in Kafka: some clients may send them."""
    return decoder(request_class(header.api_key), header.api_version)(frame, header.body_offset)[0]


def encode_request(message: Request, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A whole frame, length prefix included."""
    name = b"" if client_id is None else client_id.encode()
    try:
        head = _FIXED.pack(message.API_KEY, version, correlation_id, -1 if client_id is None else len(name)) + name
    except struct_error as error:
        raise EncodingError(f"request header: {error}") from error
    if message.is_flexible(version):
        head += b"\0"
    return _framed(message, version, [b"", head])


def encode_response(message: Response, version: int, correlation_id: int) -> bytes:
    """A whole frame, length prefix included."""
    head = _CORRELATION.pack(correlation_id)
    if has_flexible_response_header(type(message), version):
        head += b"\0"
    return _framed(message, version, [b"", head])


def _framed(message: ApiMessage, version: int, out: list[Any]) -> bytes:
    chunk_encoder(type(message), version)(message, out)
    size = sum(map(len, out))
    if size > MAX_FRAME_BYTES:
        raise EncodingError(f"a frame of {size} bytes")
    out[0] = _CORRELATION.pack(size)
    return joined(out, message)


def correlation_id_of(frame: Buffer) -> int:
    """The correlation id of a response."""
    if len(frame) < 4:
        raise WireError(f"a response of {len(frame)} bytes")
    found: int = _CORRELATION.unpack_from(frame, 0)[0]
    return found


def decode_response(api_key: int, version: int, frame: Buffer) -> Response:
    """The body of the response to a request of this key and version. The frame must be used up."""
    cls = response_class(api_key)
    message, end = decoder(cls, version)(frame, response_body_offset(cls, version, frame))
    if end != len(frame):
        raise WireError(f"{len(frame) - end} bytes after {cls.__name__} version {version}")
    return message


def response_body_offset(cls: type[Response], version: int, frame: Buffer) -> int:
    """Where in a response's frame the body begins."""
    if not has_flexible_response_header(cls, version):
        return 4
    try:
        count, offset = read_uvarint(frame, 4)
        return skip_tagged_fields(frame, offset, count)
    except IndexError as error:
        raise WireError(f"response header: {error}") from error


def has_flexible_response_header(cls: type[ApiMessage], version: int) -> bool:
    return cls.API_KEY != ApiKey.API_VERSIONS and cls.is_flexible(version)


def throttle_time_at(api_key: int, version: int) -> int | None:
    """Where in a response's frame, its length included, the throttle time stands; None if it is not the first field."""
    cls = response_class(api_key)
    first = cls.FIELDS[0]
    if first.name != "throttle_time_ms" or not first.versions[0] <= version <= first.versions[1]:
        return None
    return _FLEXIBLE_RESPONSE_HEAD.size if has_flexible_response_header(cls, version) else _RESPONSE_HEAD.size


def throttle_time_of(api_key: int, version: int, frame: Buffer) -> int:
    """The throttle time that a response's frame, length included, begins with; 0 if it does not."""
    at = throttle_time_at(api_key, version)
    if at is None or at + 4 > len(frame):
        return 0
    found: int = _CORRELATION.unpack_from(frame, at)[0]
    return found


def with_throttle_time(api_key: int, version: int, frame: bytes, throttle_ms: int) -> bytes:
    """The frame with another throttle time, if it begins with one."""
    at = throttle_time_at(api_key, version)
    if at is None:
        return frame
    return frame[:at] + _CORRELATION.pack(throttle_ms) + frame[at + 4 :]


_FLEXIBLE: dict[tuple[int, int], bool] = {}
"""Of each request and version that was met and that exists: whether its header is flexible. Bounded by what exists."""


def _learn_request(api_key: int, api_version: int) -> bool:
    cls = request_class(api_key)
    first, last = cls.VERSIONS
    if not first <= api_version <= last:
        if api_key == ApiKey.API_VERSIONS and api_version > last:
            return False  # the header has more fields, which are not needed
        raise UnsupportedVersion(f"{cls.__name__} has versions {first} to {last}, not {api_version}")
    found = _FLEXIBLE[api_key, api_version] = cls.is_flexible(api_version)
    return found
