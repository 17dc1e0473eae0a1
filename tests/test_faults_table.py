"""The table of faults is what there is: commands, methods of tests, buttons, kinds of the nemesis, the page."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from pathlib import Path
from typing import get_args

import click
import pytest

from tanist.cli.app import TREE, app
from tanist.faults import FAULTS, FaultKind, Where, in_drawing_order, names_of
from tanist.lab.jepsen.schedule import INJECTED
from tanist.runtime.faults.request_rules import RequestFaultKind
from tanist.runtime.faults.settings import BadDisk, DiskState, Partition, Slow
from tanist.sim.faults.links import LINK_FAULTS
from tanist.sim.faults.nemesis import Nemesis
from tanist.sim.faults.schedule import KINDS
from tanist.testing.operations import Operations
from tanist.web import actions
from tools.faults_page import PAGE, rewritten

LIVE = [FAULTS[name] for name in names_of(Where.LIVE)]
ENDS = {"resume", "heal", "start"}
"""Commands and methods of the same sections that end faults."""
SET = {"partition": Partition, "slow": Slow, "disk": BadDisk}
"""What a command sets."""


def command_of(row: FaultKind) -> click.Command:
    found: click.Command | None = app
    context = click.Context(app)
    for word in row.command.split():
        if not isinstance(found, click.Group):
            break
        found = found.get_command(context, word)
    assert found is not None
    return found


def is_variant(row: FaultKind) -> bool:
    """Whether it is another fault with an option."""
    return "--" in row.command or row.command.endswith("|clients")


def method_of(row: FaultKind) -> str:
    return row.method or row.command.split()[0]


@pytest.mark.parametrize("row", LIVE, ids=lambda row: row.name)
def test_a_live_fault_is_a_command(row: FaultKind) -> None:
    command = command_of(row)
    options = {each.name: each for each in command.params if isinstance(each, click.Option)}
    for parameter in row.takes:
        option = options[parameter.name]
        assert "/".join([*option.opts, *option.secondary_opts]) == parameter.option
        assert option.help is not None
        assert option.help.startswith(parameter.does)
    for word in row.command.split():
        if word.startswith("--"):
            assert any(word in each.opts for each in options.values())
    if not is_variant(row):
        assert row.does in (command.help or "")


@pytest.mark.parametrize("row", LIVE, ids=lambda row: row.name)
def test_a_live_fault_is_a_method(row: FaultKind) -> None:
    method = getattr(Operations, method_of(row))
    taken = inspect.signature(method).parameters
    for parameter in row.takes:
        scale = 1000 if parameter.unit == "ms" else 1
        default = taken[parameter.argument].default
        assert (default * scale if default else default) == parameter.default
    if not is_variant(row):
        assert row.does.rstrip(".") in " ".join((inspect.getdoc(method) or "").split())


def test_all_that_a_cluster_is_broken_with_is_in_the_table() -> None:
    rows = [row.command.split() for row in LIVE]
    inject = app.get_command(click.Context(app), "faults")
    assert isinstance(inject, click.Group)
    below = inject.commands["inject"]
    assert isinstance(below, click.Group)
    assert {words[0] for words in rows} == {*TREE["Faults"], "stop"} - ENDS
    assert {words[2] for words in rows if words[0] == "faults"} == set(below.commands)
    # A method breaks something if it notes what it did.
    (operations,) = ast.parse(inspect.getsource(Operations)).body
    assert isinstance(operations, ast.ClassDef)
    methods = [each for each in operations.body if isinstance(each, ast.FunctionDef) and each.name[0] != "_"]
    noted = {
        each.name
        for each in methods
        for call in ast.walk(each)
        if isinstance(call, ast.Attribute) and call.attr in ("_note", "_set", "_by_request")
    }
    assert noted - ENDS == {method_of(row) for row in LIVE}
    assert {f"disk-{state}" for state in get_args(DiskState)} <= names_in("disk")
    assert set(get_args(RequestFaultKind)) == {row.name for row in LIVE if row.command.startswith("faults inject")}


def names_in(command: str) -> set[str]:
    return {row.name for row in LIVE if row.command.split()[0] == command}


def test_the_fields_of_set_faults_are_the_parameters() -> None:
    where = {"source", "target", "node_id", "state"}
    for command, kind in SET.items():
        taken = {parameter.field for name in names_in(command) for parameter in FAULTS[name].takes}
        assert {field.name for field in fields(kind)} - where == taken - {"clients"}


def test_the_nemesis_can_do_what_seeds_draw_and_nothing_else() -> None:
    own = {name.replace("_", "-") for name, value in vars(Nemesis).items() if _is_fault(value)}
    assert own | {f"-{kind}" for kind in LINK_FAULTS} == {f"-{kind}" for kind in KINDS}
    assert not own & {f"-{kind}" for kind in LINK_FAULTS}


def _is_fault(value: object) -> bool:
    return inspect.isfunction(value) and list(inspect.signature(value).parameters) == ["self", "fault", "host", "other"]


def test_jepsen_injects_its_faults() -> None:
    assert names_of(Where.JEPSEN) == tuple(name for name in FAULTS if name in INJECTED)


def test_the_page_has_a_button_for_its_faults() -> None:
    assert (*names_of(Where.PAGE), "start", "heal") == actions.ACTIONS
    assert {"crash", "power-loss", "stop", "disk-full"} == actions.DOWN
    assert actions.DOWN | {"pause", "partition"} == actions.LEAVES


def test_names_and_former_names_mean_one_fault() -> None:
    former = [row.formerly for row in FAULTS.values() if row.formerly]
    assert len(set(former)) == len(former)
    assert all(FAULTS[row.formerly].formerly for row in FAULTS.values() if row.formerly in FAULTS)
    assert all(row.name == row.name.lower() and "_" not in row.name for row in FAULTS.values())
    # "kill" and "power" came behind "freeze", and "crash" was another fault.
    kinds = ("power-loss", "crash", "pause", "crash-mid-turn", "crash")
    assert in_drawing_order(kinds) == ("crash-mid-turn", "pause", "crash", "power-loss")


def test_the_page_of_the_documentation_has_the_table() -> None:
    page = Path(PAGE).read_text()
    assert rewritten(page) == page, "python -m tools.faults_page writes it anew"
