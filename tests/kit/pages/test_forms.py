"""A form is read whole or refused: nothing that a browser or a program sends as a form is a fault of ours."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.contract.problems import BAD_REQUEST, PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, Problem, ProblemType
from holdfast.kit.http.body import MAX_BODY
from holdfast.kit.pages.forms import read_form
from tests.kit.pages.form_requests import FORM, request

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


async def read(*pieces: bytes, kind: bytes | None = FORM) -> Mapping[str, str]:
    headers = [(b"content-type", kind)] if kind is not None else []
    return await read_form(request(*headers, body=pieces or (b"",), method="POST"))


async def refusal(*pieces: bytes, kind: bytes | None = FORM) -> ProblemType:
    with pytest.raises(Problem) as error:
        await read(*pieces, kind=kind)
    return error.value.type


async def test_the_fields_of_a_form_are_read_without_surrounding_spaces() -> None:
    fields = await read(b"email=+ada%40example.com%0A&name=J", b"%C3%BCrg+Wei%C3%9F&empty=", b"&token=1%2B1%3D2")

    assert fields == {"email": "ada@example.com", "name": "Jürg Weiß", "empty": "", "token": "1+1=2"}


@pytest.mark.parametrize("kind", [FORM, b"Application/X-WWW-Form-Urlencoded", FORM + b"; charset=UTF-8"])
async def test_a_content_type_of_a_form_is_accepted_in_any_spelling(kind: bytes) -> None:
    assert await read(b"a=1", kind=kind) == {"a": "1"}


@pytest.mark.parametrize("kind", [b"application/json", b"multipart/form-data; boundary=x", b"text/plain", b"", None])
async def test_a_form_of_another_type_is_refused(kind: bytes | None) -> None:
    assert await refusal(b"a=1", kind=kind) is UNSUPPORTED_MEDIA_TYPE


async def test_a_form_without_fields_is_empty() -> None:
    assert await read() == await read(b"&&") == await read(kind=None) == {}


@pytest.mark.parametrize("body", [b"a=1&a=2", b"a=1&b=2&a=", b"a=1&%61=2"])
async def test_a_field_that_is_given_twice_is_refused(body: bytes) -> None:
    assert await refusal(body) is BAD_REQUEST


@pytest.mark.parametrize("body", [b"a=%FF", b"a=%C3", b"%ED%A0%80=1", b"a=\xc3\xbc", b"a=%C0%80"])
async def test_an_escape_that_is_not_utf_8_is_refused(body: bytes) -> None:
    assert await refusal(body) is BAD_REQUEST


async def test_fifty_fields_are_read_and_more_are_refused() -> None:
    fields = [f"f{number}=1".encode() for number in range(51)]

    assert len(await read(b"&".join(fields[:50]))) == 50
    assert await refusal(b"&".join(fields)) is BAD_REQUEST


async def test_a_form_that_is_too_large_is_refused_before_all_of_it_is_read() -> None:
    assert len((await read(b"a=", b"x" * (MAX_BODY - 2)))["a"]) == MAX_BODY - 2
    assert await refusal(b"a=", b"x" * MAX_BODY, b"never read") is PAYLOAD_TOO_LARGE
    declared = request((b"content-type", FORM), (b"content-length", str(MAX_BODY + 1).encode()), body=[])
    with pytest.raises(Problem) as error:
        await read_form(declared)
    assert error.value.type is PAYLOAD_TOO_LARGE


@given(st.dictionaries(TEXT, TEXT, max_size=50))
async def test_a_form_is_read_as_a_browser_sends_it(typed: Mapping[str, str]) -> None:
    assert await read(urlencode(typed).encode()) == {name: value.strip() for name, value in typed.items()}


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=3), st.none() | st.just(FORM) | st.binary(max_size=50))
async def test_bytes_sent_as_a_form_are_a_form_or_a_refusal_with_a_reason(
    pieces: Sequence[bytes], kind: bytes | None
) -> None:
    error: Problem | None = None
    fields: Mapping[str, str] = {}
    try:
        fields = await read(*pieces, kind=kind)
    except Problem as problem:
        error = problem

    assert error is None or 400 <= error.status < 500
    assert all(value == value.strip() for value in fields.values())
