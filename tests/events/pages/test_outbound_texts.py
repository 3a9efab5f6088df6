"""Mails, calendars, feeds, titles of pages and previews of links have no web address of an unproved organizer.

`PAGES` and `FEEDS` list every public address of the service about an event, an organizer, a queue or a registration.
One that is new fails a test until it is here.
"""

import re
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from html import unescape
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import httpx2
import pytest
from icalendar import Calendar

from holdfast.events.mails.kinds import KINDS, Kind
from holdfast.events.mails.model import MailArguments, MailBatch, MailFacts, RegistrationMail
from holdfast.events.mails.writing import write
from holdfast.events.pages.event.page import preview_path
from holdfast.events.service import service as build_service
from tests.events.mails.post import entry
from tests.events.pages.own_registration import own_path
from tests.events.queues.browser import RoomBrowser
from tests.events.queues.queue_scene import open_queue
from tests.helpers.event_visitor import Visitor, field_value, page_state
from tests.helpers.events_service import Client, Service

ANN = "ann@example.com"
NOW = datetime(2031, 5, 1, 18, tzinfo=UTC)

NAME = "Bank www.evil.example.com"
TEXTS = {
    "title": "Sign in at https://evil.example.com/a?b=c now",
    "location_name": "Hall ev\u200bil.com",
    "address": "Street 1, map:evil.example.com/map",
}

FEEDS = ("/events/{event_id}/calendar.ics", "/organizers/{slug}/events.ics", "/organizers/{slug}/events.rss")
"""Files for other programs."""

PAGES = (
    "/organizers/{slug}",
    "/organizers/{slug}/events/{event_id}",
    "/events/{event_id}/embed",
    "/events/{event_id}/preview/{signature}",
    "/queues/{queue_id}",
    "/queues/{queue_id}/embed",
    "/queues/{queue_id}/progress",
    "/registrations/{link}",
    "/registrations/{link}/data",
    "/registrations/{link}/unsubscribe",
    "/registrations/{link}/outcome",
    "/registrations/{link}/outcome/embed",
)
"""Pages: their titles and what is in their heads."""

POSTED = (
    "/events/{event_id}/registrations",
    "/registrations/{link}/cancel",
    "/registrations/{link}/undo",
    "/registrations/{link}/confirm",
    "/registrations/{link}/outcome/address",
    "/registrations/{link}/outcome/embed/address",
)
"""Pages after a form was sent."""

REDIRECTS = (
    "/events/{event_id}/released",
    "/events/{event_id}/embed/released",
    "/events/{event_id}",
    "/organizers/{slug}/events",
)
"""Short addresses, which have no content of their own."""

PARTS = (
    "/events/{event_id}/stream",
    "/events/{event_id}/embed/stream",
    "/organizers/{slug}/stream",
    "/events/{event_id}/cover-{version}.png",
    "/registrations/{link}/push",
    "/registrations/push-worker.js",
)
"""Parts of pages, in the pages themselves. The cover of an unproved organizer does not exist."""


class OutboundTextScene:
    """An unproved organizer with web addresses in each of its texts, and a guest who is registered."""

    def __init__(
        self, service: Service, stranger: Client, event: dict[str, Any], draft: int, queue: int, outcome: str
    ) -> None:
        self.service = service
        self.stranger = stranger
        self.event = event
        self.draft = draft
        self.queue = queue
        self.outcome = outcome

    async def path(self, template: str) -> str:
        if "/preview/" in template:
            return preview_path(self.service.database.resources.secret, self.draft)
        link = await own_path(self.service, self.event["id"], ANN)
        for name, inserted in {
            "slug": self.stranger.slug,
            "event_id": self.event["id"],
            "queue_id": self.queue,
        }.items():
            template = template.replace(f"{{{name}}}", str(inserted))
        if "/outcome" in template:
            return self.outcome.removesuffix("/embed") + template.partition("/outcome")[2]
        return template.replace("/registrations/{link}", link)

    async def get(self, template: str, language: str = "en") -> httpx2.Response:
        answer = await Visitor(self.service, language=language).http.get(await self.path(template))
        assert answer.status_code == 200, (template, answer.text)
        return answer


