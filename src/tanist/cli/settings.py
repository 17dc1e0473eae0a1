"""Names of settings that people type: which are known, and which one may have been meant."""

from __future__ import annotations

from collections.abc import Iterable

from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.controller.configs.settings import base_name, meant_by


def unknown_setting(names: Iterable[str]) -> str | None:
    """A message about the first name that no broker has; None if all are known."""
    for name in names:
        if base_name(name) in BROKER_SETTINGS:
            continue
        near = meant_by(name)
        meant = f": did you mean {' or '.join(near)}?" if near else ": see `tanist configs describe --broker all --all`"
        return f"{name} is not a setting of a broker{meant}"
    return None
