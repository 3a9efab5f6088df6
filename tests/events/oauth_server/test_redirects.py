"""No request leads a person to an address that the client has not registered."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.events.oauth_server.redirect_addresses import is_acceptable, registered_address, with_parameters

BEGINNINGS = st.sampled_from(
    """
    https:// https://app.example https://app.example/done http:// http://localhost http://127.0.0.1:8080 http://[::1]
    http://localhost:99 cursor:// cursor: javascript: javascript:// com.example.app:/ data: //app.example HTTPS:// /
    """.split()
)
PARTS = st.sampled_from(
    r"""
    : / // \ @ # ? & = %2f %00 .. . localhost 127.0.0.1 [::1] app.example evil.example :80 :8443 :0 ö x done callback
    " <
    """.split()
) | st.sampled_from(" \n\t")


def _joined_text(first: str, rest: list[str]) -> str:
    return first + "".join(rest)


ADDRESSES = st.builds(_joined_text, BEGINNINGS, st.lists(PARTS, max_size=6))
REGISTERED = (
    "https://app.example/done",
    "https://app.example/done?a=b",
    "http://localhost/callback",
    "http://127.0.0.1:8080/callback",
    "http://[::1]/callback",
    "cursor://app/callback",
)


@given(ADDRESSES)
@example("http://localhost:80@evil.example/callback")
@example("http://localhost.evil.example/callback")
@example("http://localhost\\@evil.example/callback")
@example("http://localhost/callback/x/y")
@example("http://localhost/callback/..")
@example("http://localhost/callback//x")
@example("http://localhost/callbackx")
def test_an_accepted_redirect_address_differs_from_a_registered_one_only_in_port_and_suffix(address: str) -> None:
    if registered_address(REGISTERED, address) is None:
        return
    parts = urlsplit(address)
    if address in REGISTERED:
        return
    assert parts.scheme == "http"
    assert parts.hostname in {"localhost", "127.0.0.1", "::1"}
    assert parts.username is None
    assert re.fullmatch(r"/callback(/[A-Za-z0-9._~-]+)?", parts.path)
    assert not parts.path.endswith(("/.", "/.."))
    assert (parts.query, parts.fragment) == ("", "")


def test_a_program_on_this_computer_may_add_one_segment_to_its_path() -> None:
    codex = "http://127.0.0.1:63546/callback/6MFBM1In3Ey-"
    assert registered_address(["http://127.0.0.1/callback", "http://localhost/callback"], codex) == codex
    assert registered_address(["http://127.0.0.1/callback?a=b"], codex) is None
    assert registered_address(["https://app.example/callback"], "https://app.example/callback/6MFBM1In3Ey-") is None


@given(ADDRESSES)
def test_an_acceptable_address_is_ascii_without_user_and_fragment_and_no_script(address: str) -> None:
    if not is_acceptable(address):
        return
    parts = urlsplit(address)

    assert address.isascii()
    assert address.isprintable()
    assert not {*address} & {" ", "\\", "#", '"', "<", ">"}
    assert parts.username is None
    assert parts.scheme in {"https", "http", "cursor"} or "." in parts.scheme
    if parts.scheme == "http":
        assert parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if parts.scheme == "https":
        assert parts.hostname


@pytest.mark.parametrize(
    "scheme",
    [
        *("search-ms", "search", "ms-msdt", "ms-settings", "ms-officecmd", "ms-word", "microsoft.windows.camera"),
        *(
            "javascript",
            "data",
            "file",
            "vbscript",
            "ssh",
            "tel",
            "intent",
            "steam",
            "zoommtg",
            "x-apple.systempreferences",
        ),
    ],
)
def test_a_scheme_that_may_run_a_program_of_the_system_is_refused(scheme: str) -> None:
    """Before, search-ms and ms-msdt were accepted: only the schemes of a list were refused."""
    assert not any(is_acceptable(f"{scheme}:{rest}") for rest in ("//host/path", "/path", "query=x&crumb=location"))


@pytest.mark.parametrize("address", [None, "search-ms://host/path"])
def test_a_registered_address_with_a_dangerous_scheme_cannot_be_used_any_more(address: str | None) -> None:
    assert registered_address(["search-ms://host/path"], address) is None


def test_the_only_registered_address_is_the_default() -> None:
    assert registered_address(["https://app.example/done"], None) == "https://app.example/done"
    assert registered_address(["https://app.example/done", "https://app.example/other"], None) is None


@pytest.mark.parametrize(
    "address", ["com.example.app:/done", "com.example.app://done", "vscode://publisher.name/done", "claude://done"]
)
def test_a_private_scheme_of_an_app_is_acceptable(address: str) -> None:
    assert is_acceptable(address)


@given(st.sampled_from(REGISTERED), st.text(max_size=50), st.text(min_size=1, max_size=50))
def test_parameters_are_added_to_the_query_of_a_redirect_and_change_nothing_else(
    address: str, state: str, code: str
) -> None:
    sent = with_parameters(address, code=code, state=state, iss="https://events.example", error=None)

    before, after = urlsplit(address), urlsplit(sent)
    assert (after.scheme, after.netloc, after.path, after.fragment) == (*before[:3], "")
    added = [("code", code), ("state", state), ("iss", "https://events.example")]
    assert parse_qsl(after.query, keep_blank_values=True) == [*parse_qsl(before.query), *added]
    assert sent.isascii()
