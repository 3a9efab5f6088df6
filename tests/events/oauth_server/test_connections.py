"""The rights of a connected client, and disconnecting it: by itself (RFC 7009), or by the person."""

from typing import Any

import pytest

from holdfast.events.oauth_server import grants
from holdfast.events.oauth_server.grants import forget_grants
from holdfast.events.oauth_server.model import Connection, Disconnect, ListConnections
from holdfast.kit.contract.caller import person
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from tests.events.oauth_server.oauth_server_scene import OAuthServerScene, issued_tokens, status_and_error
from tests.helpers.events_service import Client, running_events


async def list_connections(scene: OAuthServerScene, who: Client) -> list[Connection]:
    caller = person(1, who.id)
    return [
        *await scene.service.database.read(lambda reader: grants.list_connections(reader, caller, ListConnections()))
    ]


async def disconnect(scene: OAuthServerScene, who: Client, client_id: str) -> None:
    caller, command = person(1, who.id), Disconnect(client_id=client_id)
    await scene.service.database.transact(lambda tx: grants.disconnect(tx, caller, command))


async def test_a_client_may_do_what_its_scopes_allow_and_nothing_else(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app(scope="read_events")
    agent = scene.agent(tokens)

    tools = {tool["name"] for tool in (await agent.result("tools/list"))["tools"]}
    assert "list_events" in tools
    assert not tools & {"create_event", "create_api_key", "list_api_keys"}
    refusal = await agent.ask("tools/call", {"name": "create_api_key", "arguments": {"name": "x"}})
    assert refusal.status_code == 403
    assert 'error="insufficient_scope"' in refusal.headers["www-authenticate"]


async def test_a_token_is_for_agents_and_no_key_of_the_interface(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()

    for headers in ({"Authorization": f"Bearer {tokens['access_token']}"}, {"X-API-Key": tokens["access_token"]}):
        assert (await scene.service.http.get("/api/events", headers=headers)).status_code == 401


async def test_a_disconnected_client_loses_all_its_tokens_at_once(scene: OAuthServerScene) -> None:
    connected = [await scene.connect_app() for _ in range(3)]
    other = await scene.register()
    code = (await scene.person.allow(other.query()))["code"]
    other_tokens = issued_tokens(await other.redeem(code))
    for tokens in (*connected, other_tokens):
        assert await scene.works(tokens)

    await disconnect(scene, scene.ada, scene.app.id)
    for tokens in connected:
        assert not await scene.works(tokens)
        assert status_and_error(await scene.app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert await scene.works(other_tokens)


async def test_a_disconnected_client_cannot_redeem_a_pending_code(scene: OAuthServerScene) -> None:
    code = (await scene.person.allow(scene.app.query()))["code"]
    await disconnect(scene, scene.ada, scene.app.id)

    assert status_and_error(await scene.app.redeem(code)) == (400, "invalid_grant")


async def test_a_disconnected_token_is_refused_by_other_processes_too(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    async with running_events(scene.service.database.resources.settings) as other_process:
        here, scene.service = scene.service, other_process
        assert await scene.works(tokens)
        scene.service = here
        await disconnect(scene, scene.ada, scene.app.id)
        scene.service = other_process
        assert not await scene.works(tokens)
        scene.service = here


async def test_a_client_that_has_very_many_tokens_is_cut_off_too(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    all_tokens = [tokens]
    for _ in range(25):
        tokens = issued_tokens(await scene.app.refresh(tokens["refresh_token"]))
        all_tokens.append(tokens)
    assert await scene.works(all_tokens[0])

    await disconnect(scene, scene.ada, scene.app.id)
    assert not any([await scene.works(token) for token in all_tokens])


async def test_the_list_of_connections_has_each_client_once_with_all_it_may_do(scene: OAuthServerScene) -> None:
    await scene.connect_app(scope="write_events read_events")
    await scene.connect_app(scope="manage_keys read_events")
    await scene.person.allow((await scene.register(client_name="Never came for its tokens")).query())

    [connection] = await list_connections(scene, scene.ada)
    assert (connection.client_id, connection.name, connection.host) == (scene.app.id, "Example App", None)
    assert connection.scopes == ["manage_keys", "read_events", "write_events"]
    assert connection.since <= connection.used_at

    await disconnect(scene, scene.ada, scene.app.id)
    assert await list_connections(scene, scene.ada) == []


async def test_a_client_of_another_person_cannot_be_seen_or_disconnected(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    ben, _ = await scene.other_organizer()

    assert await list_connections(scene, ben) == []
    for client_id in (scene.app.id, "client_unknown"):
        with pytest.raises(Problem) as refusal:
            await disconnect(scene, ben, client_id)
        assert refusal.value.type is NOT_FOUND
    assert await scene.works(tokens)


async def test_every_connection_that_an_account_allowed_can_be_ended(scene: OAuthServerScene) -> None:
    ben, browser = await scene.other_organizer()
    mine, code = await scene.connect_app(), (await browser.allow(scene.app.query()))["code"]
    his = issued_tokens(await scene.app.redeem(code))

    assert await scene.service.database.transact(lambda tx: grants.end_all(tx, scene.ada.id)) == 1
    assert not await scene.works(mine)
    assert await scene.works(his)
    assert await list_connections(scene, ben)


async def test_a_client_that_revokes_its_refresh_token_is_disconnected(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    response = await scene.app.revoke(tokens["refresh_token"], token_type_hint="access_token")

    assert (response.status_code, response.content) == (200, b"")
    assert not await scene.works(tokens)
    assert status_and_error(await scene.app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


async def test_a_client_that_revokes_its_access_token_keeps_its_refresh_token(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    assert await scene.works(tokens)
    await scene.app.revoke(tokens["access_token"])

    assert not await scene.works(tokens)
    assert (await scene.app.refresh(tokens["refresh_token"])).status_code == 200


async def test_a_revocation_answers_200_whether_or_not_the_token_existed(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    for token in ("hfrt_unknown", "nonsense", tokens["refresh_token"], tokens["refresh_token"]):
        assert (await scene.app.revoke(token)).status_code == 200


async def test_a_token_cannot_be_revoked_by_another_client(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    thief = await scene.register()

    for name in ("access_token", "refresh_token"):
        assert status_and_error(await thief.revoke(tokens[name])) == (400, "invalid_grant")
    assert await scene.works(tokens)


@pytest.mark.parametrize("form", [{"token": ""}, {"client_id": ""}])
async def test_a_request_to_end_a_token_names_it_and_its_client(scene: OAuthServerScene, form: dict[str, Any]) -> None:
    data = {"token": "x", "client_id": scene.app.id, **form}

    assert status_and_error(await scene.service.http.post("/oauth/revoke", data=data)) == (400, "invalid_request")


async def test_a_grant_that_ended_a_day_ago_is_deleted_with_its_tokens(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    await scene.connect_app()
    await scene.app.revoke(tokens["refresh_token"])
    assert await scene.service.database.transact(forget_grants) == 0

    await scene.service.run_sql("update oauth_grants set ended_at = now() - interval '25 hours' where ended_at < now()")
    assert await scene.service.database.transact(forget_grants) == 1
    for table in ("grants", "codes", "access_tokens", "refresh_tokens"):
        assert await scene.service.run_sql(f"select count(*) from oauth_{table}") == [(1,)]
