"""Session tokens. The official package `shopifyapp` is the oracle where it is right, PyJWT where it only decodes."""

import base64
import time
from collections.abc import Sequence
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shopify_app import ShopifyApp

from holdfast.inventory.shopify.platform_tokens import (
    InvalidSessionToken,
    SessionToken,
    sign_session_token,
    verify_session_token,
)

SECRET, OLD = b"the client secret of 32 characters", b"the secret before, also of 32 chars"
SHOP = "some-shop.myshopify.com"
NOW = 1_763_640_000


def claims(at: int = NOW, /, **changes: Any) -> dict[str, Any]:
    return {
        "iss": f"https://{SHOP}/admin",
        "dest": f"https://{SHOP}",
        "aud": "client",
        "sub": "42",
        "exp": at + 60,
        "nbf": at,
        "iat": at,
        "jti": "f8912129-1af6-4cad-9ca3-76b0f7621087",
        "sid": "aaea182f2732d44c23057c0fea584021a4485b2bd25d3eb7fd349313ad24c685",
        **changes,
    }


def refusal_of(token: str, secrets: Sequence[bytes] = (SECRET, OLD), now: float = NOW) -> str | None:
    """Why a token is refused; None if it is believed."""
    try:
        verify_session_token(token, "client", secrets, now)
    except InvalidSessionToken as error:
        return str(error)
    return None


def oracle_believes(token: str) -> bool:
    app = ShopifyApp("client", SECRET.decode(), OLD.decode())
    headers = {"Authorization": f"Bearer {token}"}
    request = {"method": "GET", "headers": headers, "url": "https://app.test/", "body": ""}
    return app.verify_app_home_req(request, "/patch").ok  # pyright: ignore[reportArgumentType] - it is one


def test_a_token_names_the_shop_the_user_and_the_session() -> None:
    token = verify_session_token(sign_session_token(claims(), SECRET), "client", [SECRET], NOW)

    assert token == SessionToken(SHOP, "42", claims()["sid"])


def test_a_session_token_of_another_library_is_accepted_with_the_present_and_the_old_secret() -> None:
    for secret in (SECRET, OLD):
        assert refusal_of(jwt.encode(claims(), secret, "HS256")) is None
    assert refusal_of(jwt.encode(claims(), OLD, "HS256"), [SECRET]) is not None


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (NOW + 69, None),
        (NOW + 70, "The token has expired."),
        (NOW - 10, None),
        (NOW - 11, "The token is not valid yet."),
    ],
)
def test_the_clocks_may_differ_by_10_seconds(at: int, reason: str | None) -> None:
    assert refusal_of(sign_session_token(claims(), SECRET), now=at) == reason


@pytest.mark.parametrize("algorithm", ["none", "HS384", "HS512", "hs256", "RS256", ""])
def test_a_session_token_with_another_algorithm_is_refused(algorithm: str) -> None:
    header, content, signature = sign_session_token(claims(), SECRET, {"alg": algorithm, "typ": "JWT"}).split(".")

    assert refusal_of(f"{header}.{content}.{signature}") == "The token is not signed by HS256 alone."
    assert refusal_of(f"{header}.{content}.") == "This is not a session token."


def test_a_session_token_with_a_critical_header_is_refused() -> None:
    assert refusal_of(sign_session_token(claims(), SECRET, {"alg": "HS256", "crit": ["exp"]})) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "another app"},
        {"aud": ["client"]},
        {"dest": "https://evil.example.com", "iss": "https://evil.example.com/admin"},
        {"dest": f"http://{SHOP}", "iss": f"http://{SHOP}/admin"},
        {"dest": f"https://{SHOP}:443"},
        {"dest": f"https://user@{SHOP}"},
        {"dest": "https://SOME-SHOP.myshopify.com"},
        {"dest": SHOP},
        {"dest": "https://["},
        {"exp": "soon"},
        {"exp": None},
        {"sub": 42},
    ],
)
def test_a_session_token_with_wrong_claims_is_refused_even_if_it_is_signed(changes: dict[str, Any]) -> None:
    assert refusal_of(sign_session_token(claims(**changes), SECRET)) is not None


@pytest.mark.parametrize("name", ["iss", "dest", "aud", "sub", "exp", "nbf"])
def test_every_claim_of_a_session_token_is_required(name: str) -> None:
    assert (
        refusal_of(sign_session_token({claim: value for claim, value in claims().items() if claim != name}, SECRET))
        is not None
    )


def test_an_app_without_a_client_id_accepts_no_session_token() -> None:
    with pytest.raises(InvalidSessionToken):
        verify_session_token(sign_session_token(claims(aud=""), SECRET), "", [SECRET], NOW)


def test_the_oracle_is_wrong_about_a_token_that_names_two_shops() -> None:
    """It reads the shop in `dest`, and does not compare it with the one in `iss`."""
    token = sign_session_token(claims(int(time.time()), iss="https://another-shop.myshopify.com/admin"), SECRET)

    assert oracle_believes(token)
    assert refusal_of(token, now=time.time()) == "The token does not name one shop."


@given(st.text(), st.sampled_from([SECRET, OLD]))
def test_a_session_token_signed_here_is_accepted_here_and_by_the_oracle(user: str, secret: bytes) -> None:
    token = sign_session_token(claims(int(time.time()), sub=user), secret)

    assert refusal_of(token, now=time.time()) is None
    assert oracle_believes(token)


@given(st.text() | st.from_regex(r"[A-Za-z0-9_-]{2,20}\.[A-Za-z0-9_-]{2,20}\.[A-Za-z0-9_-]{43}", fullmatch=True))
def test_texts_of_any_kind_are_refused_as_session_tokens(token: str) -> None:
    assert refusal_of(token) is not None


@pytest.mark.parametrize("part", [0, 1])
def test_a_token_that_is_nested_too_deeply_to_be_read_is_refused(part: int) -> None:
    parts = sign_session_token(claims(), SECRET).split(".")
    parts[part] = base64.urlsafe_b64encode(b'{"x":' + b"[" * 2_000).rstrip(b"=").decode()

    assert refusal_of(".".join(parts)) == "This is not a session token."


@given(place=st.integers(0, 10**6), character=st.characters(max_codepoint=0x2FF))
def test_a_session_token_with_a_changed_character_is_refused(place: int, character: str) -> None:
    token = sign_session_token(claims(), SECRET)
    signed = token.rpartition(".")[0]
    place %= len(signed)

    assert (refusal_of(token[:place] + character + token[place + 1 :]) is None) is (token[place] == character)
