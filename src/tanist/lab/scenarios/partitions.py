"""One partition's change, without a cluster: kinds `builder`, `assignment` and `revert`.

Owns the players of `controller.partitions.change` and `controller.partitions.assignment`, which are pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from tanist.controller.features import metadata_version_level
from tanist.controller.image.partition_state import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, PartitionState
from tanist.controller.partitions.assignment import Reassignment, complete, reassign, revert
from tanist.controller.partitions.change import Context, Election, Intent, elected_leader, merge, partition_change
from tanist.lab.scenarios.deviations import Step, deviations
from tanist.lab.scenarios.fields import Fields, NotUnderstood, ids
from tanist.lab.scenarios.outcome import Difference, Mismatch, check, error_name, same, value_text
from tanist.wire.ids import NO_LEADER
from tanist.wire.metadata import PartitionChangeRecord, record_version

TOPIC_ID = UUID(int=0x1111)
_RECOVERY = ("RECOVERED", "RECOVERING")
_BEFORE_KRAFT = {"3.0-IV1": 1, "3.1-IV0": 2, "3.2-IV0": 3, "3.3-IV0": 4, "3.3-IV1": 5, "3.3-IV2": 6}
"""Metadata versions that our clusters do not run at, for which a change can still be computed."""


def level_of(version: object) -> int:
    """The level of a metadata.version's name."""
    name = str(version)
    try:
        return _BEFORE_KRAFT[name] if name in _BEFORE_KRAFT else metadata_version_level(name)
    except ValueError as error:
        raise NotUnderstood(str(error)) from error


def state_from(fields: Fields) -> PartitionState:
    replicas = fields.ids("replicas")
    return PartitionState(
        replicas=replicas,
        isr=fields.ids("isr"),
        removing=fields.ids("removing"),
        adding=fields.ids("adding"),
        leader=fields.number("leader", NO_LEADER),
        recovering=is_recovering(fields.get("recovery", "RECOVERED")),
        leader_epoch=fields.number("leader_epoch", 100),
        partition_epoch=fields.number("partition_epoch", 200),
        directories=(UUID(int=0),) * len(replicas),
        elr=fields.ids("elr"),
        last_known_elr=fields.ids("last_known_elr"),
    )


def is_recovering(value: object) -> bool:
    """A leader recovery state, by its name or its number."""
    if isinstance(value, int) and value in (0, 1):
        return value == 1
    if value not in _RECOVERY:
        raise NotUnderstood(f"{value!r} is no leader recovery state")
    return value == "RECOVERING"


def described(state: PartitionState) -> dict[str, object]:
    """A partition under the names of the scenarios."""
    return {
        "replicas": state.replicas,
        "isr": state.isr,
        "removing": state.removing,
        "adding": state.adding,
        "elr": frozenset(state.elr),
        "last_known_elr": frozenset(state.last_known_elr),
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "recovery": _RECOVERY[state.recovering],
    }


def comparable(name: str, value: object) -> object:
    """A field as it is compared: replicas and ISR in order, the ELR's as sets (rule 64)."""
    if name in ("elr", "last_known_elr"):
        return frozenset(ids(value, name))
    if name == "recovery":
        return _RECOVERY[is_recovering(value)]
    return ids(value, name) if isinstance(value, list) else value


# -- builder ----------------------------------------------------------------------------------------------------------


def builder(item: Fields) -> Sequence[Difference]:
    """One computation of `partition_change`."""
    before = state_from(item.inner("state"))
    context = _context(item.inner("ctx"))
    intent = _intent(item.inner("change"))
    expect = item.inner("expect")
    differences: list[Difference] = []
    if "elected" in expect:
        elected = elected_leader(before, intent, context)
        check(expect.inner("elected"), {"leader": elected.leader, "unclean": elected.unclean})
    record = partition_change(before, intent, context)
    after = before if record is None else merge(before, record)
    if "record" in expect:
        differences += _compare_record(expect, record, intent, before, after, context)
    if "after" in expect:
        wanted = expect.inner("after")
        seen = described(after)
        for name in wanted:
            if name not in seen:
                raise NotUnderstood(f"not understood: {wanted.where}.{name}")
            value = comparable(name, wanted[name])
            if seen[name] != value:
                differences.append(
                    _explained(f"after.{name}", {name}, value, seen[name], intent, before, after, context)
                )
    return differences


def _context(fields: Fields) -> Context:
    return Context(
        min_isr=fields.number("min_isr"),
        elr_enabled=bool(fields["elr"]),
        metadata_version=level_of(fields["mv"]),
        acceptable=_acceptable(fields["acceptable"]),
        last_known_leader=bool(fields.get("last_known_leader", True)),
    )


def _acceptable(allowed: object) -> Callable[[int], bool]:
    if allowed in ("all", "none"):
        return lambda _: allowed == "all"
    live = frozenset(ids(allowed, "ctx.acceptable"))
    return lambda broker_id: broker_id in live


