"""Names of tests are sentences that are understood alone: they begin with what they are about, and name roles.

A helper is named by a verb or by what it returns, and no two classes share a name.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
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


NAMES_OF_OTHERS = {"tests/contract/shapes.py", "tests/kit/typing/wrong_lines.py"}
"""Modules whose classes are named as the bodies of the API, and as what a type checker says of them."""

CLASS = re.compile(r"^class (\w+)", re.MULTILINE)

HELPER = re.compile(r"^(?:async )?def (\w+)\(", re.MULTILINE)
"""The definition of a function of a module."""

PARTICIPLE = re.compile(r"_?(?!embed$|reading$|unlimited$)[a-z]+(?:ed|ing)")
"""The name of a function that is a participle alone, and says neither what it does nor what it returns."""

RIDDLES = {
    *("begun", "drawn", "due", "few", "frozen", "held", "lost", "made", "met", "paid", "seen", "sent", "written"),
    *("again", "alone", "at", "by", "everything", "go_on", "has", "late", "later", "low", "many", "new", "of", "other"),
    *("others", "over", "soon", "through", "together", "at_work", "make_new", "place", "place_of"),
}
"""Names of functions that say neither what they do nor what they return."""

BARE_NAME = re.compile(
    r"\b(?:as|for) (?:\w+, )*_?refused(?=[:,)]| in )|^[ \t]*(?:\w+, |self\.)*_?refused(?:, \w+)*(?::[^=\n]+)? =(?!=)",
    re.MULTILINE,
)
"""The place where a variable gets a participle as its name: what was caught or answered is a refusal."""

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


def unproved_properties(path: str, text: str) -> list[str]:
    """The tests of a module whose name says that something holds of any value, and that try chosen values only."""
    return [
        f"{path} {definition[1]}"
        for definition in DEFINITION.finditer(text)
        if definition[1].startswith("test_any_") and "@given(" not in text[: definition.start()].rpartition("\n\n")[2]
    ]


def riddles(path: str, text: str) -> list[str]:
    """The functions of a module whose names are participles or prepositions alone."""
    names = HELPER.findall(text)
    return [f"{path} {name}" for name in names if PARTICIPLE.fullmatch(name) or name in RIDDLES]


def bare_names(path: str, text: str) -> list[str]:
    """The variables of a module whose name is a participle for which there is a noun."""
    return [f"{path} {match[0].strip()}" for match in BARE_NAME.finditer(text)]


def repeated_classes(modules: Mapping[str, str]) -> list[str]:
    """The classes of modules that share a name."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path, text in modules.items():
        for name in CLASS.findall(text):
            homes[name].append(path)
    return [f"{name}: {', '.join(paths)}" for name, paths in homes.items() if len(paths) > 1]


@pytest.fixture(scope="module")
def modules() -> dict[str, str]:
    """The text of each module below `tests`, by its path."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def test_no_name_of_a_test_begins_with_a_word_that_needs_another_test_to_be_understood(modules: dict[str, str]) -> None:
    assert sum("def test_" in text for text in modules.values()) > 500
    assert [name for path, text in modules.items() for name in dependent_tests(path, text)] == []


def test_a_test_of_any_value_is_a_property_test(modules: dict[str, str]) -> None:
    assert [name for path, text in modules.items() for name in unproved_properties(path, text)] == []


def test_no_helper_of_tests_is_named_by_a_participle_or_preposition_alone(modules: dict[str, str]) -> None:
    assert [name for path, text in modules.items() for name in riddles(path, text)] == []


def test_no_variable_of_a_test_is_named_by_a_participle_for_which_there_is_a_noun(modules: dict[str, str]) -> None:
    assert [name for path, text in modules.items() for name in bare_names(path, text)] == []


def test_no_two_classes_of_tests_share_a_name(modules: dict[str, str]) -> None:
    assert repeated_classes({path: text for path, text in modules.items() if path not in NAMES_OF_OTHERS}) == []


@pytest.mark.parametrize("name", ["opened", "_watching", "held", "of", "place_of"])
def test_a_helper_that_is_named_by_a_participle_or_preposition_is_noticed(name: str) -> None:
    assert riddles("x.py", f"import re\n\n\nasync def {name}(): ...") == [f"x.py {name}"]


@pytest.mark.parametrize("name", ["open_page", "embed", "seed_rows", "held_quantity", "opened_pages"])
def test_a_helper_that_is_named_by_a_verb_or_noun_is_accepted(name: str) -> None:
    assert riddles("x.py", f"def {name}(): ...") == []


@pytest.mark.parametrize(
    "text",
    [
        *("with raises(Problem) as {}:", "with one() as {}, two():", "except Problem as {}:"),
        *("for {} in answers:", "for _, {} in answers:", "    {} = post()", "self.{} = 1"),
        *("rows, {} = read()", "{}, rows = read()", "{}: Problem | None = None"),
    ],
)
def test_a_variable_of_a_test_that_is_named_by_a_participle_is_noticed(text: str) -> None:
    assert len(bare_names("x.py", text.format("refused"))) == 1
    assert bare_names("x.py", text.format("refusal")) == []


def test_a_test_of_any_value_that_tries_chosen_values_is_noticed() -> None:
    text = "@given(integers())\ndef test_any_number_is_even(): ...\n\n\ndef test_any_text_is_short(): ..."

    assert unproved_properties("test_x.py", text) == ["test_x.py test_any_text_is_short"]


def test_a_class_of_tests_that_repeats_a_name_is_noticed() -> None:
    assert repeated_classes({"x.py": "class Crowd:\n", "y.py": "\nclass Crowd(Base):\n"}) == ["Crowd: x.py, y.py"]


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