@pytest.fixture
async def scene(service: Service) -> OutboundTextScene:
    stranger = await service.organizer(NAME, is_proved=False, email="owner@example.com")
    event = await stranger.create_event(
        **TEXTS, body="Pay at https://evil.example.com/pay or evil.com now.", capacity=9
    )
    draft = await stranger.create_event(**TEXTS, body="Pay at https://evil.example.com/pay now.", published=False)
    queue = await open_queue(service, stranger, title=TEXTS["title"], description="Go to https://evil.example.com/q")
    outcome = await Visitor(service).register(event["id"], ANN)
    await service.settle()
    return OutboundTextScene(service, stranger, event, draft["id"], queue.id, outcome)


class Head(HTMLParser):
    """The texts of a page that programs show without it: its title, descriptions, cards, structured data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._is_read = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._is_read = tag == "title" or attributes.get("type") == "application/ld+json"
        if tag == "meta":
            self.texts.append(attributes.get("content") or "")
        if tag == "link":
            self.texts.append(f"{attributes.get('title')} {attributes.get('href')}")

    def handle_data(self, data: str) -> None:
        if self._is_read:
            self.texts.append(data)
        self._is_read = False


def assert_no_address(texts: list[str], where: str) -> None:
    assert texts, where
    assert not [text for text in texts if "evil" in unescape(text).replace("\u200b", "")], where


def feed_texts(answer: httpx2.Response) -> list[str]:
    """The values of a feed as a program reads them."""
    if "calendar" in answer.headers["content-type"]:
        calendar: Any = Calendar.from_ical(answer.content)
        return [str(text) for component in calendar.walk() for text in component.values()]
    return [str(element.text) for element in ElementTree.fromstring(answer.content).iter()]


def test_every_public_route_is_covered_by_the_test_of_web_addresses(service: Service) -> None:
    prefixes = ("/events/", "/organizers/", "/queues/", "/registrations/")
    routes = build_service(service.database).endpoints.routes
    paths = {route.path for route in routes if route.path.startswith(prefixes)}

    assert paths == {*FEEDS, *PAGES, *POSTED, *PARTS, *REDIRECTS}


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("template", FEEDS)
async def test_feeds_and_calendar_files_contain_no_web_address_of_an_unproved_organizer(
    scene: OutboundTextScene, template: str, language: str
) -> None:
    answer = await scene.get(template, language)

    assert_no_address(feed_texts(answer), template)
    hint = "(see the event's page)" if language == "en" else "(siehe Seite der Veranstaltung)"
    assert any(f"Sign in at {hint} now" in text for text in feed_texts(answer))


@pytest.mark.parametrize("template", PAGES)
async def test_heads_of_pages_contain_no_web_address_of_an_unproved_organizer(
    scene: OutboundTextScene, template: str
) -> None:
    assert_no_address(Head((await scene.get(template)).text).texts, template)


async def test_heads_of_pages_after_a_form_contain_no_web_address_of_an_unproved_organizer(
    scene: OutboundTextScene,
) -> None:
    visitor, framed = Visitor(scene.service, framed=False), Visitor(scene.service)
    own_page = await scene.path("/registrations/{link}")
    token = field_value(await visitor.http.get(f"{own_page}/cancel"), "token")
    answers = {
        "wrong": await visitor.send(scene.event["id"], email="nobody"),
        "wrong, framed": await framed.send(scene.event["id"], email="nobody"),
        "known": await visitor.send(scene.event["id"], email=ANN),
        "late": await visitor.http.post(f"{own_page}/cancel", data={"token": "0-0"}),
        "stopped": await visitor.http.post(f"{own_page}/unsubscribe"),
        "confirmed": await visitor.http.post(f"{own_page}/confirm"),
        "asked": await visitor.http.post(f"{own_page}/cancel", data={"token": token}),
        "leaving": await visitor.http.get(own_page),
        **{
            path: await visitor.http.post(await scene.path(path), data={"email": "nobody"})
            for path in POSTED
            if path.endswith("/address")
        },
    }

    await scene.service.complete_cancellations()
    answers["cancelled"] = await visitor.http.get(own_page)

    assert (page_state(answers["known"]), page_state(answers["cancelled"])) == ("known", "own_cancellation")
    for name, answer in answers.items():
        if answer.text:
            assert_no_address(Head(answer.text).texts, name)


async def test_the_head_of_a_waiting_room_contains_no_web_address_of_an_unproved_organizer(
    scene: OutboundTextScene,
) -> None:
    queue = await open_queue(scene.service, scene.stranger, title=TEXTS["title"])
    browser = RoomBrowser(queue)
    waiting = await browser.line_up()
    await queue.tick()
    released = await browser.look()

    for page in (waiting, released):
        assert_no_address(Head(page.text).texts, page.text)


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("kind", KINDS)
def test_mails_of_every_kind_contain_no_web_address_in_texts_of_organizers(kind: Kind, language: str) -> None:
    mail = mail_with_addresses(kind, language)

    texts = [str(text) for name, text in mail.items() if name != "To"]
    texts += [str(part.get_content()) for part in mail.walk() if part.get_content_maintype() == "text"]
    texts += [str(text) for text in entry(mail).values()] if KINDS[kind].calendar else []
    assert_no_address(texts, kind)


def mail_with_addresses(kind: Kind, language: str) -> EmailMessage:
    """A mail of a proved organizer with web addresses in each of its texts."""
    values: dict[str, Any] = dict.fromkeys(MailFacts.__struct_fields__)
    values |= {**TEXTS, "organizer_name": NAME, "organizer_slug": "bank", "id": 7, "organizer_id": 1}
    values |= {"datetime": NOW + timedelta(days=9), "now": NOW, "proved_at": NOW - timedelta(days=99)}
    values |= {"status": "registered", "cancellation_hours": 24, "currency": "EUR", "calendar_sequence": 1}
    mail = RegistrationMail(
        recipient=ANN,
        message_id="1@events.test",
        caused_at=NOW,
        kind=kind,
        arguments=MailArguments(7, "abcdefgh", 1, name="Ann evil.com", language=language, amount=100, currency="EUR"),
        facts=MailFacts(**values),
        registration_url=f"http://events.test/registrations/7-abcdefgh-1-{'0' * 32}",
        event_url="http://events.test/organizers/bank/events/7",
        stop_url=f"http://events.test/mails/{'0' * 64}-{'0' * 32}",
    )
    [content] = write(MailBatch("http://events.test", "tickets@events.test", "tickets@events.test", [mail]))
    parsed = message_from_bytes(content, policy=default)
    assert isinstance(parsed, EmailMessage)
    return parsed


async def test_calendars_and_previews_contain_web_addresses_once_the_organizer_is_proved(
    scene: OutboundTextScene,
) -> None:
    await scene.service.set_proof_age(scene.stranger)

    for template in (*FEEDS, "/organizers/{slug}/events/{event_id}", "/events/{event_id}/embed"):
        answer = await scene.get(template)
        texts = feed_texts(answer) if template in FEEDS else Head(answer.text).texts
        assert any("Sign in at https://evil.example.com/a?b=c now" in unescape(text) for text in texts), template


async def test_the_event_page_shows_web_addresses_in_texts_of_an_unproved_organizer(scene: OutboundTextScene) -> None:
    page = await scene.get("/organizers/{slug}/events/{event_id}")

    assert re.search(r"<h1[^>]*>Sign in at https://evil.example.com/a\?b=c now</h1>", page.text)
