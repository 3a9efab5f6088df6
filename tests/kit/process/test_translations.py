"""Every text of the pages and mails has a German translation with the same placeholders."""

import re
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Message

from tests.programs.translations import FOLDERS, catalog_of_code, is_translated, stored_catalog, texts

PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_the_catalogue_has_exactly_the_texts_that_are_used(folder: Path) -> None:
    assert sorted(map(str, texts(stored_catalog(folder)))) == sorted(map(str, texts(catalog_of_code(folder))))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_every_text_is_translated_with_its_placeholders(folder: Path) -> None:
    for message in stored_catalog(folder):
        if not message.id:
            continue
        ids = _forms(message.id)
        strings = _forms(message.string)
        assert is_translated(message), f"not translated: {message.id}"
        for string in strings:
            assert set(PLACEHOLDER.findall(string)) <= {name for id in ids for name in PLACEHOLDER.findall(id)}
        assert PLACEHOLDER.findall(strings[-1]) or not PLACEHOLDER.findall(ids[-1]), f"a placeholder is lost: {ids[-1]}"


def _forms(text: Any) -> list[str]:
    """A text, or its singular and plural."""
    return [*text] if isinstance(text, list | tuple) else [text]


def test_a_text_with_a_plural_is_translated_only_if_all_of_its_forms_are() -> None:
    seats = ("%(number)s seat", "%(number)s seats")

    assert is_translated(Message(seats, ("%(number)s Platz", "%(number)s Plätze")))
    assert not is_translated(Message(seats, ("", "")))
    assert not is_translated(Message(seats, ("%(number)s Platz", "")))
