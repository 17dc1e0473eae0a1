"""A warning: one line on standard error, before what was asked for, or while it is waited for."""

from __future__ import annotations

import json

import click


def warn(message: str, as_json: bool, **details: object) -> None:
    """That there is no quorum, which is the only thing that is warned of so far."""
    if as_json:
        click.echo(json.dumps({"warning": {"kind": "no-quorum", **details, "message": message}}), err=True)
    else:
        click.echo(f"Warning: {message}", err=True)
