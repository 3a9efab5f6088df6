"""A form that a page of another site sent is refused; one of our own pages, and a program's, is let through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.contract.problems import Problem
from holdfast.kit.pages.forms import FOREIGN_FORM, require_same_site
from tests.kit.pages.form_requests import request

BASE_URL = "https://events.example"
EVIL = b"https://evil.example"


def is_let_through(*headers: tuple[bytes, bytes], base_url: str = BASE_URL) -> bool:
    refusal: Problem | None = None
    try:
        require_same_site(request(*headers, method="POST"), base_url)
    except Problem as problem:
        refusal = problem

    assert refusal is None or refusal.type is FOREIGN_FORM
    return refusal is None


@pytest.mark.parametrize("origin", [None, b"https://events.example", EVIL, b"null"])
@pytest.mark.parametrize(
    ("site", "let_through"),
    [
        (b"same-origin", True),
        (b"none", True),
        (b"same-site", False),
        (b"cross-site", False),
        (b"", False),
        (b"x", False),
    ],
)
def test_the_sec_fetch_site_header_decides_whether_a_form_is_accepted(
    site: bytes, let_through: bool, origin: bytes | None
) -> None:
    headers = [(b"sec-fetch-site", site), (b"host", b"events.example")]
    if origin is not None:
        headers.append((b"origin", origin))

    assert is_let_through(*headers) == let_through


@pytest.mark.parametrize(
    ("origin", "let_through"),
    [
        (b"https://events.example", True),
        (b"https://EVENTS.example", True),
        (b"http://10.0.0.7:8000", True),
        (EVIL, False),
        (b"https://events.example:8443", False),
        (b"https://events.example.evil.example", False),
        (b"https://xevents.example", False),
        (b"https://events.example@evil.example", False),
        (b"https://evil.example/https://events.example", False),
        (b"events.example", False),
        (b"null", False),
        (b"", False),
        (b"https://", False),
        (b"http://[::1", False),
    ],
)
def test_the_origin_header_decides_for_a_browser_without_sec_fetch_site(origin: bytes, let_through: bool) -> None:
    # Behind a proxy, the request names an inner host, and the browser the public one.
    assert is_let_through((b"origin", origin), (b"host", b"10.0.0.7:8000")) == let_through


def test_the_origin_is_foreign_without_a_host_or_a_base_address() -> None:
    assert is_let_through((b"origin", b"https://events.example"))
    assert not is_let_through((b"origin", EVIL), (b"host", b""))
    assert not is_let_through((b"origin", b"https://"), (b"host", b""), base_url="")


def test_a_base_address_may_be_written_in_capitals() -> None:
    assert is_let_through((b"origin", b"https://events.example"), base_url="https://Events.Example")


def test_a_form_without_both_headers_is_accepted_as_from_a_program() -> None:
    assert is_let_through((b"host", b"events.example"))
    assert is_let_through()


@given(st.binary(max_size=60), st.binary(max_size=60), st.none() | st.binary(max_size=20))
def test_a_form_with_any_headers_is_accepted_or_forbidden(origin: bytes, host: bytes, site: bytes | None) -> None:
    headers = [(b"origin", origin), (b"host", host)]
    if site is not None:
        headers.append((b"sec-fetch-site", site))

    let_through = is_let_through(*headers)

    if site is None and let_through:
        assert origin.partition(b"://")[2].lower() in {host.lower(), b"events.example"}
