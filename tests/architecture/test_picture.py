"""docs/pictures/architecture.svg is what the imports say."""

from __future__ import annotations

from tools.draw_architecture import PICTURE, drawing


def test_the_picture_of_the_packages_is_drawn_from_the_imports() -> None:
    assert PICTURE.read_text() == drawing(), "run: python tools/draw_architecture.py"
