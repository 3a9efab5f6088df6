"""Registration: an agent that shows a shop's key is given an identity."""

import asyncio
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.shops.model import SCOPES
from holdfast.kit.security.api_keys import new_key
from tests.helpers.cases import in_turn
from tests.inventory.agents.conftest import BASE_URL, DOMAIN, AgentScene, parts, running_agent_endpoints


async def test_an_agent_with_the_key_of_a_shop_is_given_an_identity(scene: AgentScene) -> None:
    response = await scene.identify()

    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {
        "registration_id",
        "registration_type",
        "identity_assertion",
        "assertion_expires",
        "scopes",
        "token_type",
        "expires_in",
        "token_endpoint",
    }
    assert re.fullmatch("reg_[A-Za-z0-9_-]{22}", body["registration_id"])
    assert body["registration_type"] == "service_auth"
    assert body["scopes"] == list(SCOPES)
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 3600)
    assert body["token_endpoint"] == f"{BASE_URL}/oauth/token"
    expires = datetime.fromisoformat(body["assertion_expires"])
    assert body["assertion_expires"].endswith("Z")
    assert 3500 < (expires - datetime.now(UTC)).total_seconds() < 3700


async def test_an_assertion_names_the_agent_and_its_scopes(scene: AgentScene) -> None:
    body = (await scene.identify()).json()
    header, claims = parts(body["identity_assertion"])
    jwks = (await scene.http.get("/.well-known/jwks.json")).json()

    assert (header["alg"], header["typ"]) == ("ES256", "oauth-id-jag+jwt")
    assert header["kid"] in {key["kid"] for key in jwks["keys"]}
    assert claims == {
        "iss": BASE_URL,
        "aud": BASE_URL,
        "sub": body["registration_id"],
        "client_id": body["registration_id"],
        "registration_type": "service_auth",
        "shop": DOMAIN,
        "scope": "read_inventory write_inventory read_pools write_pools",
        "jti": claims["jti"],
        "iat": claims["iat"],
        "exp": claims["iat"] + 3600,
    }


async def test_a_key_always_has_one_registration_and_each_time_a_new_assertion(scene: AgentScene) -> None:
    bodies = [response.json() for response in await asyncio.gather(*(scene.identify() for _ in range(10)))]

    assert len({body["registration_id"] for body in bodies}) == 1
    assert len({parts(body["identity_assertion"])[1]["jti"] for body in bodies}) == 10
    assert await scene.run_sql("select count(*) from agent_registrations") == [(1,)]


async def test_a_new_key_has_a_registration_of_its_own_with_the_scopes_it_has(scene: AgentScene) -> None:
    before = (await scene.identify()).json()
    key = await scene.regenerate("read_pools", "read_inventory")
    after = (await scene.identify({"type": "service_auth", "api_key": key})).json()

    assert before["registration_id"] != after["registration_id"]
    assert after["scopes"] == ["read_inventory", "read_pools"]


async def test_agents_of_different_shops_have_different_registrations(scene: AgentScene) -> None:
    _, key = await scene.database.transact(lambda tx: shops.add(tx, "ben.myshopify.com"))
    other = (await scene.identify({"type": "service_auth", "api_key": key})).json()

    assert other["registration_id"] != (await scene.identify()).json()["registration_id"]
    assert parts(other["identity_assertion"])[1]["shop"] == "ben.myshopify.com"


