"""The token endpoint of the platform: the requests that are sent, and the meaning of its answers."""

from typing import Any

import pytest

from holdfast.inventory.shopify.domains import REQUIRED, missing_scopes
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.shopify.platform_tokens import GrantedTokens, TokenEndpoint
from tests.inventory.shopify.standin import SHOP, ScriptedAnswer, platform

TOKENS: dict[str, Any] = {
    "access_token": "shpat_1",
    "scope": "read_products,write_inventory,read_orders,read_locations",
    "expires_in": 3600,
    "refresh_token": "shprt_1",
    "refresh_token_expires_in": 7_776_000,
}
APP = {"client_id": "client", "client_secret": "hush"}


async def grant_tokens(how: str, text: str, answer: ScriptedAnswer, seconds: float = 10) -> tuple[GrantedTokens, Any]:
    """What was granted, and the body that was sent for it."""
    async with platform(lambda _: answer, seconds=seconds) as (client, requests):
        granted = await getattr(TokenEndpoint(client, "client", "hush"), how)(SHOP, text)
    [request] = requests
    assert request.path == f"/{SHOP}/admin/oauth/access_token"
    assert request.headers["content-type"] == "application/json"
    return granted, request.json


async def test_a_code_gets_tokens_that_end() -> None:
    granted, sent = await grant_tokens("for_code", "c0de", ScriptedAnswer(TOKENS))

    assert sent == {**APP, "code": "c0de", "expiring": "1"}
    assert granted == GrantedTokens("shpat_1", TOKENS["scope"], 3600, "shprt_1", 7_776_000)
    assert granted.scopes == set(REQUIRED)


async def test_a_session_token_is_exchanged_for_an_offline_token() -> None:
    _, sent = await grant_tokens("for_session", "a.b.c", ScriptedAnswer(TOKENS))

    assert sent == {
        **APP,
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": "a.b.c",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "requested_token_type": "urn:shopify:params:oauth:token-type:offline-access-token",
        "expiring": "1",
    }


async def test_a_refresh_token_gets_the_next_tokens() -> None:
    _, sent = await grant_tokens("refreshed", "shprt_0", ScriptedAnswer(TOKENS))

    assert sent == {**APP, "grant_type": "refresh_token", "refresh_token": "shprt_0"}


async def test_a_token_without_an_expiry_is_accepted() -> None:
    granted, _ = await grant_tokens("for_code", "c0de", ScriptedAnswer({"access_token": "shpat_1", "scope": ""}))

    assert granted == GrantedTokens("shpat_1", "")
    assert granted.scopes == frozenset()


async def test_a_grant_that_is_not_valid_is_refused_with_its_code() -> None:
    body = {"error": "invalid_grant", "error_description": "The refresh token has expired."}
    with pytest.raises(PlatformRefusal, match=r"status 400: The refresh token has expired\.") as refusal:
        await grant_tokens("refreshed", "old", ScriptedAnswer(body, 400))

    assert refusal.value.code == "invalid_grant"


@pytest.mark.parametrize(
    "answer",
    [
        ScriptedAnswer({"errors": "no"}, 500),
        ScriptedAnswer(b"<html>", 503),
        ScriptedAnswer(b"{", 200),
        ScriptedAnswer({"access_token": ""}, 200),
        ScriptedAnswer({**TOKENS, "refresh_token": None}, 200),
        ScriptedAnswer(hang=True),
        ScriptedAnswer(b"x" * 17_000_000),
    ],
    ids=["fault", "away", "half an answer", "no token", "no refresh token", "silence", "too much"],
)
async def test_an_answer_that_is_not_understood_raises_platform_unreachable(answer: ScriptedAnswer) -> None:
    with pytest.raises(PlatformUnreachable):
        await grant_tokens("refreshed", "shprt_0", answer, seconds=0.3 if answer.hang else 10)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), ("2.0", 2), ("99999", 300), ("soon", 1), ("-1", 1)])
async def test_a_busy_platform_says_when_to_come_again(header: str, seconds: float) -> None:
    with pytest.raises(PlatformUnreachable) as busy:
        await grant_tokens("refreshed", "shprt_0", ScriptedAnswer(None, 429, {"Retry-After": header}))

    assert busy.value.retry_after == seconds


async def test_a_platform_that_does_not_answer_raises_platform_unreachable() -> None:
    async with platform(lambda _: ScriptedAnswer()) as (client, _):
        pass
    with pytest.raises(PlatformUnreachable, match="cannot be reached"):
        await TokenEndpoint(client, "client", "hush").for_code(SHOP, "c0de")


@pytest.mark.parametrize(
    ("granted", "lacking"),
    [
        (REQUIRED, []),
        (["write_products", "write_inventory", "write_orders", "write_locations"], []),
        (["read_products", "read_inventory", "read_orders", "read_locations"], ["write_inventory"]),
        ([], list(REQUIRED)),
    ],
)
def test_a_scope_to_write_includes_the_scope_to_read(granted: list[str], lacking: list[str]) -> None:
    assert missing_scopes(granted) == lacking
