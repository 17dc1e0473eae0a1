"""Commands that inject faults: their first sentence and their options are those of the table (`tanist.faults`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, TypeAlias

import click

from tanist.cli.options import data_option, json_option
from tanist.faults import FAULTS, Parameter

Decorator: TypeAlias = Callable[[Callable[..., Any]], click.Command]

_DURATIONS = {"ms": 1, "s": 1000, "m": 60_000}
_RATES = {"B": 1, "kB": 1000, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LATENCY_MAX_MS = 600_000
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)(?:/s)?")


def _measure(value: str, units: dict[str, int], example: str) -> int:
    found = _NUMBER.fullmatch(value.strip())
    if found is None or found[2] not in units:
        raise click.BadParameter(f"{value!r} is not like {example}; units are {', '.join(units)}")
    return round(float(found[1]) * units[found[2]])


def duration(value: str) -> int:
    time_ms = _measure(value, _DURATIONS, "200ms")
    if time_ms > _LATENCY_MAX_MS:
        raise click.BadParameter(f"{value!r} is more than {_LATENCY_MAX_MS // 60_000} minutes")
    return time_ms


def _rate(value: str) -> int:
    rate_bytes = _measure(value, _RATES, "1MB")
    if not rate_bytes:
        raise click.BadParameter("the rate must be more than 0; `tanist partition` cuts links")
    return rate_bytes


nodes_argument = click.argument("node_ids", metavar="ID...", type=int, nargs=-1, required=True)


def fault_command(name: str, *kinds: str, command: Callable[..., Decorator] = click.command) -> Decorator:
    """A command for these kinds of faults, or for the one of its name. Its docstring goes on behind what they do."""
    rows = [FAULTS[kind] for kind in kinds or (name,)]

    def decorate(function: Callable[..., Any]) -> click.Command:
        said = cleandoc(function.__doc__ or "")
        if len(rows) == 1:
            said = f"{rows[0].does}\n\n{said}"
        else:
            said += "\n\n\b\n" + "\n".join(f"{row.name.removeprefix(f'{name}-'):10} {row.does}" for row in rows)
        made = command(name, help=said)(function)
        taken = {parameter.name: parameter for row in rows for parameter in row.takes}
        for option in (*map(_option, taken.values()), data_option, json_option):
            option(made)
        return made

    return decorate


def _option(parameter: Parameter) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    name, says = parameter.option, parameter.does
    if parameter.unit == "ms":
        default = f"{parameter.default}ms"
        return click.option(
            name, type=duration, metavar="TIME", default=default, show_default=bool(parameter.default), help=says
        )
    if parameter.unit == "bytes":
        return click.option(name, type=_rate, metavar="SIZE", help=says)
    if parameter.default is False:
        return click.option(name, is_flag=True, help=says)
    if parameter.opposite:
        return click.option(name, default=None, help=f"{says}  [default: as Kafka does]")
    return click.option(name, metavar="DIR", help=says)
