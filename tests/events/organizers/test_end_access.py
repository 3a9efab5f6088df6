"""All access to an account can be ended, also access that begins at the same moment."""

from collections.abc import AsyncIterator

import pytest

from holdfast.events.organizers.accounts import end_access
from holdfast.events.settings import Settings
from tests.accounts.races import ending_transaction
from tests.events.console.organizer_scene import hidden_field
from tests.events.oauth_server.oauth_server_scene import OAuthServerScene, serve_oauth_scene, status_and_error
from tests.helpers.form_browser import Browser

ADA = "ada@example.com"
EVERY_SCOPE = "read_events write_events manage_keys"


@pytest.fixture
async def scene(settings: Settings) -> AsyncIterator[OAuthServerScene]:
    async with serve_oauth_scene(settings.model_copy(update={"oauth_builtin": True})) as scene:
        yield scene


async def keys(scene: OAuthServerScene) -> list[tuple[str]]:
    """The names of the keys that work."""
    return await scene.service.run_sql("select name from api_keys where active order by id")


async def test_an_owner_who_says_not_mine_ends_connected_apps(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    ben, browser = await scene.other_organizer()
    code = (await browser.allow(scene.app.query()))["code"]
    await scene.service.run_sql("update users set proved_at = null where id = %(id)s", id=scene.ada.id)
    ada = Browser(scene.service)
    await ada.sign_in(ADA)
    assert await scene.works(tokens)

    await ada.send("/console/before", whose="other")

    assert not await scene.works(tokens)
    assert status_and_error(await scene.app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert (await scene.app.redeem(code)).status_code == 200
    assert (await ben.get("/api/events")).status_code == 200


async def test_an_owner_who_says_mine_keeps_connected_apps(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    await scene.service.run_sql("update users set proved_at = null where id = %(id)s", id=scene.ada.id)
    ada = Browser(scene.service)
    await ada.sign_in(ADA)

    await ada.send("/console/before", whose="mine")

    assert await scene.works(tokens)


async def test_a_session_that_is_being_ended_cannot_make_a_key(scene: OAuthServerScene) -> None:
    thief = Browser(scene.service)
    await thief.sign_in(ADA)
    keys_page = await thief.get("/console/agents")
    form = {"token": hidden_field(keys_page, "token"), "once": hidden_field(keys_page, "once"), "name": "A way back in"}

    async with ending_transaction(scene.service) as this:
        await end_access(this.tx, scene.ada.id)
        making = await this.meanwhile(thief.http.post("/console/agents/keys/new", data=form))

    assert (await making).status_code == 403
    assert await keys(scene) == []


async def test_an_app_that_is_being_disconnected_makes_no_key_that_lasts(scene: OAuthServerScene) -> None:
    agent = scene.agent(await scene.connect_app(scope=EVERY_SCOPE))

    async with ending_transaction(scene.service) as this:
        await end_access(this.tx, scene.ada.id)
        making = await this.meanwhile(agent.call("create_api_key", name="A way back in"))

    assert "The app is disconnected." in (await making)["content"][0]["text"]
    assert await keys(scene) == []


async def test_an_app_that_goes_on_makes_keys(scene: OAuthServerScene) -> None:
    agent = scene.agent(await scene.connect_app(scope=EVERY_SCOPE))

    await agent.call("create_api_key", name="Ticket machine")

    assert await keys(scene) == [("First key",), ("Ticket machine",)]
