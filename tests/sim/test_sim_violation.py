"""An error that a node raises: described the same wherever tanist is installed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from types import CodeType
from uuid import UUID

import pytest

from tanist.controller.image.partition_state import PartitionState
from tanist.controller.image.registration import BrokerRegistration
from tanist.sim.checkers.violation import CRASH, Violation
from tanist.sim.events import Place
from tanist.sim.run.chaos_run import ChaosRun, SeedResult

FOLDERS = (
    "/x/src/tanist",
    "/x/tanist/src/tanist",
    "/tanist/tanist/tanist/src/tanist",
    "/x/lib/python3.11/site-packages/tanist",
    "C:\\tanist\\src\\tanist",
    "tanist",
    "/x/other",
)
SOURCE = {
    "tanist.log.directory": "def opened(path):\n    raise LookupError(f'{path} is nowhere')\n",
    "tanist.broker.node": "def start(opened):\n    return [opened(path) for path in ['events-0']]\n",
    "tests.sim.test_made": "def test(start, opened):\n    start(opened)\n",
    "somebody.tanist.else": "def between(test, start, opened):\n    test(start, opened)\n",
}


def _function(module: str, folder: str, made_of: str) -> Callable[..., None]:
    name = f"{folder}/{module.partition('.')[2].replace('.', '/')}.py"
    code: CodeType = compile(made_of, name, "exec")
    names: dict[str, object] = {"__name__": module}
    exec(code, names)
    found = names[code.co_names[0]]
    assert callable(found)
    return found


def _failing(monkeypatch: pytest.MonkeyPatch, folder: str) -> SeedResult:
    opened, start, test, between = (_function(module, folder, made_of) for module, made_of in SOURCE.items())
    monkeypatch.setattr(ChaosRun, "_play", lambda run: between(test, start, opened))
    return ChaosRun(1).run()


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_error_names_the_packages_functions_and_no_folder(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    outcome = _failing(monkeypatch, folder)
    assert outcome.violation is not None
    said = "LookupError: events-0 is nowhere (in sim/run/chaos_run::run > broker/node::start > log/directory::opened)"
    assert outcome.violation.message == said
    assert outcome.digest == _failing(monkeypatch, "/elsewhere").digest


def test_of_an_error_there_is_its_traceback_too() -> None:
    with pytest.raises(KeyError) as raised:
        dict[int, int]()[3]
    violation = Violation.of_error(raised.value, 5)
    assert (violation.property_id, violation.error, violation.message, violation.now_us) == (
        CRASH,
        "KeyError",
        "KeyError: 3",
        5,
    )
    assert violation.frames == ()
    assert violation.traceback is not None
    assert f'File "{__file__}"' in violation.traceback
    again = pickle.loads(pickle.dumps(violation))
    assert vars(again) == vars(violation)


def test_a_violation_carries_values_and_writes_them_as_people_do() -> None:
    state = PartitionState((1, 2, 3), (1,), leader=-1, leader_epoch=4, elr=(2, 3), directories=(UUID(int=7),) * 3)
    other = replace(state, leader=1, elr=(), last_known_elr=(2,))
    broker = BrokerRegistration(3, UUID(int=1), 17, fenced=False, in_controlled_shutdown=True)
    violation = Violation("S12", 1_500_000, Place("events-0", 3), ": ", state, " made ", other, ", 3 is ", broker)
    assert violation.said[2] is state
    assert violation.partition == "events-0"
    assert str(violation) == (
        "S12 at 1.500000 s: events-0 on node 3: <no leader, epoch 4, ISR [1], ELR [2,3]> made "
        "<leader 1, epoch 4, ISR [1], LastKnownElr [2]>, 3 is <broker 3, broker epoch 17, shutting down>"
    )
    again = pickle.loads(pickle.dumps(violation))
    assert vars(again) == vars(violation)
    assert Violation("L1", 0, "nobody is up").partition is None
