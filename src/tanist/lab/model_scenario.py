"""Steps of a model as a file: a counterexample that is kept, and played again as the moments of a replay.

Owns the document: `document` writes one, `moments` plays one. Its steps are names of steps (`steps.named`), so playing
it asks the real objects again. The reader trusts nothing: an error in a document is a `ValueError` with the reason, and
no value may be larger than a model allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import MISSING, fields
from typing import Any

from tanist.controller.partitions.recovery_strategy import Strategy
from tanist.lab.model.checking import AnyConfiguration, AnyModel, model_of
from tanist.lab.model.partition.components import Budget
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.judgements import payload_text
from tanist.lab.model.partition.losses import Losses
from tanist.lab.model.partition.model import PartitionModel
from tanist.lab.model.quorum.model import QuorumBudget, QuorumConfiguration
from tanist.lab.model.search import Counterexample
from tanist.lab.model.steps import State, named, take
from tanist.lab.model.transactions.model import TransactionsConfiguration
from tanist.lab.model.transactions.state import TransactionBudget
from tanist.lab.mutations.model import MUTATIONS, Mutation, applied
from tanist.lab.mutations.model_transactions import MODEL_TRANSACTION_MUTATIONS
from tanist.lab.mutations.quorum import QUORUM_MUTATIONS
from tanist.lab.replay.moments import Moment

VERSION = 1
LOSS = "loss"
"""In place of a property, if acknowledged records are lost."""

_KINDS: Mapping[str, type[AnyConfiguration]] = {
    "partition": Configuration,
    "quorum": QuorumConfiguration,
    "transactions": TransactionsConfiguration,
}
_BUDGETS: Mapping[type[AnyConfiguration], type[Budget] | type[QuorumBudget] | type[TransactionBudget]] = {
    Configuration: Budget,
    QuorumConfiguration: QuorumBudget,
    TransactionsConfiguration: TransactionBudget,
}
_MOST_STEPS = 1_000
_MOST_OF_ANYTHING = 1_000_000
_MOST_VOTERS = 5

ALL_MUTATIONS: Mapping[str, Mutation] = {
    **MUTATIONS,
    **QUORUM_MUTATIONS,
    **MODEL_TRANSACTION_MUTATIONS,
}


def document(
    title: str,
    configuration: AnyConfiguration,
    model: AnyModel,
    counterexample: Counterexample,
    mutations: Iterable[str] = (),
) -> dict[str, Any]:
    """The document for `moments`. The model must be the one of the counterexample, with its rules still broken."""
    steps = []
    before = counterexample.first
    for label, after in counterexample.steps:
        steps.append(named(model, before, after, label))
        before = after
    return {
        "tanist-scenario": VERSION,
        "player": "model",
        "title": title,
        "property": counterexample.violation.name,
        "configuration": _configuration_values(configuration),
        "mutations": list(mutations),
        "steps": steps,
    }


def moments(document: Mapping[str, Any]) -> Iterator[Moment]:
    """Play it. `ValueError` if it is no such document, or if its steps do not happen."""
    title, configuration, mutations, steps, broken = _read(document)
    with ExitStack() as patched:
        for mutation in mutations:
            patched.enter_context(applied(mutation))
        # The play must reach the loss, so no property ends it earlier.
        unwatched = frozenset().union(*(mutation.unwatched for mutation in mutations))
        model = model_of(configuration, unwatched)
        played = list(_play(title, model, steps, broken))
    yield from played


def _play(title: str, model: AnyModel, steps: list[str], broken: str | None) -> Iterator[Moment]:
    trace_format = model.trace_format
    state = model.initial()
    yield Moment(at="0", lane="operator", text=title)
    if model.configuration.start:
        yield Moment(at="0", lane="operator", text=f"It begins after: {'; '.join(model.configuration.start)}")
    said: str | None = None
    for number, text in enumerate(steps, 1):
        try:
            label, after, wrong = take(model, state, text)
        except ValueError as error:
            raise ValueError(f"step {number}: {error}") from error
        wrong = wrong or model.violation_of(after)
        last = number == len(steps)
        if wrong is not None and broken not in (wrong.name, LOSS):
            raise ValueError(f"step {number}, {text!r}, breaks {wrong}, and {broken or 'nothing'} is to be broken")
        lane, to = trace_format.lanes(label, state)
        sentence = trace_format.sentence(label, state, after)
        yield Moment(at=str(number), lane=lane, text=sentence, to=to, why=trace_format.why(label, state, after))
        if last:
            said = str(wrong) if broken != LOSS and wrong is not None else _lost(model, after)
        state = after
    if broken is not None:
        if said is None:
            raise ValueError(f"all steps are taken, and {broken} is not broken: the rules have changed since")
        yield Moment(at=str(len(steps)), lane="client" if broken == LOSS else "operator", text=said, broken=True)


def _lost(model: AnyModel, state: State) -> str | None:
    if not isinstance(model, PartitionModel):
        return None
    loss = Losses(model).of(state)
    if not loss.lost:
        return None
    gone = ", ".join(payload_text(payload) for payload in loss.lost)
    return f"{gone} of {loss.acknowledged} acknowledged: lost. Who leads does not have it, and the others will cut it"


# -- reading ----------------------------------------------------------------------------------------------------------


def _read(
    document: Mapping[str, Any],
) -> tuple[str, AnyConfiguration, tuple[Mutation, ...], list[str], str | None]:
    if not isinstance(document, Mapping) or "tanist-scenario" not in document:
        raise ValueError('this is no scenario: it has no "tanist-scenario"')
    if document["tanist-scenario"] != VERSION:
        raise ValueError(f"a scenario of version {document['tanist-scenario']!r}: this tanist plays version {VERSION}")
    if document.get("player") != "model":
        raise ValueError(f"the player of this scenario is {document.get('player')!r}, and not the model checker")
    broken = document.get("property")
    if broken is not None and not isinstance(broken, str):
        raise ValueError(f'"property" is {broken!r}, and no name')
    steps, names = document.get("steps"), document.get("mutations", [])
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
        raise ValueError('"steps" is no list of texts')
    if len(steps) > _MOST_STEPS:
        raise ValueError(f'"steps" are {len(steps):,}: no more than {_MOST_STEPS:,} are played')
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError('"mutations" is no list of names')
    unknown = [name for name in names if name not in ALL_MUTATIONS]
    if unknown:
        raise ValueError(f"no mutation is called {unknown[0]!r}: `tanist lab check --list` names them")
    title = document.get("title", "")
    configuration = _configuration(document.get("configuration"))
    return str(title), configuration, tuple(ALL_MUTATIONS[name] for name in names), steps, broken


def _configuration_values(configuration: AnyConfiguration) -> dict[str, Any]:
    """The values that differ from the defaults."""
    values: dict[str, Any] = {
        "model": next(name for name, kind in _KINDS.items() if isinstance(configuration, kind)),
        "name": configuration.name,
        "about": configuration.about,
        "budget": {name: left for name, left in configuration.budget._asdict().items() if left},
    }
    for field in fields(configuration):
        value = getattr(configuration, field.name)
        if field.name in values or value in (field.default, ()):
            continue
        values[field.name] = (
            value.value if isinstance(value, Strategy) else list(value) if field.name == "start" else value
        )
    return values


def _configuration(values: Any) -> AnyConfiguration:
    if not isinstance(values, dict) or values.get("model") not in _KINDS:
        raise ValueError(f'"configuration" has a "model" that is one of {", ".join(_KINDS)}')
    kind = _KINDS[values["model"]]
    known = {field.name: field for field in fields(kind)}
    given: dict[str, Any] = {"name": "scenario", "about": ""}
    for name, value in values.items():
        if name == "model":
            continue
        if name not in known:
            raise ValueError(f'"configuration" has {name!r}, which is none of {", ".join(known)}')
        given[name] = _value(kind, name, value, known[name].default)
    given.setdefault("budget", _budget(kind, {}))
    return kind(**given)


def _value(kind: type[AnyConfiguration], name: str, value: Any, default: Any) -> Any:
    if name == "budget":
        return _budget(kind, value)
    if name == "start":
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value) or len(value) > _MOST_STEPS:
            raise ValueError(f'"start" is no list of at most {_MOST_STEPS:,} texts')
        return tuple(value)
    if name == "strategy":
        try:
            return Strategy(value)
        except ValueError as error:
            raise ValueError(
                f'"strategy" is {value!r}, none of {", ".join(each.value for each in Strategy)}'
            ) from error
    wanted: type = str if default is MISSING else int if default is None else type(default)
    if type(value) is not wanted and not (default is None and value is None):
        raise ValueError(f"{name!r} is {value!r}, and not {'a number' if wanted is int else f'a {wanted.__name__}'}")
    if isinstance(value, int) and not -1 <= value <= _MOST_OF_ANYTHING:
        raise ValueError(f"{name!r} is {value:,}")
    if name == "voters" and value not in range(1, _MOST_VOTERS + 1):
        raise ValueError(f"{value} voters: 1 to {_MOST_VOTERS} are possible")
    return value


def _budget(kind: type[AnyConfiguration], values: Any) -> Any:
    budget = _BUDGETS[kind]
    if not isinstance(values, dict):
        raise ValueError('"budget" has for each thing how often it may happen')
    for name, left in values.items():
        if name not in budget._fields:
            raise ValueError(f'"budget" has {name!r}, which is none of {", ".join(budget._fields)}')
        if type(left) is not int or not 0 <= left <= _MOST_STEPS:
            raise ValueError(f'"budget" has {left!r} for {name}: 0 to {_MOST_STEPS:,} are possible')
    return budget(**values)