def _intent(change: Fields) -> Intent:
    def wanted(name: str) -> tuple[int, ...] | None:
        return None if change.get(name) is None else change.ids(name)

    election = str(change.get("election", "ONLINE"))
    if election not in ("ONLINE", "PREFERRED", "UNCLEAN"):
        raise NotUnderstood(f"{election!r} is no election of Apache's")
    recovery = change.get("target_recovery")
    return Intent(
        topic_id=TOPIC_ID,
        partition=0,
        target_isr=wanted("target_isr"),
        target_replicas=wanted("target_replicas"),
        target_removing=wanted("target_removing"),
        target_adding=wanted("target_adding"),
        election=Election[election],
        unclean_shutdown=frozenset(change.ids("unclean_shutdown")),
        target_recovering=None if recovery is None else is_recovering(recovery),
    )


def _compare_record(
    expect: Fields,
    record: PartitionChangeRecord | None,
    intent: Intent,
    before: PartitionState,
    after: PartitionState,
    context: Context,
) -> list[Difference]:
    wanted = {} if expect["record"] is None else expect.inner("record").plain()
    wanted.pop("note", None)
    if "version" in wanted:
        same("the record's version", record_version(PartitionChangeRecord, context.metadata_version), wanted["version"])
        del wanted["version"]
    unknown = wanted.keys() - {*_RECORD_FIELDS, "leader", "recovery"}
    if unknown:
        raise NotUnderstood(f"not understood: expect.record.{', '.join(sorted(unknown))}")
    values = {name: comparable(name, value) for name, value in wanted.items()}
    fields = _fields_of(record)
    # An unchanged field in a record means nothing; but the existence of a record counts (rule 65), and
    # so does the leader (rule 66).
    as_before = described(before)
    reported = {
        name
        for name in values.keys() | fields.keys()
        if name == "leader" or not _is_kept(name, values, fields, as_before)
    }
    differing = {name for name in reported if values.get(name) != fields.get(name)}
    if not differing and (expect["record"] is None) == (record is None):
        return []
    return [_explained("the record", differing, values, fields, intent, before, after, context)]


def _is_kept(
    name: str, expected: Mapping[str, object], seen: Mapping[str, object], before: Mapping[str, object]
) -> bool:
    return expected.get(name, before[name]) == seen.get(name, before[name]) == before[name]


_RECORD_FIELDS = {
    "isr": "isr",
    "replicas": "replicas",
    "removing": "removing_replicas",
    "adding": "adding_replicas",
    "elr": "eligible_leader_replicas",
    "last_known_elr": "last_known_elr",
}


def _fields_of(record: PartitionChangeRecord | None) -> dict[str, object]:
    """The fields that the record sets, except directories, which the scenarios do not have."""
    if record is None:
        return {}
    fields: dict[str, object] = {}
    for name, attribute in _RECORD_FIELDS.items():
        value = getattr(record, attribute)
        if value is not None:
            fields[name] = comparable(name, list(value))
    if record.leader != NO_LEADER_CHANGE:
        fields["leader"] = record.leader
    if record.leader_recovery_state != NO_RECOVERY_CHANGE:
        fields["recovery"] = _RECOVERY[record.leader_recovery_state]
    return fields


def _explained(
    what: str,
    names: set[str],
    expected: object,
    seen: object,
    intent: Intent,
    before: PartitionState,
    after: PartitionState,
    context: Context,
) -> Difference:
    """A difference in these fields, if a rule accounts for all of them."""
    # The scenarios' min ISR is already capped by partition 0's replicas, as Apache does it.
    step = Step(
        before,
        after,
        context.elr_enabled,
        context.min_isr,
        first_replicas=context.min_isr,
        wanted_isr=before.isr if intent.target_isr is None else intent.target_isr,
        last_known_leader=context.last_known_leader,
    )
    for each in deviations(step):
        if names <= each.fields:
            return Difference(what, value_text(expected), value_text(seen), each.by)
    raise Mismatch(what, expected, seen)


# -- lists ------------------------------------------------------------------------------------------------------------


def assignment(item: Fields) -> Sequence[Difference]:
    """The replicas that a reassignment adds and removes, and whether an ISR completes it."""
    moving = reassign(item.ids("from"), item.ids("to"))
    seen: dict[str, object] = {
        "replicas": moving.replicas,
        "removing": moving.removing,
        "adding": moving.adding,
        "in_progress": bool(moving.removing or moving.adding),
    }
    if "target_isr" in item:
        done = complete(moving, item.ids("target_isr"))
        seen["completes"] = done is not None
        if done is not None:
            seen |= {"isr": done.isr, "final_replicas": done.replicas}
    check(item.inner("expect"), seen)
    return ()


def play_revert(item: Fields) -> Sequence[Difference]:
    """The replicas after a cancelled reassignment."""
    state = state_from(item.inner("state"))
    expect = item.inner("expect")
    error = None if expect.get("error") is None else error_name(expect["error"])
    try:
        left = revert(Reassignment(state.replicas, state.removing, state.adding), state.isr)
    except ValueError as refusal:
        if error != "INVALID_REPLICA_ASSIGNMENT":
            raise Mismatch("reverting", error or "a result", refusal) from refusal
        return ()
    if error is not None:
        raise Mismatch("reverting", error, left)
    check(expect, {"replicas": left.replicas, "isr": left.isr, "unclean": left.unclean})
    return ()
