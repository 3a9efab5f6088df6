"""The token endpoint: an identity assertion becomes an access token, in the words of RFC 6749, 7523 and 9068."""

import pytest

from holdfast.inventory.agents.model import JWT_BEARER
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops.model import SCOPES
from tests.inventory.agents.conftest import BASE_URL, AgentScene, parts, running_agent_endpoints


async def test_an_assertion_is_exchanged_for_an_access_token(scene: AgentScene) -> None:
    assertion = await scene.assertion()
    response = await scene.exchange(assertion=assertion)

    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    body = response.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "scope"}
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 3600, " ".join(SCOPES))
    header, claims = parts(body["access_token"])
    assert (header["alg"], header["typ"]) == ("ES256", "at+jwt")
    assert (claims["iss"], claims["aud"]) == (BASE_URL, f"{BASE_URL}/mcp")
    assert claims["sub"] == parts(assertion)[1]["sub"]
    assert claims["scope"] == body["scope"]


async def test_an_assertion_can_be_exchanged_again(scene: AgentScene) -> None:
    assertion = await scene.assertion()
    tokens = [await scene.token(assertion=assertion) for _ in range(3)]

    assert len({parts(token)[1]["jti"] for token in tokens}) == 3


async def test_a_token_can_be_requested_with_fewer_scopes(scene: AgentScene) -> None:
    response = await scene.exchange(scope="write_pools read_inventory")
    assert response.json()["scope"] == "read_inventory write_pools"

    who = (await scene.who(response.json()["access_token"])).json()
    assert who["scopes"] == ["read_inventory", "write_pools"]


@pytest.mark.parametrize("resource", [BASE_URL, f"{BASE_URL}/", f"{BASE_URL}/mcp", f"{BASE_URL}/mcp/", ""])
async def test_a_token_for_this_service_as_resource_is_granted(scene: AgentScene, resource: str) -> None:
    assert (await scene.exchange(resource=resource)).status_code == 200


@pytest.mark.parametrize("resource", ["https://other.example", f"{BASE_URL}/other", BASE_URL + ".evil", "mcp"])
async def test_a_token_for_another_resource_is_refused(scene: AgentScene, resource: str) -> None:
    response = await scene.exchange(resource=resource)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_target")


@pytest.mark.parametrize("scope", ["admin", "read_pools admin", "read_pools,write_pools"])
async def test_a_scope_the_identity_lacks_is_refused(scene: AgentScene, scope: str) -> None:
    response = await scene.exchange(scope=scope)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_scope")


async def test_an_unsupported_or_invalid_grant_is_refused(scene: AgentScene) -> None:
    for form, error in (
        ({}, "invalid_request"),
        ({"grant_type": ""}, "invalid_request"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"grant_type": JWT_BEARER}, "invalid_request"),
        ({"grant_type": JWT_BEARER, "assertion": ""}, "invalid_request"),
        ({"grant_type": JWT_BEARER, "assertion": "x.y.z"}, "invalid_grant"),
        ({"grant_type": JWT_BEARER, "assertion": scene.key}, "invalid_grant"),
        ({"grant_type": JWT_BEARER, "assertion": await scene.token()}, "invalid_grant"),
    ):
        response = await scene.http.post("/oauth/token", data=form)
        assert (response.status_code, response.headers["cache-control"]) == (400, "no-store"), form
        assert set(response.json()) == {"error", "error_description"}
        assert response.json()["error"] == error


async def test_parameters_the_endpoint_does_not_know_are_ignored(scene: AgentScene) -> None:
    assert (await scene.exchange(client_id="me", audience="you")).status_code == 200


async def test_a_parameter_given_twice_is_refused(scene: AgentScene) -> None:
    assertion = await scene.assertion()
    response = await scene.http.post(
        "/oauth/token",
        content=f"grant_type={JWT_BEARER}&assertion={assertion}&scope=read_pools&scope=write_pools",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize("content", [b"\xff=1", b"assertion=%ff", b"&".join([b"a=1"] * 100)])
async def test_a_form_that_cannot_be_read_is_an_invalid_request(scene: AgentScene, content: bytes) -> None:
    response = await scene.http.post(
        "/oauth/token", content=content, headers={"Content-Type": "application/x-www-form-urlencoded"}
    )

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


async def test_a_token_request_in_json_is_refused(scene: AgentScene) -> None:
    response = await scene.http.post("/oauth/token", json={"grant_type": JWT_BEARER})

    assert (response.status_code, response.json()["error"]) == (415, "unsupported_media_type")


async def test_a_revoked_key_ends_the_exchange_of_its_assertions(scene: AgentScene) -> None:
    assertion = await scene.assertion()
    assert (await scene.exchange(assertion=assertion)).status_code == 200
    await scene.regenerate()

    response = await scene.exchange(assertion=assertion)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_grant")


async def test_a_key_that_may_do_nothing_has_no_access_tokens(scene: AgentScene) -> None:
    await scene.run_sql("update api_keys set scopes = '{}'")
    response = await scene.exchange()

    assert (response.status_code, response.json()["error"]) == (400, "invalid_scope")


async def test_the_keys_tokens_are_signed_with_are_public_and_nothing_of_them_is_secret(scene: AgentScene) -> None:
    response = await scene.http.get("/.well-known/jwks.json")

    assert (response.status_code, response.headers["cache-control"]) == (200, "public, max-age=300")
    assert response.headers["access-control-allow-origin"] == "*"
    (key,) = response.json()["keys"]
    assert set(key) == {"kty", "crv", "x", "y", "use", "alg", "kid"}
    assert (key["kty"], key["crv"], key["use"], key["alg"]) == ("EC", "P-256", "sig", "ES256")


async def test_the_token_endpoint_without_a_database_is_answered_with_retry_after(settings: Settings) -> None:
    async with running_agent_endpoints(settings) as (http, database):
        await database.close()
        for response in (
            await http.get("/.well-known/jwks.json"),
            await http.post("/oauth/token", data={"grant_type": JWT_BEARER, "assertion": f"e30.e30.{'a' * 86}"}),
        ):
            assert (response.status_code, response.json()["error"]) == (503, "service_unavailable")
            assert response.headers["retry-after"] == "1"
