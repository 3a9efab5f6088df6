"""Cached data about a person or an event ends in every process at once.

Each test asks one process, ends something at another one, and asks the first again. In these tests nothing is looked up
again by itself.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import httpx2
import pytest

from holdfast.events.oauth_server import grants
from holdfast.events.oauth_server.model import Disconnect
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import system
from tests.events.console.organizing import OWNER_EMAIL, register_stranger
from tests.events.oauth.authorization_server import authorization_server
from tests.events.oauth.oauth_scene import OAuthScene
from tests.events.oauth_server.oauth_server_scene import (
    ConsentingPerson,
    OAuthServerScene,
    serve_oauth_scene,
    sign_in_person,
)
from tests.helpers.agents import Agent
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.form_browser import Browser
from tests.helpers.people import erase

pytestmark = pytest.mark.usefixtures("only_notices_end_caches")


@pytest.fixture
def with_server(settings: Settings) -> Settings:
    return settings.model_copy(update={"oauth_builtin": True})


@pytest.fixture
async def scene(with_server: Settings) -> AsyncIterator[OAuthServerScene]:
    async with serve_oauth_scene(with_server) as scene:
        yield scene


@pytest.fixture
async def other_process(scene: OAuthServerScene, with_server: Settings) -> AsyncIterator[Service]:
    """Another process of the same service."""
    async with running_events(with_server) as other:
        await other.wait_for_notices()
        yield other


async def status(service: Service, key: str | None) -> int:
    """How a process answers a key, after it has heard of everything."""
    await service.wait_for_notices()
    return (await Client(service.http, key).get("/api/events")).status_code


async def accepts(service: Service, token: str) -> int:
    """How a process answers an access token, after it has heard of everything."""
    await service.wait_for_notices()
    return (await Agent(service.app, token, "2025-11-25").ask("tools/list")).status_code


async def page(service: Service, address: str) -> httpx2.Response:
    await service.wait_for_notices()
    return await service.http.get(address, headers={"accept": "text/html"})


async def test_a_revoked_key_is_refused_by_every_process_at_once(
    scene: OAuthServerScene, other_process: Service
) -> None:
    made = (await scene.ada.post("/api/keys", {"api_key": {"name": "Second"}})).json()["data"]
    assert await status(other_process, made["key"]) == 200

    await scene.ada.delete(f"/api/keys/{made['id']}")

    assert await status(other_process, made["key"]) == 401


async def test_keys_apps_and_sessions_of_an_ended_organizer_are_refused_by_every_process_at_once(
    scene: OAuthServerScene, other_process: Service
) -> None:
    stranger = await register_stranger(scene.service)
    thief = await sign_in_person(scene.service, stranger.id, way="password")
    await scene.service.run_sql("update users set proved_at = now() where id = %(id)s", id=stranger.id)
    person = await sign_in_person(scene.service, stranger.id)
    answer = await person.allow(scene.app.query())
    token = (await scene.app.redeem(answer["code"])).json()["access_token"]
    await scene.service.run_sql("update users set proved_at = null where id = %(id)s", id=stranger.id)
    owner = Browser(scene.service)
    await owner.sign_in(OWNER_EMAIL)
    thief_there = ConsentingPerson(other_process, thief.http.cookies["session"])
    assert await status(other_process, stranger.key) == 200
    assert await accepts(other_process, token) == 200
    assert (await thief_there.http.get("/account")).status_code == 200

    await owner.send("/console/before", whose="other")

    assert await status(other_process, stranger.key) == 401
    assert await accepts(other_process, token) == 401
    assert (await thief_there.http.get("/account")).status_code == 303


async def test_pages_of_an_ended_organizer_are_gone_in_every_process_at_once(
    scene: OAuthServerScene, other_process: Service
) -> None:
    stranger = await register_stranger(scene.service)
    await scene.service.run_sql("update users set proved_at = now() where id = %(id)s", id=stranger.id)
    event = await stranger.create_event(title="Free money")
    addresses = [event["public_url"], f"/events/{event['id']}/embed", "/organizers/planted-bank"]
    assert ["Planted Bank" in (await page(other_process, url)).text for url in addresses] == [True] * 3
    await scene.service.run_sql("update users set proved_at = null where id = %(id)s", id=stranger.id)
    owner = Browser(scene.service)
    await owner.sign_in(OWNER_EMAIL)

    await owner.send("/console/before", whose="other")

    for url in addresses:
        response = await page(other_process, url)
        assert "Planted Bank" not in response.text
        assert url == addresses[1] or response.status_code == 404, url


async def test_tokens_of_a_disconnected_app_are_refused_by_every_process_at_once(
    scene: OAuthServerScene, other_process: Service
) -> None:
    another = await scene.register()
    tokens = await scene.connect_app()
    answer = await scene.person.allow(another.query())
    others = (await another.redeem(answer["code"])).json()
    for token_set in (tokens, others):
        assert await accepts(other_process, token_set["access_token"]) == 200

    await scene.app.revoke(tokens["refresh_token"])
    assert await accepts(other_process, tokens["access_token"]) == 401
    assert await accepts(other_process, others["access_token"]) == 200

    await scene.service.database.transact(
        lambda tx: grants.disconnect(tx, system(scene.ada.id), Disconnect(client_id=another.id))
    )
    assert await accepts(other_process, others["access_token"]) == 401


async def test_a_token_of_an_unlinked_subject_is_refused_by_every_process_at_once(settings: Settings) -> None:
    async with two_processes(settings) as (linked, other_process):
        token = linked.token()
        assert await accepts(other_process, token) == 200

        await linked.unlink("ada")

        assert await accepts(other_process, token) == 403


async def test_a_token_of_a_moved_subject_acts_for_the_new_organizer_in_every_process_at_once(
    settings: Settings,
) -> None:
    async with two_processes(settings) as (linked, other_process):
        ben = await linked.service.organizer()
        token = linked.token()
        assert await accepts(other_process, token) == 200

        await linked.link(ben.slug, "ada", move=True)

        await other_process.wait_for_notices()
        seen = await Agent(other_process.app, token, "2025-11-25").call("list_organizers")
        assert [organizer["id"] for organizer in seen["structuredContent"]["data"]] == [ben.id]


@contextlib.asynccontextmanager
async def two_processes(settings: Settings) -> AsyncGenerator[tuple[OAuthScene, Service]]:
    """Two processes of a service beside another authorization server, where the organizer has an account too."""
    async with authorization_server() as server:
        with_issuer = settings.model_copy(update={"oauth_issuer": server.issuer})
        async with running_events(with_issuer) as service, running_events(with_issuer) as other:
            ada = await service.organizer(email="ada@example.com")
            linked = OAuthScene(service, server, ada, "ada@example.com")
            await linked.link(ada.slug, "ada")
            await other.wait_for_notices()
            yield linked, other


async def test_an_ended_session_is_over_in_every_process_at_once(
    scene: OAuthServerScene, other_process: Service
) -> None:
    here, other_browser = Browser(scene.service), Browser(other_process)
    await here.sign_in("ann@example.com")
    other_browser.http.cookies.update(here.http.cookies)
    assert await other_browser.is_signed_in()

    await here.send("/account", session="all")

    await other_process.wait_for_notices()
    assert not await other_browser.is_signed_in()


async def test_sessions_of_an_erased_person_are_over_in_every_process_at_once(
    scene: OAuthServerScene, other_process: Service
) -> None:
    here, other_browser = Browser(scene.service), Browser(other_process)
    await here.sign_in("ann@example.com")
    other_browser.http.cookies.update(here.http.cookies)
    assert await other_browser.is_signed_in()

    await erase(scene.service)

    await other_process.wait_for_notices()
    assert not await other_browser.is_signed_in()


async def test_a_cancelled_event_has_no_form_in_any_process_at_once(
    scene: OAuthServerScene, other_process: Service
) -> None:
    event = await scene.ada.create_event()
    addresses = [event["public_url"], f"/events/{event['id']}/embed"]
    for url in addresses:
        assert 'name="email"' in (await page(other_process, url)).text

    await scene.ada.delete(f"/api/events/{event['id']}")

    for url in addresses:
        assert 'name="email"' not in (await page(other_process, url)).text


async def test_a_seat_of_an_erased_person_is_offered_by_every_process_at_once(
    scene: OAuthServerScene, other_process: Service
) -> None:
    event = await scene.ada.create_event(capacity=1)
    await scene.ada.register(event["id"], email="ann@example.com")
    await scene.service.settle()
    assert 'name="email"' not in (await page(other_process, event["public_url"])).text

    await erase(scene.service)

    assert 'name="email"' in (await page(other_process, event["public_url"])).text
