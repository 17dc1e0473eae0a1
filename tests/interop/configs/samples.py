"""Values to try on a configuration name: by its type some that most names take and some that none does, and for names
with a vocabulary of their own some words of it."""

from __future__ import annotations

UNKNOWN, BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(10)

_NUMBERS = ("100", "3000", "50000", "2000000", " 7 ", "1", "0", "-1", "-3", "12x", "", "99999999999999999999")
_BY_TYPE: dict[int, tuple[str, ...]] = {
    UNKNOWN: ("a b", "", " x "),
    BOOLEAN: ("true", "false", "TRUE", "maybe", ""),
    STRING: ("a b", "", " x "),
    INT: _NUMBERS,
    SHORT: _NUMBERS,
    LONG: _NUMBERS,
    DOUBLE: ("0.25", "1", "0", "-1", "7.5", "x", ""),
    LIST: ("a,b", "a", "", "a,,b", "a,a", "a , b"),
    CLASS: ("no.such.Class", ""),
    PASSWORD: ("secret", ""),
}

_BY_NAME: dict[str, tuple[str, ...]] = {
    "cleanup.policy": ("compact", "compact,delete", "delete,delete", "Compact"),
    "compression.gzip.level": ("5", "10"),
    "compression.type": ("zstd", "none", "GZIP"),
    "follower.replication.throttled.replicas": ("*", "0:1,1:1", "0:1,*"),
    "leader.replication.throttled.replicas": ("*", "0:1,1:1", "0:1,*"),
    "listener.security.protocol.map": ("PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "PLAINTEXT:NONE"),
    "log.cleanup.policy": ("compact", "compact,delete"),
    "log.message.timestamp.type": ("LogAppendTime",),
    "match": ("client_id=x", "client_id=[", "no_such=x", "client_id"),
    "max.connections.per.ip.overrides": ("127.0.0.1:7", "127.0.0.1"),
    "message.timestamp.type": ("LogAppendTime", "logappendtime"),
    "metrics": ("org.apache.kafka.producer.", "*"),
    # A pool can at most double at once, and halve, and must be able to go back.
    "num.network.threads": ("4",),
    "num.replica.fetchers": ("2",),
    "share.auto.offset.reset": ("earliest", "by_duration:PT1H", "by_duration:1h", "by_duration:-PT1H"),
    "share.isolation.level": ("read_committed",),
    "ssl.client.auth": ("required", "none"),
}


def samples(name: str, kind: int, default: str | None) -> tuple[str, ...]:
    """Values to try, the name's own first; each once."""
    own = _BY_NAME.get(name, ())
    known = () if default is None else (default,)
    return tuple(dict.fromkeys((*own, *known, *_BY_TYPE[kind])))
