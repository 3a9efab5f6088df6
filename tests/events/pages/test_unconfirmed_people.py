"""Pages of an organizer with an unproved address work, and do not name it."""

import re

import pytest

from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Client, Service, eventually, running_events
from tests.helpers.form_browser import Browser

OWNER = "owner@example.com"
NAME = "Victim Savings Bank"


@pytest.fixture
async def stranger(service: Service) -> Client:
    return await service.organizer(NAME, is_proved=False, email=OWNER, slug="victim-bank")


async def pages(service: Service, stranger: Client) -> list[str]:
    """The addresses of everything that the public sees of an organizer."""
    event = await stranger.create_event(body="Sign in at [the bank](https://evil.example/login) now.")
    queue = await stranger.create_queue()
    return [
        "/organizers/victim-bank",
        f"/organizers/victim-bank/events/{event['id']}",
        f"/events/{event['id']}/embed",
        f"/events/{event['id']}/calendar.ics",
        f"/queues/{queue['id']}",
        f"/queues/{queue['id']}/embed",
    ]


async def test_pages_of_an_unconfirmed_organizer_have_no_name_and_links_and_are_not_indexed(
    service: Service, stranger: Client
) -> None:
    for path in await pages(service, stranger):
        page = await service.http.get(path)

        assert (page.status_code, NAME in page.text) == (200, False), path
        if not path.endswith(".ics"):
            assert "Unconfirmed organizer" in page.text, path
            assert '<meta name="robots" content="noindex">' in page.text, path
            assert '"organizer":' not in page.text, path
        links = re.findall(r'<a href="([^"]*)"', page.text)
        assert not [link for link in links if "victim-bank" in link and "/events/" not in link], path
        assert not [link for link in links if "evil.example" in link], path


async def test_feeds_are_not_indexed_until_the_address_is_proved(service: Service, stranger: Client) -> None:
    await pages(service, stranger)
    feeds = [f"/organizers/victim-bank/events.{kind}" for kind in ("ics", "rss")]

    before = [(await service.http.get(path)).headers.get("x-robots-tag") for path in feeds]
    await service.set_proof_age(stranger)
    after = [(await service.http.get(path)).headers.get("x-robots-tag") for path in feeds]

    assert (before, after) == (["noindex"] * 2, [None] * 2)


async def test_pages_of_an_unconfirmed_organizer_are_in_german_too(service: Service, stranger: Client) -> None:
    for path in await pages(service, stranger):
        page = await service.http.get(f"{path}?lang=de")
        assert path.endswith(".ics") or "Unbestätigter Veranstalter" in page.text, path


async def test_all_pages_name_the_organizer_as_soon_as_its_address_is_proved(
    service: Service, stranger: Client
) -> None:
    [organizer, event, _, _, queue, _] = await pages(service, stranger)
    for path in (organizer, event, queue):
        assert "Unconfirmed organizer" in (await service.http.get(path)).text
    owner = Browser(service)
    await owner.sign_in(OWNER)

    await owner.send("/console/before", whose="mine")

    for path in (organizer, event):
        page = (await service.http.get(path)).text
        assert (NAME in page, 'name="robots"' in page) == (True, False)
    assert 'href="https://evil.example/login"' in (await service.http.get(event)).text
    assert "Unconfirmed organizer" not in (await service.http.get(queue)).text


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_every_process_names_the_organizer_after_the_proof(service: Service, stranger: Client) -> None:
    event = await stranger.create_event()
    path = f"/organizers/victim-bank/events/{event['id']}"
    owner = Browser(service)
    await owner.sign_in(OWNER)
    async with running_events(service.database.resources.settings) as other:
        assert "Unconfirmed organizer" in (await other.http.get(path)).text

        await owner.send("/console/before", whose="mine")

        async def is_named() -> bool:
            return NAME in (await other.http.get(path)).text

        await eventually(is_named)


async def test_people_can_register_with_an_unconfirmed_organizer(service: Service, stranger: Client) -> None:
    event = await stranger.create_event()
    visitor = Visitor(service)

    await visitor.register(event["id"], "ann@example.com")
    await service.settle()

    assert await service.run_sql("select status::text from registrations") == [("registered",)]


async def test_the_api_names_an_unconfirmed_organizer(service: Service, stranger: Client) -> None:
    event = await stranger.create_event()

    read = (await stranger.get(f"/api/events/{event['id']}")).json()["data"]

    assert read["public_url"].endswith(f"/organizers/victim-bank/events/{event['id']}")
    [organizer] = (await stranger.get("/api/organizers")).json()["data"]
    assert organizer["name"] == NAME
