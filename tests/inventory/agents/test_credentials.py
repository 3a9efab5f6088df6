"""Credentials: a key, an assertion and an access token give the same access, and lose it together."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import httpx2
import pytest

from holdfast.inventory.agents.credentials import Credentials
from holdfast.inventory.agents.tokens import TokenSigner
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.shops.model import SCOPES
from holdfast.kit.security.api_keys import KeyRing
from tests.inventory.agents.conftest import BASE_URL, DOMAIN, AgentScene, running_agent_endpoints


async def test_a_key_an_assertion_and_an_access_token_identify_the_same_shop(scene: AgentScene) -> None:
    answers = [
        (await scene.who(credential)).json() for credential in (scene.key, await scene.assertion(), await scene.token())
    ]

    assert answers[0] == {"key_id": answers[0]["key_id"], "shop_id": scene.shop_id, "scopes": sorted(SCOPES)}
    assert answers == [answers[0]] * 3


async def test_the_x_api_key_header_accepts_keys_but_no_tokens(scene: AgentScene) -> None:
    response = await scene.http.get("/who", headers={"X-API-Key": scene.key})
    assert response.json()["shop_id"] == scene.shop_id

    for credential in (await scene.assertion(), await scene.token()):
        response = await scene.http.get("/who", headers={"X-API-Key": credential})
        assert (response.status_code, response.json()["error"]) == (401, "invalid_api_key")


async def test_a_request_without_a_credential_is_answered_with_401(scene: AgentScene) -> None:
    for credential in (None, ""):
        response = await scene.who(credential)
        assert (response.status_code, response.json()["error"]) == (401, "missing_api_key")
        assert "www-authenticate" in response.headers


@pytest.mark.parametrize("credential", ["x", "a.b.c", "...", "hf_short", "reg_aaaaaaaaaaaaaaaaaaaaaa", "x" * 50_000])
async def test_an_invalid_credential_is_answered_with_401(scene: AgentScene, credential: str) -> None:
    response = await scene.who(credential)

    assert (response.status_code, response.json()["error"]) == (401, "invalid_api_key")


async def test_a_token_changed_in_any_part_is_refused(scene: AgentScene) -> None:
    token = await scene.token()
    for part in range(3):
        pieces = token.split(".")
        middle = len(pieces[part]) // 2
        other = "A" if pieces[part][middle] != "A" else "B"
        pieces[part] = pieces[part][:middle] + other + pieces[part][middle + 1 :]
        assert (await scene.who(".".join(pieces))).status_code == 401
    assert (await scene.who(token)).status_code == 200


async def test_a_credential_never_has_more_scopes_than_its_key_has_now(scene: AgentScene) -> None:
    credentials = [await scene.assertion(), await scene.token(scope="read_pools write_pools")]
    await scene.run_sql("update api_keys set scopes = '{read_pools,read_inventory}'")

    async with running_agent_endpoints(scene.database.resources.settings) as (http, _):  # one that remembers nothing
        seen = [
            (await http.get("/who", headers={"Authorization": f"Bearer {credential}"})).json()["scopes"]
            for credential in credentials
        ]
    assert seen == [["read_inventory", "read_pools"], ["read_pools"]]


async def test_an_earlier_credential_does_not_gain_new_scopes_of_its_key(scene: AgentScene) -> None:
    await scene.run_sql("update api_keys set scopes = '{read_pools}'")
    assertion = await scene.assertion()
    await scene.run_sql("update api_keys set scopes = '{read_pools,write_pools}'")

    assert (await scene.who(assertion)).json()["scopes"] == ["read_pools"]


@contextlib.asynccontextmanager
async def two_processes(settings: Settings) -> AsyncGenerator[tuple[AgentScene, AgentScene]]:
    async with (
        running_agent_endpoints(settings) as (http, database),
        running_agent_endpoints(settings) as (other_http, other_database),
    ):
        shop, key = await database.transact(lambda tx: shops.add(tx, DOMAIN))
        scenes = AgentScene(http, database, shop.id, key), AgentScene(other_http, other_database, shop.id, key)
        for scene in scenes:
            heard = asyncio.Event()
            with scene.database.listen("test", lambda _, heard=heard: heard.set()):
                async with asyncio.timeout(5):
                    while not heard.is_set():
                        await scene.database.transact(lambda tx: tx.notify("test"))
        yield scenes


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_regenerated_key_ends_its_credentials_in_every_process_at_once(settings: Settings) -> None:
    async with two_processes(settings) as (one, other):
        credentials = [one.key, await one.assertion(), await other.token()]
        assert [response.status_code for response in await ask(one, other, credentials)] == [200] * 6

        fresh = await one.regenerate()

        async with asyncio.timeout(5):
            while any(response.status_code == 200 for response in await ask(one, other, credentials)):
                pass
        for response in await ask(one, other, credentials):
            assert (response.status_code, response.json()["error"]) == (401, "invalid_api_key")
        assert (await one.exchange(assertion=credentials[1])).json()["error"] == "invalid_grant"
        assert (await other.who(fresh)).status_code == 200


async def ask(one: AgentScene, other: AgentScene, credentials: Sequence[str]) -> list[httpx2.Response]:
    return [await scene.who(credential) for scene in (one, other) for credential in credentials]


async def test_an_identity_of_one_process_is_accepted_by_another(settings: Settings) -> None:
    async with two_processes(settings) as (one, other):
        assert (await other.who(await one.assertion())).status_code == 200
        assert (await one.who(await other.token())).status_code == 200


async def test_a_token_of_another_service_is_refused(scene: AgentScene) -> None:
    def credentials(base_url: str) -> Credentials:
        ring: Any = KeyRing(scene.database, shops.find_callers)
        return Credentials(ring, TokenSigner(scene.database, base_url), base_url)

    token = await scene.token()
    assert (await credentials(BASE_URL).caller(token)).tenant_id == scene.shop_id
    with pytest.raises(Exception, match="another audience"):
        await credentials("http://other.test").caller(token)
