"""The name of a client is kept in its session id. It is bounded, and nothing is refused for it."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from holdfast.kit.mcp.handshake import MAX_CHARACTERS, client_name, name_in_session_id, new_session_id


def stated_name(name: object) -> str:
    return client_name(msgspec.Raw(json.dumps({"name": name, "version": "1"}).encode()))


@given(st.text())
def test_a_session_id_has_the_name_and_is_visible_ascii(text: str) -> None:
    name = stated_name(text)

    session_id = new_session_id(name)

    assert name_in_session_id(session_id) == name
    assert len(name) <= MAX_CHARACTERS
    assert name.isprintable()
    assert all(0x21 <= byte <= 0x7E for byte in session_id)


@given(st.binary())
def test_a_session_id_that_is_made_up_has_a_bounded_name(session_id: bytes) -> None:
    name = name_in_session_id(session_id)

    assert len(name) <= MAX_CHARACTERS
    assert name.isprintable()


@pytest.mark.parametrize(
    ("text", "name"),
    [("claude-ai", "claude-ai"), (" two\n lines\u202e ", "two lines"), ("x" * 100, "x" * 64), ("", ""), (7, "")],
)
def test_the_name_of_a_client_is_one_short_line(text: object, name: str) -> None:
    assert stated_name(text) == name


def test_a_client_without_a_valid_description_has_an_empty_name() -> None:
    assert [client_name(info) for info in (UNSET, msgspec.Raw(b"null"), msgspec.Raw(b"[]"), msgspec.Raw(b"{}"))] == [
        ""
    ] * 4
