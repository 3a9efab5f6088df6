"""A page is in the language its address asks for, or else in the one its reader prefers, or else in English."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.pages.language import (
    ENGLISH,
    GERMAN,
    LANGUAGES,
    Language,
    language_of,
    language_with_code,
    query_in_language,
)
from tests.kit.pages.form_requests import request


def language_for(header: bytes, query: bytes = b"") -> Language:
    return language_of(request((b"accept-language", header), query=query))


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (b"de", GERMAN),
        (b"de-AT", GERMAN),
        (b"DE-ch", GERMAN),
        (b"en-GB,en;q=0.9,de;q=0.8", ENGLISH),
        (b"en;q=0.8,de;q=0.9", GERMAN),
        (b"en;q=0.8, de;q=0.8", ENGLISH),
        (b"fr, de;q=0.001, *;q=0.9", GERMAN),
        (b"de; Q=0.5 , en;q=0.4", GERMAN),
        (b"de;q=0", ENGLISH),
        (b"fr,nl;q=0.5", ENGLISH),
        (b"*", ENGLISH),
        (b"", ENGLISH),
    ],
)
def test_the_browsers_preferred_language_is_taken_by_weight_and_then_by_order(
    header: bytes, language: Language
) -> None:
    assert language_for(header) == language


@pytest.mark.parametrize("weight", [b"nan", b"inf", b"1e3", b"-1", b"2", b"0_1", b"0.1234", b"", b"x", b"1;q=1"])
def test_a_language_with_weight_zero_is_left_out(weight: bytes) -> None:
    assert language_for(b"de;q=" + weight + b",en;q=0.1") == ENGLISH


def test_only_the_beginning_of_a_long_header_counts() -> None:
    assert language_for(b"de," + b"x" * 10_000) == GERMAN
    assert language_for(b"x," * 5_000 + b"de") == ENGLISH


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (b"lang=de", "de"),
        (b"lang=en", "en"),
        (b"a=1&lang=de", "de"),
        (b"lang=en&lang=de", "de"),
        (b"lang=%64e", "de"),
    ],
)
def test_the_language_in_the_address_wins_and_is_kept_by_links(query: bytes, code: str) -> None:
    language = language_for(b"de" if code == "en" else b"en", query)

    assert language.code == code
    assert language.at("/events/7") == f"/events/7?lang={code}"
    assert language.at("/events/7?page=2") == f"/events/7?page=2&lang={code}"
    assert language.at("/events/7#people") == f"/events/7?lang={code}#people"


@pytest.mark.parametrize(
    "query", [b"lang=", b"lang", b"lang=fr", b"lang=DE", b"lang=../de", b"xlang=de", b"a=lang%3Dde"]
)
def test_an_address_that_asks_for_no_language_of_ours_leaves_it_to_the_browser(query: bytes) -> None:
    language = language_for(b"de", query)

    assert language == GERMAN
    assert language.at("/events/7") == "/events/7"


def test_a_query_of_thousands_of_parts_is_not_searched_for_a_language() -> None:
    assert language_for(b"en", b"a=1&" * 10_000 + b"lang=de") == ENGLISH


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_page_for_any_header_and_query_is_in_one_of_our_languages(header: bytes, query: bytes) -> None:
    assert language_for(header, query).code in LANGUAGES
    assert language_for(b"de;" + header, b"lang=" + query).code in LANGUAGES


def test_an_unknown_stored_language_code_means_english() -> None:
    assert [language_with_code(code) for code in ("de", "en", "fr", "", None)] == [
        GERMAN,
        ENGLISH,
        ENGLISH,
        ENGLISH,
        ENGLISH,
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (b"", "?lang=de"),
        (b"lang=en", "?lang=de"),
        (b"state=pending&lang=en&q=a%20b", "?state=pending&q=a%20b&lang=de"),
        (b"language=en&&a", "?language=en&a&lang=de"),
        (b'a=\xc3\xa9"><script>', "?a=%C3%A9%22%3E%3Cscript%3E&lang=de"),
        (b"a=" + b"x" * 7_998, f"?a={'x' * 7_998}&lang=de"),
        (b"a=" + b"x" * 7_999, "?lang=de"),
    ],
)
def test_a_link_to_another_language_keeps_the_rest_of_the_query(query: bytes, expected: str) -> None:
    assert query_in_language(query, "de") == expected
