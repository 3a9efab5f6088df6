"""One mailbox has one identity, for every spelling of its address; an address that no mail can reach has none."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.kit.contract.addresses import NoAddress, envelope_address, identity, mailbox

JOE = "joe@münchen.de"
WAYS_TO_WRITE_JOE = (
    "joe@münchen.de",
    "JOE@MÜNCHEN.DE",
    "joe@xn--mnchen-3ya.de",
    "Joe@XN--MNCHEN-3YA.de",
    unicodedata.normalize("NFD", "joe@münchen.de"),
    "\uff4aoe@münchen.de",
    "joe@münchen\u3002de",
    "joe@münchen.de.",
    "joe@xn--mnchen-3ya.de.",
    "mailto:joe@münchen.de",
    "MAILTO:joe@münchen.de",
    "  joe@münchen.de\n",
    "\u202ajoe@münchen.de\u202c",
    *(f"jo{mark}e@mün{mark}chen.de" for mark in "\u200b\ufeff\u00ad\u202a\u202b\u202c\u2060\u200e\u2066\u061c"),
)


@pytest.mark.parametrize("written", WAYS_TO_WRITE_JOE)
def test_every_spelling_of_a_mailbox_has_the_same_identity(written: str) -> None:
    assert identity(written) == JOE
    assert identity(identity(written)) == JOE
    assert envelope_address(identity(written)) == "joe@xn--mnchen-3ya.de"
    assert mailbox(written) == "joe@xn--mnchen-3ya.de"


@pytest.mark.parametrize(
    "address",
    ["ann@straße.example", "ann@\u0646\u0627\u0645\u0647\u200c\u0627\u06cc.example", "a.b+tag@sub.example.com"],
)
def test_an_address_of_a_different_mailbox_has_a_different_identity(address: str) -> None:
    assert identity(address) == address


def test_a_tag_and_a_dot_make_another_mailbox() -> None:
    assert len({identity(address) for address in ("ann@a.example", "ann+x@a.example", "a.nn@a.example")}) == 3


@pytest.mark.parametrize(
    "address",
    [
        "<a@example.com>",
        "Ann <a@example.com>",
        "a@example..com",
        ".a@example.com",
        "a.@example.com",
        "a..b@example.com",
        "a@[127.0.0.1]",
        "a@127.0.0.1",
        "a@localhost",
        "a@example.c_m",
        "a@-example.com",
        "a" * 65 + "@example.com",
        "a@" + "b" * 64 + ".com",
        "a@" + "b." * 130 + "com",
        "a b@example.com",
        '"a"@example.com',
        "a@b@example.com",
        "@example.com",
        "a@",
        "",
        "a@exam\x00ple.com",
        "a@example.com\r\nBcc: b@example.com",
    ],
)
def test_an_address_that_no_mail_can_reach_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(NoAddress, match=r"such as ann@example\.com"):
        identity(address)


def test_a_local_part_that_is_not_ascii_is_refused_with_the_reason() -> None:
    with pytest.raises(NoAddress, match="before the @ that are not ASCII"):
        identity("änn@example.com")


@given(
    st.text(max_size=80)
    | st.from_regex(r"[a-zA-Z0-9._+äß\u200b\u00ad-]{1,20}@([a-zäöß0-9-]{1,12}\.){1,3}[a-z]{2,5}\.?", fullmatch=True)
)
@example("ﬁ@ﬁ.example")
@example("a@xn--i-7iq.ws")
@example("a@xn--a.example")
def test_every_identity_is_its_own_identity_and_can_be_sent_to(text: str) -> None:
    try:
        normal = identity(text)
    except NoAddress:
        return
    assert identity(normal) == normal
    assert identity(normal.upper()) in (normal, identity(normal.upper().lower()))
    assert identity(envelope_address(normal)) == normal
