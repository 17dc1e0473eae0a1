"""Write the tables of docs/authorization.md from `tanist.security.requirements`.

python -m tools.authorization_page
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tanist.security.controller_requirements import CONTROLLER_ROWS
from tanist.security.requirements import BROKER_ROWS, DENIED, OMITTED, Need, Row
from tanist.wire.acls import ResourceType
from tanist.wire.apis import FORWARDABLE, ApiKey
from tools.page_tables import with_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "authorization.md"
_USUAL = {
    ResourceType.TOPIC: "each topic",
    ResourceType.GROUP: "group_id of the request",
    ResourceType.CLUSTER: "kafka-cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional_id of the request",
}
"""The resource of a row that names none: the page says it once."""


class _Check(NamedTuple):
    """A row without its request: requests with one check that are refused as one are in one line."""

    needs: str
    without: str


def rewritten(page: str) -> str:
    """The page with its tables made anew."""
    for name, rows in (("brokers", BROKER_ROWS), ("controllers", CONTROLLER_ROWS)):
        page = with_table(page, name, _tables(rows, forwarded=rows is CONTROLLER_ROWS))
    return page


def _tables(rows: tuple[Row, ...], forwarded: bool) -> Iterator[str]:
    checks = sorted((row for row in rows if not row.bits), key=lambda row: row.api)
    requests = {api: tuple(of) for api, of in groupby(checks, key=lambda row: row.api)}
    simple = {api: _check(of[0]) for api, of in requests.items() if len(of) == 1 and not of[0].when}
    yield from ("| Needs | Requests with this check only | Without it |", "|---|---|---|")
    for check in sorted(set(simple.values())):
        names = ", ".join(_name(api, forwarded) for api, its in simple.items() if its == check)
        yield f"| {check.needs} | {names} | {check.without} |"
    yield from ("", "| Request | When | Needs | Without it |", "|---|---|---|---|")
    for api, of in requests.items():
        if api not in simple:
            for number, row in enumerate(of):
                check = _check(row)
                yield f"| {'' if number else _name(api, forwarded)} | {row.when} | {check.needs} | {check.without} |"
    bits = [f"{_name(row.api, forwarded)} in `{row.at}`" for row in rows if row.bits]
    if bits:
        yield from ("", f"The operations that are allowed, one bit for each: {', '.join(bits)}.")


def _name(api: ApiKey, forwarded: bool) -> str:
    name = "".join(part.capitalize() for part in api.name.split("_"))
    star = "\\*" if forwarded and api in FORWARDABLE else ""
    return f"{name}{star}"


def _check(row: Row) -> _Check:
    needs = " or ".join(map(_need, row.needs))
    named = "" if row.resource == _USUAL.get(row.needs[-1].resource_type) else f": {row.resource}"
    return _Check(needs + named, _without(row))


def _need(need: Need) -> str:
    return f"{need.operation.name} on {'any ' if need.any_name else ''}{need.resource_type.name}"


def _without(row: Row) -> str:
    """Where the error stands; its name only where it is not that of the resource."""
    error = DENIED.get(row.needs[-1].resource_type)
    usual = row.at == OMITTED or not row.logged or row.error in (None, error)
    return row.at if usual else f"{row.code.name} ({int(row.code)}): {row.at}"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
