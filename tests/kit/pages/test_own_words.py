"""Errors in a form are shown by our pages, in their language, and not by the browser."""

import re
from pathlib import Path

import holdfast

CHECKED_BY_BROWSERS = re.compile(
    r"""<(?:input|select|textarea)\b[^>]*?\s(?:required\b|pattern=|min=|max=|minlength=|type="(?:email|url|number)")"""
    r"""|(?:field|area)\([^\n]*(?:\b(?:required|pattern|minlength)=|type="(?:email|url|number|datetime-local)")"""
)
"""Fields that a browser checks by itself before it sends a form."""


def forms(template: str) -> list[str]:
    """The forms of a template, each with its fields."""
    return re.findall(r"<form\b.*?</form>", template, re.DOTALL)


# The reference tries requests: its forms are filled in by programmers, in English.
TEMPLATES = [path for path in Path(*holdfast.__path__).rglob("*.html") if path.name != "docs.html"]


async def test_no_form_leaves_its_checks_to_the_browser() -> None:
    checked = {
        (path.name, form.partition(">")[0])
        for path in TEMPLATES
        for form in forms(path.read_text("utf-8"))
        if CHECKED_BY_BROWSERS.search(form)
    }

    assert len(checked) > 5
    assert {form for form in checked if "novalidate" not in form[1]} == set()
