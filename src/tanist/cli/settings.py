"""Names of settings that people type: which are known, and which one may have been meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from tanist.controller.catalogue import BROKER_SETTINGS
from tanist.controller.settings import base_name


def unknown_setting(names: Iterable[str]) -> str | None:
    """A message about the first name that no broker has; None if all are known."""
    for name in names:
        if base_name(name) in BROKER_SETTINGS:
            continue
        near = get_close_matches(name, BROKER_SETTINGS, n=2)
        meant = f": did you mean {' or '.join(near)}?" if near else ": see `tanist configs describe --broker all --all`"
        return f"{name} is not a setting of a broker{meant}"
    return None
