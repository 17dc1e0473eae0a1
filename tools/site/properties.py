"""The reference page of the properties, from the catalogue that nodes validate and describe by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tanist.controller.configs.catalogue import BROKER_SETTINGS, CLIENT_METRICS_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from tanist.controller.configs.definitions import ConfigKey, Update

_TABLES: tuple[tuple[str, Mapping[str, ConfigKey], str], ...] = (
    ("Topics", TOPIC_SETTINGS, "For `tanist topics create --config` and `tanist configs`."),
    ("Brokers and controllers", BROKER_SETTINGS, "For a node's properties file, `tanist up --config` and, as far as "
     "they can be changed, `tanist configs`."),
    ("Groups", GROUP_SETTINGS, "For consumer groups."),
)  # fmt: skip
_UPDATES = {Update.READ_ONLY: "", Update.PER_BROKER: "each broker", Update.CLUSTER_WIDE: "all brokers"}


def write(file: Path) -> None:
    file.write_text("\n\n".join(_page()) + "\n")


def _page() -> Iterator[str]:
    count = sum(setting.has_effect for _, table, _ in _TABLES for setting in table.values())
    yield "# Properties"
    yield (
        f"Written from the catalogue that the nodes themselves use. These {count} have an effect in tanist. A valid "
        "name of Apache Kafka 4.3's that has none is kept and described: the names are at the end."
    )
    for title, table, text in _TABLES:
        yield f"## {title}"
        yield text
        brokers = table is BROKER_SETTINGS
        rows = [f"| Name | Type | Default |{' Changed while running |' if brokers else ' Else from |'} |"]
        rows.append("|---|---|---|---|---|")
        for name, setting in table.items():
            if not setting.has_effect or setting.internal:
                continue
            other = _UPDATES[setting.update] if brokers else ", ".join(f"`{each.name}`" for each in setting.synonyms)
            default = f"`{setting.default}`" if setting.default else ""
            rows.append(f"| `{name}` | {setting.type.name.lower()} | {default} | {other} | {_text(setting.doc)} |")
        yield "\n".join(rows)
    yield "## Without effect"
    for title, table, _ in (*_TABLES, ("Subscriptions to client metrics", CLIENT_METRICS_SETTINGS, "")):
        names = [f"`{name}`" for name, setting in table.items() if not setting.has_effect and not setting.internal]
        if names:
            yield f"{title}: {', '.join(names)}."


def _text(text: str) -> str:
    return re.sub(r"([*_<>|\[\]])", r"\\\1", text)
