"""Names of tests are sentences that are understood alone: they begin with what they are about, and name roles."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

DEPENDENT_WORDS = {
    *(
        "what",
        "whatever",
        "who",
        "whoever",
        "whom",
        "whose",
        "when",
        "where",
        "why",
        "however",
        "that",
        "then",
        "there",
    ),
    *("it", "its", "they", "those", "these", "neither", "nor", "nobody", "nothing", "somebody", "everybody"),
    *("other", "another", "each", "of", "and", "everything"),
}
"""First words of names of tests whose subject is missing, or stands in the name of another test."""

ROLELESS_WORDS = {"whoever", "somebody", "someone", "nobody", "anybody", "everybody", "those_who", "glued"}
"""Words in names of tests for which a role has a name, such as organizer, visitor or caller."""

VAGUE_SUBJECT = re.compile(r"test_the_(?:page|list|form|loop)_(?!of_|on_|for_|to_|that_|after_|before_)")
"""A subject of which the service has many, without a word that says which."""

ROLELESS = re.compile(rf"_(?:{'|'.join(sorted(ROLELESS_WORDS))})(?:_|$)")


DEFINITION = re.compile(r"^[ \t]*(?:async )?def (test_\w+)", re.MULTILINE)
"""The definition of a test. To parse all tests takes seconds."""


def dependent_tests(path: str, text: str) -> list[str]:
    """The tests of a module whose names do not begin with what they are about, or have a pronoun for a role."""
    return [
        f"{path}:{len(text[: definition.start(1)].splitlines())} {name}"
        for definition in DEFINITION.finditer(text)
        for name in definition.groups()
        if name.split("_")[1] in DEPENDENT_WORDS or ROLELESS.search(name) or VAGUE_SUBJECT.match(name)
    ]


def test_no_name_of_a_test_begins_with_a_word_that_needs_another_test_to_be_understood() -> None:
    paths = sorted((ROOT / "tests").rglob("*.py"))
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    modules = {path: text for path, text in texts.items() if "def test_" in text}

    assert len(modules) > 500
    assert [name for path, text in modules.items() for name in dependent_tests(path, text)] == []


@pytest.mark.parametrize(
    "name",
    [
        *("what_is_refused", "nobody_waits", "of_two_one_is_refused", "its_pages_are_shown"),
        *("a_queue_is_gone_for_everybody", "seats_go_to_those_who_wait", "the_page_is_in_german", "the_loop_continues"),
    ],
)
def test_a_name_of_a_test_without_its_subject_is_noticed(name: str) -> None:
    assert len(dependent_tests("test_x.py", f"class Tests:\n    async def test_{name}(): ...")) == 1


@pytest.mark.parametrize(
    "name",
    [
        *("an_item_is_shown", "a_pool_of_another_shop_is_not_found", "items_are_refused"),
        *("the_page_of_a_pool_is_in_german", "a_person_who_pays_has_a_seat"),
    ],
)
def test_a_name_of_a_test_with_its_subject_is_accepted(name: str) -> None:
    assert dependent_tests("test_x.py", f"def test_{name}(): ...") == []
