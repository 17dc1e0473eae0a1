"""The seeds of `seeds.json` show the bugs. When nodes have changed others may: `tools.field_seeds` looks for them."""

from __future__ import annotations

import pytest

from tanist.lab.mutations.examination import hunt
from tests.field import seeds
from tests.field.catalogue import all_bugs

BUGS = {bug.test: bug for bug in all_bugs()}
FOUND = {test: made[-1] for test, made in seeds.searches().items() if made[-1].property_id}


def test_searches_are_of_bugs_and_end_with_the_first_seed() -> None:
    assert set(seeds.searches()) <= set(BUGS)
    for made in seeds.searches().values():
        assert all(search.tried > 0 for search in made)
        assert not any(search.property_id for search in made[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("test", FOUND)
def test_the_seed_shows_the_bug_and_nothing_without_it(test: str) -> None:
    search = FOUND[test]
    seen, _ = hunt(seeds.mutation_of(BUGS[test], search.kind), [search.tried])
    assert seen is not None
    assert seen.property_id == search.property_id, seen.message
