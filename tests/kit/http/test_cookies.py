"""Every cookie of a service is hidden from scripts, and sent only where its pages are."""

import pytest

from holdfast.kit.http.cookies import cookie_header


@pytest.mark.parametrize(
    ("is_secure", "is_framed", "attributes"),
    [
        (True, False, "HttpOnly; Secure; SameSite=Lax"),
        (True, True, "HttpOnly; Secure; SameSite=None; Partitioned"),
        (False, False, "HttpOnly; SameSite=Lax"),
        (False, True, "HttpOnly; SameSite=Lax"),  # browsers take no SameSite=None without https
    ],
)
def test_a_cookie_is_as_protected_as_its_pages_allow(is_secure: bool, is_framed: bool, attributes: str) -> None:
    header = cookie_header("room", "secret", path="/queue", seconds=60, is_secure=is_secure, is_framed=is_framed)

    assert header == (b"set-cookie", f"room=secret; Path=/queue; Max-Age=60; {attributes}".encode())


def test_a_cookie_of_no_seconds_is_removed() -> None:
    assert b"Max-Age=0;" in cookie_header("room", "", seconds=0, is_secure=True)[1]
