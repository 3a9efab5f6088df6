"""Form tokens: valid for one purpose, for two hours, and impossible to make without the secret."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.pages.forms import FORM_TTL_SECONDS, FormTokens
from holdfast.kit.security.service_secret import Secret

OLD, NEW = b"o" * 32, b"n" * 32
PURPOSE = "register for 7"
NOW = 1_800_000_000.0


def tokens(secret: Secret, purpose: str = "forms") -> FormTokens:
    return FormTokens(secret.signer(purpose))


OURS = tokens(Secret(NEW))
TOKEN = OURS.issue(PURPOSE, NOW)


def test_a_fresh_form_token_is_good() -> None:
    assert OURS.check(PURPOSE, OURS.issue(PURPOSE)) == "good"
    assert OURS.check(PURPOSE, OURS.issue(PURPOSE, time.time() - FORM_TTL_SECONDS - 60)) == "old"


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        (0, "good"),
        (FORM_TTL_SECONDS - 61, "good"),
        (FORM_TTL_SECONDS + 1, "old"),
        (10**9, "old"),
        (-60, "good"),
        (-180, "old"),
    ],
)
def test_a_form_token_is_good_for_two_hours_with_a_minute_between_clocks(seconds: int, verdict: str) -> None:
    assert OURS.check(PURPOSE, TOKEN, NOW + seconds) == verdict


@pytest.mark.parametrize("purpose", ["register for 8", "register for", "cancel 7", "", "register for 7 "])
def test_a_token_of_another_purpose_is_forged(purpose: str) -> None:
    assert OURS.check(purpose, TOKEN, NOW) == "forged"


def test_a_form_token_signed_with_another_secret_or_for_another_kind_is_forged() -> None:
    assert tokens(Secret(OLD)).check(PURPOSE, TOKEN, NOW) == "forged"
    assert tokens(Secret(NEW), "links").check(PURPOSE, TOKEN, NOW) == "forged"


def test_a_token_stays_good_while_the_secret_is_rotated() -> None:
    before = tokens(Secret(OLD)).issue(PURPOSE, NOW)
    rotated = tokens(Secret(NEW, old=OLD))

    assert rotated.check(PURPOSE, before, NOW) == "good"
    assert OURS.check(PURPOSE, rotated.issue(PURPOSE, NOW), NOW) == "good"
    assert OURS.check(PURPOSE, before, NOW) == "forged"


def test_a_token_that_was_changed_is_forged() -> None:
    minute, signature = TOKEN.split("-")
    changed = [
        f"{int(minute) + 1}-{signature}",
        f"0{minute}-{signature}",
        f"{minute}-{signature.upper()}",
        f"{minute}-{signature[:-1]}",
        f"{minute}-{signature}0",
        f"{minute}-",
        f"-{minute}-{signature}",
        f"{TOKEN} ",
        minute,
        signature,
        "-",
        "",
        "9" * 5_000 + f"-{signature}",
        f"²-{signature}",
        f"{minute}-{'ä' * 32}",
    ]
    assert [OURS.check(PURPOSE, token, NOW) for token in changed] == ["forged"] * len(changed)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_made_up_token_is_always_forged(purpose: str, token: str) -> None:
    assert OURS.check(purpose, token) == "forged"
    assert OURS.check(purpose, f"{int(NOW) // 60}-{token}", NOW) == "forged"


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_token_is_good_for_exactly_the_purpose_it_was_issued_for(purpose: str, other: str) -> None:
    token = OURS.issue(purpose, NOW)

    assert OURS.check(purpose, token, NOW) == "good"
    assert OURS.check(other, token, NOW) == ("good" if other == purpose else "forged")
