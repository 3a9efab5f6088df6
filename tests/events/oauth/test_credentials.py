"""Access tokens at the agent endpoint: what they may do, and where they are refused."""

import asyncio

import pytest

from holdfast.events.api import OPERATIONS
from holdfast.events.oauth import issuer as module
from holdfast.events.settings import Settings
from tests.events.oauth.authorization_server import AuthorizationServer, new_key
from tests.events.oauth.oauth_scene import OAuthScene, open_oauth_scene, status_and_code
from tests.helpers.agents import Agent
from tests.helpers.events_service import Client, running_events

# What a token may do


async def test_a_token_may_do_what_its_scopes_allow(scene: OAuthScene) -> None:
    agent = scene.agent(scope="openid read_events")

    tools = {tool["name"] for tool in (await agent.result("tools/list"))["tools"]}
    assert tools == {operation.name for operation in OPERATIONS if operation.tool and operation.scope == "read_events"}
    response = await agent.ask("tools/call", {"name": "create_event", "arguments": {}})
    assert status_and_code(response) == (403, "insufficient_scope")
    challenge = response.headers["www-authenticate"]
    assert 'error="insufficient_scope", scope="write_events"' in challenge
    assert "resource_metadata=" in challenge


async def test_a_token_without_any_scope_of_ours_may_do_nothing(scene: OAuthScene) -> None:
    for scope in (None, "", "openid email", "admin"):
        agent = scene.agent(scope=scope)
        assert (await agent.result("tools/list"))["tools"] == []
        for operation in OPERATIONS:
            if operation.tool:
                response = await agent.ask("tools/call", {"name": operation.name, "arguments": {}})
                assert status_and_code(response) == (403, "insufficient_scope")


async def test_keys_are_made_only_with_the_scope_for_it(scene: OAuthScene) -> None:
    minting = {"name": "create_api_key", "arguments": {"name": "For later"}}
    weaker = scene.agent(scope="read_events write_events")

    assert status_and_code(await weaker.ask("tools/call", minting)) == (403, "insufficient_scope")
    made = (await scene.agent(scope="manage_keys").call("create_api_key", name="For later"))["structuredContent"]
    assert made["user_id"] == scene.ada.id
    listed = await Client(scene.service.http, made["key"]).get("/api/organizers")
    assert [key["id"] for key in listed.json()["data"]] == [scene.ada.id]


async def test_a_token_cannot_make_a_key_for_another_organizer(scene: OAuthScene) -> None:
    ben = await scene.service.organizer()

    result = await scene.agent().call("create_api_key", name="Theirs", user_id=ben.id)

    assert result["isError"] is True
    assert '"forbidden"' in result["content"][0]["text"]


# Where tokens are good, and where they are not


async def test_tokens_are_accepted_by_the_agent_endpoint_only(scene: OAuthScene) -> None:
    token = scene.token()
    assert (await Agent(scene.service.app, token).ask("ping")).status_code == 200

    for operation in OPERATIONS:
        if operation.route and not operation.public:
            path = operation.path.format(
                id=1,
                event_id=1,
                user_id="abcdefgh",
                queue_id=1,
                visitor_id="ann",
                endpoint_id=1,
                message_id="msg_1",
            )
            for headers in ({"Authorization": f"Bearer {token}"}, {"X-API-Key": token}):
                response = await scene.service.http.request(operation.method, path, headers=headers)
                assert status_and_code(response) == (401, "invalid_api_key")


async def test_keys_go_on_working_beside_tokens(scene: OAuthScene) -> None:
    admin = await scene.service.admin()
    for key, count in ((scene.ada.key, 1), (admin.key, 1)):
        seen = (await Agent(scene.service.app, key).call("list_organizers"))["structuredContent"]["data"]
        assert len(seen) == count
    assert status_and_code(await Agent(scene.service.app).ask("ping")) == (401, "missing_api_key")
    assert status_and_code(await Agent(scene.service.app, "hf_" + "A" * 43).ask("ping")) == (401, "invalid_api_key")
    assert scene.server.requests.total() == 0


async def test_a_token_without_a_configured_issuer_is_refused(settings: Settings, server: AuthorizationServer) -> None:
    async with open_oauth_scene(settings, server) as scene:
        response = await scene.agent().ask("ping")

        assert status_and_code(response) == (401, "invalid_api_key")
        assert response.json()["error"] == "This is not an API key of this service."
    assert server.requests.total() == 0


async def test_a_refused_token_is_answered_with_the_reason(scene: OAuthScene) -> None:
    response = await scene.agent(exp=1).ask("ping")

    assert status_and_code(response) == (401, "invalid_api_key")
    assert response.json()["error"] == "The access token has expired."
    assert scene.server.issuer in response.json()["hint"]
    challenge = response.headers["www-authenticate"]
    assert 'error="invalid_token", error_description="The access token has expired."' in challenge
    assert 'resource_metadata="http://events.test/.well-known/oauth-protected-resource/mcp"' in challenge


async def test_tokens_for_another_resource_are_refused_unless_it_is_the_one_that_is_set(
    scene: OAuthScene, with_issuer: Settings
) -> None:
    for audience in ("http://events.test", "http://other.test/mcp", "project-7"):
        assert status_and_code(await scene.agent(aud=audience).ask("ping")) == (401, "invalid_api_key")

    async with running_events(with_issuer.model_copy(update={"oauth_audience": "project-7"})) as other:
        assert (await Agent(other.app, scene.token(aud=["project-7"])).ask("ping")).status_code == 200
        assert status_and_code(await Agent(other.app, scene.token()).ask("ping")) == (401, "invalid_api_key")


async def test_a_forged_token_makes_no_link(scene: OAuthScene) -> None:
    for key in (new_key(), new_key(kid=scene.server.keys[0].kid)):
        response = await scene.agent(key=key).ask("ping")
        assert status_and_code(response) == (401, "invalid_api_key")
    assert await scene.links() == []


async def test_a_token_is_answered_with_503_while_the_authorization_server_is_down_and_a_key_works(
    scene: OAuthScene,
) -> None:
    scene.server.fail()

    response = await scene.agent().ask("tools/list")

    assert status_and_code(response) == (503, "service_unavailable")
    assert int(response.headers["retry-after"]) >= 1
    assert "www-authenticate" not in response.headers
    assert (await Agent(scene.service.app, scene.ada.key).ask("ping")).status_code == 200


async def test_a_service_that_stops_does_not_wait_for_keys_being_read(
    with_issuer: Settings, server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_oauth_scene(with_issuer, server) as scene:
        await scene.organizer()
        monkeypatch.setattr(module, "KEYS_TTL_SECONDS", -1.0)
        monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.0)
        server.fall_silent()
        await scene.organizer()  # which is answered, while the keys are read
        assert await is_reading()

    assert not await is_reading()


async def is_reading() -> bool:
    return any(task.get_name().startswith("keys of ") for task in asyncio.all_tasks())


# Figures


async def test_look_ups_of_keys_and_of_subjects_have_metrics_of_their_own(scene: OAuthScene) -> None:
    await scene.organizer()

    figures = (await scene.service.http.get("/metrics")).text
    for name in ("find_keys", "find_subjects"):
        assert f'"{name}"' in figures
