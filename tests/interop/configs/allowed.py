"""The differences from Apache Kafka in what is said of configurations that stay, each with its reason.

The table of docs/interop.md has these rows and no others, which `test_interop_configs` holds; and a row that no
difference needs any more fails there too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.controller.configs.definitions import ConfigType
from tests.interop.apache import PIN
from tests.interop.configs.side import KINDS, Verdict
from tests.interop.configs.sweep import LOGGER, Difference, is_ours

UNKNOWN_SERVER_ERROR = -1


class Row(NamedTuple):
    """A difference that stays."""

    what: str
    why: str
    holds: Callable[[Difference], bool]
    versions: tuple[str, ...] = ("4.3.1", "4.4.0")
    """Of Apache Kafka."""


def _failed(difference: Difference) -> bool:
    return isinstance(difference.theirs, Verdict) and difference.theirs.error == UNKNOWN_SERVER_ERROR


def _names_a_class(difference: Difference) -> bool:
    setting = BROKER_SETTINGS.get(difference.name)
    named = setting is not None and (setting.type is ConfigType.CLASS or setting.name == "metric.reporters")
    return named and isinstance(difference.theirs, Verdict)


def _names_a_bound(difference: Difference) -> bool:
    theirs, ours = (each.message or "" if isinstance(each, Verdict) else "" for each in difference[3:])
    must = f"{difference.name} must be "
    return ours.startswith(must) and theirs.startswith(must) and theirs.rpartition(" ")[2].startswith("group.")


ROWS = (
    Row(
        "`unclean.recovery.*`, `tanist.*` and, beside 4.3.1, the names of 4.4 are described",
        "They are KIP-966's second phase, ours, and Apache's own by now.",
        lambda difference: difference.theirs is None and is_ours(difference.name),
    ),
    Row(
        "A broker has no loggers",
        "Apache's are the names of its classes. Nothing here logs by class.",
        lambda difference: difference.resource == LOGGER and difference.ours is None,
    ),
    Row(
        "The message about a type of resources that does not exist",
        "Ours names the type. Apache's is its general one of INVALID_REQUEST.",
        lambda difference: difference.resource.kind not in KINDS and difference.asked.startswith("describe"),
    ),
    Row(
        "An operation of IncrementalAlterConfigs that does not exist",
        "INVALID_REQUEST. Apache answers UNKNOWN_SERVER_ERROR, but in 4.4.0 for a logger.",
        lambda difference: difference.asked.startswith("unknown operation") and _failed(difference),
    ),
    Row(
        "APPEND and SUBTRACT on `controller.listener.names` and `process.roles`",
        "They are read-only, and the answer says so. Apache answers UNKNOWN_SERVER_ERROR.",
        lambda difference: difference.name in ("controller.listener.names", "process.roles") and _failed(difference),
    ),
    Row(
        "Names of Java classes are taken unread (`metric.reporters`, `principal.builder.class`, ...)",
        "There is no Java here to load them, and they have no effect.",
        _names_a_class,
    ),
    Row(
        "`sasl.enabled.mechanisms`, `sasl.jaas.config` and `sasl.mechanism.inter.broker.protocol` are not dynamic",
        "A node reads them when it starts, and says so.",
        lambda difference: "reads these configs when a node starts" in str(difference.ours),
    ),
    Row(
        "`log.cleaner.io.max.bytes.per.second` is 1 or more",
        "The cleaner could not go on with less.",
        lambda difference: (
            difference.name == "log.cleaner.io.max.bytes.per.second" and isinstance(difference.theirs, Verdict)
        ),
    ),
    Row(
        "4.3.1: a group's value out of bounds",
        "Ours says the bounds, as 4.4.0 does. 4.3.1 names the property that has one.",
        _names_a_bound,
        ("4.3.1",),
    ),
    Row(
        "4.3.1: a broker's list with a word twice is refused",
        "As by 4.4.0.",
        lambda difference: "must not be duplicated" in str(difference.ours),
        ("4.3.1",),
    ),
    Row(
        "4.4.0: APPEND and SUBTRACT on `streams.rack.aware.assignment.tags`",
        "It is a list, as `group.streams.rack.aware.assignment.tags` is.",
        lambda difference: (
            difference.name == "streams.rack.aware.assignment.tags" and "not LIST" in str(difference.theirs)
        ),
        ("4.4.0",),
    ),
)


def needed() -> set[str]:
    """The rows that this Apache Kafka needs."""
    return {row.what for row in ROWS if PIN.version in row.versions}


def row_of(difference: Difference) -> Row | None:
    """The row that explains a difference."""
    return next((row for row in ROWS if row.what in needed() and row.holds(difference)), None)