@in_turn(
    ("body", "error"),
    [
        ({}, "invalid_request"),
        ({"api_key": "KEY"}, "invalid_request"),
        ({"type": 7, "api_key": "KEY"}, "invalid_request"),
        ({"type": "service_auth"}, "invalid_request"),
        ({"type": "service_auth", "api_key": ""}, "invalid_request"),
        ({"type": "service_auth", "api_key": None}, "invalid_request"),
        ({"type": "service_auth", "api_key": ["KEY"]}, "invalid_request"),
        ({"type": "service_auth", "api_key": "KEY", "scopes": ["read_pools"]}, "invalid_request"),
        ({"type": "service_auth", "login_hint": "ada@example.com"}, "invalid_request"),
        ({"type": "anonymous"}, "unsupported_identity_type"),
        ({"type": "identity_assertion", "assertion": "x"}, "unsupported_identity_type"),
        ({"type": "Service_Auth", "api_key": "KEY"}, "unsupported_identity_type"),
    ],
)
async def test_a_request_that_is_not_one_for_an_identity_is_refused(
    scene: AgentScene, body: dict[str, Any], error: str
) -> None:
    filled = {name: scene.key if value == "KEY" else value for name, value in body.items()}
    response = await scene.identify(filled)

    assert (response.status_code, response.headers["cache-control"]) == (400, "no-store")
    assert set(response.json()) == {"error", "message"}
    assert response.json()["error"] == error


async def test_registration_by_email_address_is_refused_with_the_right_way(scene: AgentScene) -> None:
    response = await scene.identify({"type": "service_auth", "login_hint": "ada@example.com"})

    assert "api_key" in response.json()["message"]
    assert "/auth.md" in response.json()["message"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000, b'{"type":'])
async def test_a_body_that_is_no_json_object_is_an_invalid_request(scene: AgentScene, content: bytes) -> None:
    response = await scene.http.post(
        "/api/agent/identity", content=content, headers={"Content-Type": "application/json"}
    )

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize("key", ["hf_" + "x" * 43, "ss_live_123", "hf_", "é" * 46, "x" * 100_000, "a.b.c"])
async def test_an_invalid_key_is_refused_with_a_challenge(scene: AgentScene, key: str) -> None:
    response = await scene.identify({"type": "service_auth", "api_key": key})

    assert (response.status_code, response.json()["error"]) == (401, "invalid_api_key")
    assert response.headers["www-authenticate"].startswith("Bearer")


async def test_a_revoked_key_gets_no_identity(scene: AgentScene) -> None:
    await scene.identify()
    await scene.regenerate()

    assert (await scene.identify()).status_code == 401


async def test_an_identity_request_with_another_body_or_method_is_refused(scene: AgentScene) -> None:
    form = await scene.http.post("/api/agent/identity", data={"type": "service_auth", "api_key": scene.key})
    large = await scene.identify({"type": "service_auth", "api_key": "x" * 2_000_000})
    read = await scene.http.get("/api/agent/identity")

    assert (form.status_code, form.json()["error"]) == (415, "unsupported_media_type")
    assert (large.status_code, large.json()["error"]) == (413, "payload_too_large")
    assert (read.status_code, read.json()["error"]) == (405, "method_not_allowed")


async def test_attempts_count_towards_the_limit_before_the_key_is_checked(settings: Settings) -> None:
    limited = settings.model_copy(update={"identities_per_minute": 3})
    async with running_agent_endpoints(limited) as (http, _):
        answers = [
            await http.post("/api/agent/identity", json=body)
            for body in ({}, {"type": "service_auth", "api_key": new_key()}, {"type": "x"}, {})
        ]

        assert [answer.status_code for answer in answers] == [400, 401, 400, 429]
        assert answers[3].json()["error"] == "rate_limited"
        assert 1 <= int(answers[3].headers["retry-after"]) <= 60
        token = await http.post("/oauth/token", data={})
        assert (token.status_code, token.json()["error"]) == (429, "rate_limited")
        assert "retry-after" in token.headers


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["service_auth", "hf_"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["type", "api_key"]) | st.text(), inner),
    max_leaves=8,
)


@hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(body=st.dictionaries(st.sampled_from(["type", "api_key", "x"]), json_values))
async def test_a_body_of_any_kind_is_refused_at_worst(scene: AgentScene, body: Mapping[str, Any]) -> None:
    content = json.dumps(body).encode()  # with escapes, of half a pair of surrogates too
    response = await scene.http.post(
        "/api/agent/identity", content=content, headers={"Content-Type": "application/json"}
    )

    assert response.status_code in {400, 401}
    assert set(response.json()) == {"error", "message"}
