"""A text to copy keeps its lines, can be scrolled by the keyboard, and ends early if it is long."""

import pytest

from holdfast.kit.pages.site import Site
from tests.programs.translations import SOURCE

SITE = Site("Holdfast")


def box(lines: int, kind: str = "Python") -> str:
    """The component with a program of this many lines."""
    environment = SITE._environments["en"]  # pyright: ignore[reportPrivateUsage] - a page shows it among others
    template = environment.from_string(
        '{% from "components.html" import copyable %}{{ copyable(text, "a", "Copy it", kind) }}'
    )
    return template.render(text="\n".join(f"  line {number}" for number in range(lines)), kind=kind)


def test_a_code_box_keeps_its_lines_and_can_be_focused_by_its_kind() -> None:
    assert '<pre tabindex="0" role="group" aria-label="Python"><code id="a">  line 0\n  line 1</code></pre>' in box(2)
    assert 'aria-label="Text to copy"' in box(1, kind="")


@pytest.mark.parametrize(("lines", "kind", "is_folded"), [(18, "JSON", False), (19, "JSON", True), (19, "", False)])
def test_a_long_program_ends_early_until_it_is_opened(lines: int, kind: str, is_folded: bool) -> None:
    assert ("<span>Show all</span>" in box(lines, kind)) == is_folded


def test_a_text_without_a_label_has_no_button() -> None:
    environment = SITE._environments["en"]  # pyright: ignore[reportPrivateUsage] - a page shows it among others
    template = environment.from_string('{% from "components.html" import copyable %}{{ copyable("x", "a") }}')

    assert "<button" not in template.render()


def test_all_code_boxes_are_the_component() -> None:
    templates = SOURCE.rglob("*.html")
    with_boxes = {path.name for path in templates if "<pre" in path.read_text(encoding="utf-8")}

    assert with_boxes == {"components.html", "mail_paragraphs.html"}, "The latter shows a mail as text."
