"""Fills templates by jinja2: whatever goes into one is escaped, unless it is `Markup`.

A template's name is its path below the package. jinja2 is loaded with the first page, which no node ever makes.
"""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tanist.text import counted

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(name: str, /, **values: Any) -> str:
    return _environment().get_template(name).render(values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("tanist", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(counted=partial(counted, separator=","), code=_code)
    return made


def _code(text: str | Markup) -> Markup:
    """Text in which `this` is code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))
