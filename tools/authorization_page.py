"""Write the tables of docs/authorization.md from `tanist.security.requirements`.

python -m tools.authorization_page
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tanist.security.controller_requirements import CONTROLLER_ROWS
from tanist.security.requirements import BROKER_ROWS, OMITTED, Need, Row
from tanist.wire.acls import ResourceType
from tanist.wire.apis import FORWARDABLE
from tools.page_tables import with_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "authorization.md"


def rewritten(page: str) -> str:
    """The page with its tables made anew."""
    return with_table(with_table(page, "brokers", _table(BROKER_ROWS)), "controllers", _table(CONTROLLER_ROWS))


def _table(rows: tuple[Row, ...]) -> Iterator[str]:
    yield "| Key | Request | When | Needs | Resource | Without it |"
    yield "|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda each: each.api):
        name = "".join(part.capitalize() for part in row.api.name.split("_"))
        forwarded = " (forwarded)" if row.api in FORWARDABLE and rows is CONTROLLER_ROWS else ""
        needs = "each operation that is allowed" if row.bits else " or ".join(map(_need, row.needs))
        cells = (int(row.api), name + forwarded, row.when, needs, row.resource, _without(row))
        yield f"| {' | '.join(map(str, cells))} |"


def _need(need: Need) -> str:
    return f"{need.operation.name} on {'any ' if need.any_name else ''}{need.resource_type.name}"


def _without(row: Row) -> str:
    if row.bits:
        return f"no bit in `{row.at}`" if row.at.isidentifier() else row.at
    if row.at == OMITTED or not row.logged or row.needs[-1].resource_type not in _WITH_ERRORS:
        return row.at
    return f"{row.code.name} ({int(row.code)}): {row.at}"


_WITH_ERRORS = frozenset({ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID})


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
