"""An error in a response: every error code that its version has for what was asked.

The response is one that was made (`stamped`), or is made from the request alone (`error_response`, `refusal`): with a
place for each partition, topic, group, member or resource that the request names.

Each partition, topic, group or resource of the response gets the error, and so does the response as a whole. Fetch and
Metadata are exceptions: their top-level errors are those of the fetch session and of a client that has to bootstrap
again, so other errors go to partitions and topics (to the top level of a Fetch that has no partition). Records of a
fetched partition go, for a client that sees an error reads none.
"""

from __future__ import annotations

from tanist.wire.apis import ApiKey, response_class
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.frames import (
    correlation_id_of,
    decode_request,
    decode_response,
    encode_response,
    parse_request_header,
)
from tanist.wire.messages.alter_client_quotas_response import EntityData as QuotaEntity
from tanist.wire.messages.alter_client_quotas_response import EntryData as QuotaEntry
from tanist.wire.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from tanist.wire.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from tanist.wire.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.join_group_response import JoinGroupResponse
from tanist.wire.messages.leave_group_response import LeaveGroupResponse
from tanist.wire.schema import Array, Field, Request, Response, Struct

_NULL_PROTOCOL_VERSION = 7
_NO_EPOCH = -1

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
_OF_SHARES = frozenset(
    {
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    }
)
"""Where a refusal names no topics."""


def stamped(api_key: int, version: int, frame: bytes, error_code: int, reason: str) -> bytes | None:
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
    if not _Stamp(version, error_code, reason).all_of(message):
        return None
    return encode_response(message, version, correlation_id_of(frame))


def refusal(frame: memoryview, error_code: int, reason: str) -> bytes | None:
    """The whole response (with its length) to a request that is refused with the error; None if it has no place for
    one. A request that cannot be decoded is left to the node.
    """
    try:
        header = parse_request_header(frame)
        request = decode_request(header, frame)
    except WireError:
        return None
    message = error_response(request, header.api_version, error_code, reason)
    return None if message is None else encode_response(message, header.api_version, header.correlation_id)


def error_response(request: Request, version: int, error_code: int, reason: str) -> Response | None:
    """The response to a request that is refused with the error; None if it has no place for one."""
    message: Response = response_class(request.API_KEY)()
    if isinstance(request, AlterReplicaLogDirsRequest):
        message = AlterReplicaLogDirsResponse()
        for directory in request.dirs:  # the response has no directories, and all of their topics
            of_directory = AlterReplicaLogDirsResponse()
            _name(of_directory, directory, version)
            message.results += of_directory.results
    else:
        _name(message, request, version)
    if isinstance(message, JoinGroupResponse) and version >= _NULL_PROTOCOL_VERSION:
        message.protocol_name = None  # as where the coordinator refuses
    if isinstance(message, LeaveGroupResponse):
        message.members = ()  # they are named where the group is known
    if isinstance(message, InitProducerIdResponse):
        message.producer_epoch = _NO_EPOCH
    if request.API_KEY in _OF_SHARES:
        message.responses = ()  # type: ignore[attr-defined]
    return message if _Stamp(version, error_code, reason).all_of(message) else None


# -- the places of errors


class _Stamp:
    """The error, and the words for it where a version has a place for them."""

    def __init__(self, version: int, error_code: int, reason: str) -> None:
        self._version = version
        self._error_code = error_code
        self._reason = reason

    def all_of(self, message: Response) -> int:
        """Give a response the error; gives in how many places."""
        api_key = message.API_KEY
        own_errors = _TOP_LEVEL.get(api_key)
        if own_errors is None:
            count = self._below(message) + self._one(message)
        elif self._error_code in own_errors:
            count = self._one(message)
            if count and api_key == ApiKey.FETCH:
                message.responses = ()  # type: ignore[attr-defined]
        else:
            count = self._below(message)
            if not count and api_key == ApiKey.FETCH:
                count = self._one(message)
        return count

    def _one(self, struct: Struct) -> int:
        """The error codes of a struct itself; gives how many there are."""
        fields = _fields(struct, self._version)
        codes = [field for field in fields if _is_error_code(field)]
        for field in codes:
            setattr(struct, field.name, self._error_code)
        for field in fields if codes else ():
            if field.name == "error_message" and field.type == "string":
                struct.error_message = self._reason  # type: ignore[attr-defined]
            elif field.type == "records":
                setattr(struct, field.name, b"")
            elif field.name == "base_offset":
                struct.base_offset = -1  # type: ignore[attr-defined]
        return len(codes)

    def _below(self, struct: Struct) -> int:
        """Those of all structs within it."""
        count = 0
        for field in _fields(struct, self._version):
            value = getattr(struct, field.name)
            for each in (value or ()) if isinstance(field.type, Array) else (value,):
                if isinstance(each, Struct):
                    count += self._one(each) + self._below(each)
        return count


