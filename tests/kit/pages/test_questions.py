"""Pages of the consoles that say what happens before something ends ask in the same way."""

import re

from tests.programs.translations import SOURCE

EXTENDS = re.compile(r'{% extends "(?:.*/)?([^"/]+)" %}')
QUESTION = "question.html"


def is_question(templates: dict[str, str], name: str) -> bool:
    """Whether a template extends the question, or one that does."""
    extended = EXTENDS.search(templates[name])
    return extended is not None and (extended[1] == QUESTION or is_question(templates, extended[1]))


def test_a_page_of_a_console_that_says_what_happens_is_a_question() -> None:
    files = [path for path in SOURCE.rglob("*.html") if "events/pages" not in path.as_posix()]
    templates = {path.name: path.read_text(encoding="utf-8") for path in files}
    with_consequences = [name for name, text in templates.items() if "{% call effect(" in text]

    assert len(with_consequences) > 10
    assert [name for name in with_consequences if not is_question(templates, name)] == []
