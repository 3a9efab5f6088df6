"""The page of connected apps: what each may do, and disconnecting it; never those of other organizers."""

from collections.abc import AsyncIterator
from urllib.parse import quote

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.events.console.organizer_scene import FOREIGN
from tests.events.oauth_server.oauth_server_scene import (
    ConsentingPerson,
    OAuthServerScene,
    issued_tokens,
    serve_oauth_scene,
)
from tests.helpers.form_browser import token


@pytest.fixture
async def scene(settings: Settings) -> AsyncIterator[OAuthServerScene]:
    async with serve_oauth_scene(settings.model_copy(update={"oauth_builtin": True})) as scene:
        yield scene


async def apps(person: ConsentingPerson) -> str:
    return (await person.http.get("/console/agents")).text


async def disconnect(person: ConsentingPerson, app: str, **headers: str) -> httpx2.Response:
    """Send the form, with the token of another one."""
    page = await person.http.get("/console/agents")
    form = {"token": token(page), "app": app}
    return await person.http.post("/console/agents/disconnect", data=form, headers=headers)


async def test_the_page_of_apps_says_in_plain_words_what_an_app_may_do(scene: OAuthServerScene) -> None:
    empty = await apps(scene.person)
    await scene.connect_app(scope="read_events")

    page = await apps(scene.person)

    assert "<bdi>Example App</bdi>" not in empty
    assert "<bdi>Example App</bdi>" in page
    assert "View events, prices, registrations and the people in them." in page
    assert "Publish and change events" not in page
    assert "It chose its name itself. Nobody has checked it." in page


async def test_the_page_of_apps_says_in_german_what_an_app_may_do(scene: OAuthServerScene) -> None:
    await scene.connect_app(scope="read_events write_events")
    scene.person.http.headers["Accept-Language"] = "de"

    page = await apps(scene.person)

    assert "Den Namen hat die App selbst gewählt." in page
    assert "Publish and change events" not in page


async def test_an_app_is_disconnected_after_a_question(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()

    question = await scene.person.http.get(f"/console/agents/disconnect?app={quote(scene.app.id, safe='')}")
    before = await scene.works(tokens)
    done = await disconnect(scene.person, scene.app.id)

    assert "Remove the app “<bdi>Example App</bdi>”?" in question.text
    assert before
    assert (done.status_code, done.headers["location"]) == (303, "/console/agents")
    assert not await scene.works(tokens)
    assert "<bdi>Example App</bdi>" not in await apps(scene.person)


async def test_apps_of_another_organizer_are_neither_shown_nor_disconnected(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    _, bob = await scene.other_organizer()
    page = f"/console/agents/disconnect?app={scene.app.id}"

    question, sent = await bob.http.get(page), await disconnect(bob, scene.app.id)

    assert "Example App" not in await apps(bob)
    assert (question.status_code, sent.status_code) == (404, 404)
    assert "Example App" not in question.text + sent.text
    assert await scene.works(tokens)


async def test_one_organizer_cuts_off_an_app_only_for_itself(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()
    _, bob = await scene.other_organizer()
    answer = await bob.allow(scene.app.query())
    theirs = issued_tokens(await scene.app.redeem(answer["code"]))

    await disconnect(scene.person, scene.app.id)

    assert not await scene.works(tokens)
    assert await scene.works(theirs)


async def test_a_form_of_another_site_disconnects_no_app(scene: OAuthServerScene) -> None:
    tokens = await scene.connect_app()

    answer = await disconnect(scene.person, scene.app.id, **FOREIGN)

    assert answer.status_code == 403
    assert await scene.works(tokens)


@pytest.mark.parametrize("app", ["", "x" * 501, "a\x00b", "no-such-app", "' or 1=1 --"])
async def test_an_unknown_app_has_no_page(scene: OAuthServerScene, app: str) -> None:
    tokens = await scene.connect_app()

    question = await scene.person.http.get(f"/console/agents/disconnect?app={quote(app)}")
    sent = await disconnect(scene.person, app)

    assert (question.status_code, sent.status_code) == (404, 404)
    assert await scene.works(tokens)


async def test_the_name_of_an_app_is_escaped(scene: OAuthServerScene) -> None:
    app = await scene.register(client_name="<script>alert(1)</script>")
    answer = await scene.person.allow(app.query())
    await app.redeem(answer["code"])

    page = await apps(scene.person)

    assert "<script>" not in page
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>" in page
