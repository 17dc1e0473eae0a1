"""`make site`: pages are staged with links that hold, and a dead link in the HTML is seen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tanist.cli.app import COMMANDS
from tanist.controller.configs.catalogue import BROKER_SETTINGS, TOPIC_SETTINGS
from tools.site import api, commands, links, properties, staging

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "source"
    staging.stage(ROOT, folder, lab=None)
    return folder


def test_each_page_of_the_repository_is_a_page_of_the_site(staged: Path) -> None:
    for path, name in staging.pages_of(ROOT).items():
        assert (staged / f"{name}.md").exists(), path
    index = (staged / "index.md").read_text()
    for name in staging.pages_of(ROOT).values():
        assert name == "index" or name.startswith("decisions/") or f"\n{name}\n" in index


def test_every_page_has_its_place_in_the_navigation(staged: Path) -> None:
    """And none is under "More", where nobody looks."""
    assert ":caption: More" not in (staged / "index.md").read_text()


def test_links_between_staged_pages_hold(staged: Path) -> None:
    generated = {f"{name}.md" for name in staging.GENERATED}
    dead = []
    for page in staged.rglob("*.md"):
        if "source" in page.relative_to(staged).parts:
            continue
        prose = staging._FENCED.sub("", page.read_text())
        for link in re.findall(r"\]\(([^()\s#:]+)(?:#[^)]*)?\)", prose):
            goal = (page.parent / link).resolve()
            if not goal.exists() and goal.relative_to(staged.resolve()).as_posix() not in generated:
                dead.append(f"{page.relative_to(staged)}: {link}")
    assert dead == []


def test_code_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    (tmp_path / "examples").mkdir()
    (tmp_path / "README.md").write_text("# r\n")
    for name in staging.ROOT_PAGES:
        (tmp_path / name).write_text("# x\n")
    (tmp_path / "docs" / "a.md").write_text(
        "# a\n\n[gaps](../GAPS.md#x)\n\n```text\n[gaps](../GAPS.md)\n```\n[b](b.md)\n"
    )
    (tmp_path / "docs" / "b.md").write_text(f"# b\n{staging.LAB_MARK}\n")
    staging.stage(tmp_path, tmp_path / "out", lab="lab/index.html")
    assert (tmp_path / "out" / "a.md").read_text() == (
        "# a\n\n[gaps](gaps.md#x)\n\n```text\n[gaps](../GAPS.md)\n```\n[b](b.md)\n"
    )
    framed = (tmp_path / "out" / "b.md").read_text()
    assert '<iframe src="lab/index.html"' in framed
    assert 'location.protocol === "file:"' in framed, "opened as a file the frame would stay empty"


def test_the_lab_itself_says_that_it_needs_a_server() -> None:
    page = (ROOT / "web" / "lab.html").read_text()
    assert page.index('location.protocol === "file:"') < page.index('type="module"')


def test_every_command_and_property_with_an_effect_is_in_the_reference(tmp_path: Path) -> None:
    commands.write(tmp_path / "commands")
    text = "".join(page.read_text() for page in (tmp_path / "commands").glob("*.md"))
    for name in COMMANDS:
        assert f"## tanist {name}\n" in text
    assert "### tanist topics create\n" in text
    properties.write(tmp_path / "properties.md")
    table = (tmp_path / "properties.md").read_text()
    for name, setting in {**BROKER_SETTINGS, **TOPIC_SETTINGS}.items():
        if not setting.internal:
            assert f"`{name}`" in table


def test_the_api_pages_have_what_tests_use(tmp_path: Path) -> None:
    api.write(ROOT / "src", tmp_path / "api")
    text = (tmp_path / "api" / "testing.md").read_text()
    for part in ("{py:class} tanist.testing.cluster.Cluster(", "{py:method} crash(", "{py:method} inject_error("):
        assert part in text


@pytest.mark.parametrize(
    ("html", "dead"),
    [
        ('<a href="b.html#there">', 0),
        ('<a href="b.html">', 0),
        ('<a href="#here" id="here">', 0),
        ('<a href="c.html">', 1),
        ('<a href="b.html#gone">', 1),
        ('<a href="../../etc/passwd">', 1),
        ('<img src="no.svg">', 1),
        ('<script src="https://example.org/x.js"></script>', 1),
        ('<link rel="stylesheet" href="https://example.org/x.css">', 1),
        ('<a href="https://example.org/">', 0),
    ],
)
def test_dead_links_are_seen(tmp_path: Path, html: str, dead: int) -> None:
    (tmp_path / "a.html").write_text(html)
    (tmp_path / "b.html").write_text('<p id="there">')
    found = links.check(tmp_path)
    assert len(found.dead) == dead
    assert found.external == (["https://example.org/"] if '<a href="https' in html else [])
