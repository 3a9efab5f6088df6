"""The page "Agents" of an organizer: how agents connect, and what they did, in people's words, with Undo."""

import base64
import json
import re
from collections.abc import AsyncIterator
from html import unescape
from urllib.parse import parse_qs, unquote, urlsplit

import httpx2
import pytest

from holdfast.accounts.agents.agents_page import ConnectionDetails
from holdfast.events.settings import Settings
from tests.events.oauth_server.oauth_server_scene import ConsentingPerson, OAuthServerScene, serve_oauth_scene
from tests.helpers.agents import Agent
from tests.helpers.events_service import event_fields, queue_fields, running_events


@pytest.fixture
async def scene(settings: Settings) -> AsyncIterator[OAuthServerScene]:
    async with serve_oauth_scene(settings.model_copy(update={"oauth_builtin": True})) as scene:
        yield scene


def text(page: httpx2.Response) -> str:
    """The text of the main part of a page, without tags and needless spaces."""
    main = page.text.partition("<main")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", "", f"<main{main}")).split())


async def agents_page(person: ConsentingPerson, path: str = "") -> httpx2.Response:
    page = await person.http.get(f"/console/agents{path}")
    assert page.status_code == 200, page.text
    return page


def undo_links(page: httpx2.Response) -> list[str]:
    return [unescape(link) for link in re.findall(r'<a href="([^"]*)">Undo', page.text)]


async def agent_of(scene: OAuthServerScene) -> Agent:
    """The connected app, as an agent."""
    return scene.agent(await scene.connect_app(scope="read_events write_events manage_keys"))


async def test_people_that_an_agent_registered_one_after_the_other_are_one_line(scene: OAuthServerScene) -> None:
    agent = await agent_of(scene)
    jazz = (await agent.call("create_event", **event_fields(title="Jazz night")))["structuredContent"]["id"]
    for name in ("ann", "ben", "cleo", "dora"):
        await agent.call("create_registration", event_id=jazz, email=f"{name}@example.com")
    await scene.service.settle()

    page = await agents_page(scene.person)

    assert "Example App registered 4 people for Jazz night" in text(page)
    assert "dora@example.com, cleo@example.com, ben@example.com and 1 more" in text(page)
    assert "Example App created the event Jazz night" in text(page)


async def test_actions_of_an_agent_keep_their_order_around_other_actions(scene: OAuthServerScene) -> None:
    agent = await agent_of(scene)
    one = (await agent.call("create_event", **event_fields(title="One")))["structuredContent"]["id"]
    two = (await agent.call("create_event", **event_fields(title="Two")))["structuredContent"]["id"]
    for event, name in ((one, "ann"), (two, "ben"), (one, "cleo")):
        await agent.call("create_registration", event_id=event, email=f"{name}@example.com")

    registered = re.findall(r"registered (\w+)@example.com for (\w+)", text(await agents_page(scene.person)))

    assert list(dict.fromkeys(registered)) == [("cleo", "One"), ("ben", "Two"), ("ann", "One")]


async def test_undoing_a_registration_asks_first_who_loses_what(scene: OAuthServerScene) -> None:
    agent = await agent_of(scene)
    jazz = (await agent.call("create_event", **event_fields(title="Jazz night")))["structuredContent"]["id"]
    for name in ("ann", "ben"):
        await agent.call("create_registration", event_id=jazz, email=f"{name}@example.com")
    await scene.service.settle()
    undo, *_ = undo_links(await agents_page(scene.person))

    question = await scene.person.http.get(undo)

    assert "Remove 2 registrations?" in text(question)
    assert "ann@example.com" in text(question)
    assert await scene.service.run_sql("select count(*) from registrations") == [(2,)]
    form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', question.text))
    await scene.person.http.post(urlsplit(undo).path, data={**form, "do": "remove"})
    assert await scene.service.run_sql("select count(*) from registrations") == [(0,)]
    page = text(await agents_page(scene.person))
    assert "Example App registered 2 people for Jazz night" in page
    assert "was undone" in page


async def test_actions_of_agents_that_can_be_undone_link_to_their_question(scene: OAuthServerScene) -> None:
    agent = await agent_of(scene)
    jazz = (await agent.call("create_event", **event_fields(title="Jazz night")))["structuredContent"]["id"]
    await agent.call("update_event", event_id=jazz, capacity=20)
    queue = (await agent.call("create_queue", **queue_fields()))["structuredContent"]["id"]
    key = (await agent.call("create_api_key", name="Till"))["structuredContent"]["id"]

    links = undo_links(await agents_page(scene.person))

    assert links == [
        f"/console/agents/keys/{key}/revoke",
        f"/console/queues/{queue}/delete",
        f"/console/events/{jazz}/cancel",
    ]
    for link in links:
        assert (await scene.person.http.get(link)).status_code == 200, link


async def test_the_page_of_agents_says_where_a_person_without_a_seat_stands(scene: OAuthServerScene) -> None:
    agent = await agent_of(scene)
    fields = event_fields(title="Jazz night", capacity=1, waitinglist_capacity=1)
    jazz = (await agent.call("create_event", **fields))["structuredContent"]["id"]
    await scene.ada.register(jazz, email="first@example.com")
    await scene.service.settle()
    await agent.call("create_registration", event_id=jazz, email="ann@example.com")
    await scene.service.settle()

    page = text(await agents_page(scene.person))

    assert re.search(r"registered ann@example.com for Jazz night [^·]*· on the waiting list", page)