# -- a response from a request


_KEYS = {
    **dict.fromkeys(("name", "topic", "topic_name"), "topic"),
    **dict.fromkeys(("index", "partition", "partition_id", "partition_index"), "partition"),
    **{name: name for name in ("feature", "group_id", "group_instance_id", "id", "key", "member_id", "producer_id")},
    **{name: name for name in ("resource_name", "resource_type", "topic_id", "transactional_id")},
    "user": "topic",  # of SCRAM credentials, which a request has by `name`
}
"""What says which element of a request one of its response is about: by name of the field, one word for both."""


def _name(answer: Struct, asked: Struct, version: int) -> None:
    """Give a response the elements that have an error code, or have elements with one: one for each of the request."""
    for field in _fields(answer, version):
        element = field.type.element if isinstance(field.type, Array) else None
        if not isinstance(element, type) or not _has_error_codes(element, version):
            continue
        found = [each for each in _fields(asked, version) if _matches(each, element, version)]
        if answer.__class__ is not AlterUserScramCredentialsResponse:
            del found[1:]  # only there two lists of a request have one in the response
        about = (each for source in found for each in getattr(asked, source.name) or ())
        setattr(answer, field.name, tuple(_about(element, each, version) for each in about))


def _about(kind: type[Struct], asked: object, version: int) -> Struct:
    """One element of a response, about one of the request: a struct, or only its key."""
    answer = kind()
    if not isinstance(asked, Struct):
        setattr(answer, _keys(kind, version)[0].name, asked)
        return answer
    by_key = {_KEYS[field.name]: field for field in _keys(type(asked), version)}
    for field in _keys(kind, version):
        source = by_key.get(_KEYS[field.name])
        if source is not None:
            setattr(answer, field.name, getattr(asked, source.name))
    if isinstance(answer, QuotaEntry):
        entity = asked.entity  # type: ignore[attr-defined]
        answer.entity = tuple(
            QuotaEntity(entity_type=each.entity_type, entity_name=each.entity_name) for each in entity
        )
    _name(answer, asked, version)
    return answer


def _matches(field: Field, kind: type[Struct], version: int) -> bool:
    """Whether a field of a request has the elements that those of a response are about."""
    if not isinstance(field.type, Array):
        return False
    keys = {_KEYS[key.name]: key.type for key in _keys(kind, version)}
    element = field.type.element
    if not keys:
        return isinstance(element, type)  # by position: ACLs, and quotas
    if isinstance(element, type):
        return any(keys.get(_KEYS[key.name]) == key.type for key in _keys(element, version))
    return next(iter(keys.values()), None) == element


def _keys(kind: type[Struct], version: int) -> list[Field]:
    return [field for field in _fields(kind, version) if field.name in _KEYS]


def _has_error_codes(kind: type[Struct], version: int) -> bool:
    for field in _fields(kind, version):
        within = field.type.element if isinstance(field.type, Array) else field.type
        if _is_error_code(field) or (isinstance(within, type) and _has_error_codes(within, version)):
            return True
    return False


def _is_error_code(field: Field) -> bool:
    return field.name.endswith("error_code") and field.type == "int16"


def _fields(struct: Struct | type[Struct], version: int) -> list[Field]:
    return [field for field in struct.FIELDS if field.versions[0] <= version <= field.versions[1]]
