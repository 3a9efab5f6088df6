"""Whatever is asked for: nobody is sent to an address that leads elsewhere than one the client has named."""

from urllib.parse import parse_qsl, urlsplit

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.accounts.oauth.redirects import answered, is_acceptable, named

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


def _joined(first: str, rest: list[str]) -> str:
    return first + "".join(rest)


ADDRESSES = st.builds(_joined, BEGINNINGS, st.lists(PARTS, max_size=6))
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
def test_an_address_that_is_taken_is_a_clients_own_but_for_the_port_on_this_computer(address: str) -> None:
    if named(REGISTERED, address) is None:
        return
    parts = urlsplit(address)
    if address in REGISTERED:
        return
    assert parts.scheme == "http"
    assert parts.hostname in {"localhost", "127.0.0.1", "::1"}
    assert parts.username is None
    assert (parts.path, parts.query, parts.fragment) == ("/callback", "", "")


@given(ADDRESSES)
def test_an_acceptable_address_is_ascii_without_user_and_fragment_and_no_script(address: str) -> None:
    if not is_acceptable(address):
        return
    parts = urlsplit(address)

    assert address.isascii()
    assert address.isprintable()
    assert not {*address} & {" ", "\\", "#", '"', "<", ">"}
    assert parts.username is None
    assert parts.scheme not in {"javascript", "data"}
    if parts.scheme == "http":
        assert parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if parts.scheme == "https":
        assert parts.hostname


@given(st.sampled_from(REGISTERED), st.text(max_size=50), st.text(min_size=1, max_size=50))
def test_an_answer_is_added_to_the_query_and_changes_nothing_else(address: str, state: str, code: str) -> None:
    sent = answered(address, code=code, state=state, iss="https://events.example", error=None)

    before, after = urlsplit(address), urlsplit(sent)
    assert (after.scheme, after.netloc, after.path, after.fragment) == (*before[:3], "")
    added = [("code", code), ("state", state), ("iss", "https://events.example")]
    assert parse_qsl(after.query, keep_blank_values=True) == [*parse_qsl(before.query), *added]
    assert sent.isascii()