async def test_the_page_of_agents_shows_no_actions_of_another_organizer(scene: OAuthServerScene) -> None:
    agent = await agent_of(scene)
    await agent.call("create_event", **event_fields(title="Jazz night"))
    _, bob = await scene.other_organizer()

    page = await agents_page(bob)

    assert "Nothing yet. Each change that an agent makes appears here" in text(page)
    assert "Jazz night" not in page.text


async def test_names_on_the_page_of_agents_are_escaped(scene: OAuthServerScene) -> None:
    app = await scene.register(client_name="<script>alert(1)</script>")
    answer = await scene.person.allow(app.query(scope="write_events"))
    tokens = (await app.redeem(answer["code"])).json()
    await scene.agent(tokens).call("create_event", **event_fields(title="<b>Jazz</b>"))

    for page in (await agents_page(scene.person), await agents_page(scene.person, "/done")):
        assert "<script>alert" not in page.text
        assert "<b>Jazz</b>" not in page.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text


async def test_older_lines_are_on_pages_of_their_own(scene: OAuthServerScene) -> None:
    agent = await agent_of(scene)
    for number in range(45):
        await agent.call("create_event", **event_fields(title=f"Event {number}."))

    first = await agents_page(scene.person, "/done")
    [older] = re.findall(r'href="([^"]*before=[^"]*)" rel="next"', first.text)
    second = await scene.person.http.get(unescape(older))

    assert "Event 44." in first.text
    assert "Event 0." not in first.text
    assert "Event 0." in second.text
    assert 'rel="next"' not in second.text
    refusals = [
        await scene.person.http.get(f"/console/agents/done?before={value}")
        for value in ("x", "0", "9" * 30, "9" * 5_000)
    ]
    assert [page.status_code for page in refusals] == [422] * 4


async def test_the_old_addresses_of_keys_and_apps_redirect_to_the_page_of_agents(scene: OAuthServerScene) -> None:
    moved = [await scene.person.http.get(path) for path in ("/console/keys", "/console/apps", "/console/keys?lang=de")]

    assert [(page.status_code, page.headers["location"]) for page in moved] == [
        (303, "/console/agents"),
        (303, "/console/agents"),
        (303, "/console/agents?lang=de"),
    ]


async def test_the_page_of_agents_is_in_german_too(scene: OAuthServerScene) -> None:
    agent = await agent_of(scene)
    jazz = (await agent.call("create_event", **event_fields(title="Jazz night")))["structuredContent"]["id"]
    await agent.call("create_registration", event_id=jazz, email="ann@example.com")
    scene.person.http.headers["Accept-Language"] = "de"

    page = text(await agents_page(scene.person))

    assert "1. Adresse kopieren" in page
    assert "Example App hat ann@example.com für Jazz night angemeldet" in page


async def test_the_page_on_how_agents_connect_needs_no_sign_in(scene: OAuthServerScene) -> None:
    page = await scene.service.http.get("/agents", headers={"Accept": "text/html"})
    german = await scene.service.http.get("/agents?lang=de", headers={"Accept": "text/html"})

    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert f'<code id="mcp-address">{scene.app.issuer}/mcp</code>' in page.text
    assert "claude.ai/customize/connectors" in page.text
    assert 'href="/console/agents"' in page.text
    assert "So verbinden sich Agenten" in german.text


async def test_the_steps_use_a_key_if_the_authorization_server_is_off(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"oauth_builtin": False, "oauth_issuer": ""})) as service:
        page = await service.http.get("/agents", headers={"Accept": "text/html"})

    assert "Your key is in your console" in page.text
    assert "YOUR_KEY" in page.text


def test_links_for_programs_contain_the_address_of_the_server() -> None:
    connection = ConnectionDetails("https://events.example.com/mcp", "holdfast-events", by_oauth=True)

    cursor = parse_qs(urlsplit(connection.cursor_link).query)
    vscode = urlsplit(connection.vscode_link).query

    assert cursor["name"] == ["holdfast-events"]
    assert json.loads(base64.b64decode(cursor["config"][0])) == {"url": "https://events.example.com/mcp"}
    assert json.loads(unquote(vscode)) == {
        "name": "holdfast-events",
        "type": "http",
        "url": "https://events.example.com/mcp",
    }


@pytest.mark.parametrize(
    ("address", "is_public"),
    [
        ("https://events.example.com/mcp", True),
        ("http://events.example.com/mcp", False),
        ("https://localhost:8002/mcp", False),
        ("https://intranet/mcp", False),
        ("https://10.0.0.7/mcp", False),
        ("https://93.184.216.34/mcp", True),
        ("https://events.local/mcp", False),
    ],
)
def test_an_address_is_public_only_if_programs_on_the_internet_reach_it(address: str, is_public: bool) -> None:
    assert ConnectionDetails(address, "holdfast-events", by_oauth=True).is_public is is_public
