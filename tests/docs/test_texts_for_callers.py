"""Texts that callers and operators read name a person by the role."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.accounts.settings import SignInSettings
from holdfast.events import api as events
from holdfast.events.documents import openapi
from holdfast.events.problems import ALL as OF_EVENTS
from holdfast.events.settings import Settings as EventsSettings
from holdfast.events.webhooks.messages import MESSAGES as MESSAGES_OF_EVENTS
from holdfast.inventory import api as inventory
from holdfast.inventory.problems import ALL as OF_INVENTORY
from holdfast.inventory.settings import Settings as InventorySettings
from holdfast.inventory.webhooks.messages import MESSAGES as MESSAGES_OF_INVENTORY
from holdfast.kit.contract.problems import COMMON_PROBLEMS
from holdfast.kit.mcp.tools import definition
from tests.docs import commands
from tests.docs.reading import ROOT, pages, present

SERVER = Path(__file__).parents[2] / "packages" / "holdfast-server" / "src" / "holdfast"
PAGES = ("events/documents/agents.md", "inventory/auth.md")

ROLELESS = re.compile(r"\b(?:who|any|no|some|every)(?:body|one|ever)\b", re.IGNORECASE)
"""Words for a person whose role has a name."""

ALLOWED = {"whatever", "no one"}


def texts_of_schema(schema: Any, place: str) -> Iterator[tuple[str, str]]:
    """The descriptions, titles and summaries in a document of JSON, each with its place."""
    if isinstance(schema, dict):
        for name, value in cast(dict[str, Any], schema).items():
            if name in {"description", "summary", "title"} and isinstance(value, str):
                yield f"{place}/{name}", value
            else:
                yield from texts_of_schema(value, f"{place}/{name}")
    elif isinstance(schema, list):
        for number, value in enumerate(cast(list[Any], schema)):
            yield from texts_of_schema(value, f"{place}/{number}")


def texts() -> Iterator[tuple[str, str]]:
    """Every text of the interfaces, with its place."""
    document = openapi.document("Events", "1", "", "https://events.example", events.OPERATIONS, (), MESSAGES_OF_EVENTS)
    yield from texts_of_schema(document, "openapi.json")
    for service in (events, inventory):
        yield service.__name__, service.INSTRUCTIONS
        for operation in service.OPERATIONS:
            if operation.tool:
                yield from texts_of_schema(definition(operation), operation.name)
    for problem in {*COMMON_PROBLEMS, *OF_EVENTS, *OF_INVENTORY}:
        yield problem.code, f"{problem.meaning} {problem.hint}"
    for kind in (SignInSettings, EventsSettings, InventorySettings):
        for name, field in kind.model_fields.items():
            yield f"setting {name}", field.description or ""
    for message in (*MESSAGES_OF_EVENTS, *MESSAGES_OF_INVENTORY):
        yield f"webhook {message.name}", message.description
    for words, command in commands.commands(commands.tree()):
        yield " ".join(words), " ".join([command.text, *command.options.values()])
    for page in PAGES:
        yield page, (SERVER / page).read_text(encoding="utf-8")


def test_texts_of_the_interfaces_name_people_by_their_roles() -> None:
    all_texts = list(texts())
    matches = [
        f"{place}: {match[0]} in {text[max(0, match.start() - 40) : match.end() + 40]!r}"
        for place, text in all_texts
        for match in ROLELESS.finditer(text)
        if match[0].lower() not in ALLOWED
    ]

    assert len(all_texts) > 400
    assert matches == []


@pytest.mark.parametrize("page", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_name_people_by_their_roles(page: Path) -> None:
    # The pages about style and words name the words that are not used; a title of a decision stays.
    if page.name not in {"style.md", "words.md"} and "decisions" not in page.parts:
        assert [word for word in ROLELESS.findall(present(page)) if word.lower() not in ALLOWED] == []


@pytest.mark.parametrize("word", ["Nobody", "whoever", "somebody", "anyone"])
def test_a_word_without_a_role_is_found(word: str) -> None:
    assert ROLELESS.search(f"{word} can register.")
