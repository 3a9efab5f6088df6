"""Publishing an event: its page, its form to embed, and its photos."""

from html.parser import HTMLParser

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import failing_fields
from tests.contract.steps import refused_event
from tests.helpers.events_service import Service


class Tags(HTMLParser):
    """The tags of a piece of HTML, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@requirement("events.public-url", "events.create")
async def test_the_public_url_of_an_event_has_the_slug_of_the_organizer(service: Service) -> None:
    ada = await service.organizer(slug="ada-events")

    event = await ada.create_event()

    assert event["public_url"] == f"http://events.test/organizers/ada-events/events/{event['id']}"


@requirement("events.embed", "events.create")
@pytest.mark.parametrize("title", ["Life drawing", '"><script>alert(1)</script>', "Tom & Jerry's <b>show</b>"])
async def test_the_embed_code_is_an_iframe_of_the_form_and_its_script(service: Service, title: str) -> None:
    event = await (await service.organizer()).create_event(title=title)

    [(tag, attributes), script] = Tags(event["embed_code"]).tags
    assert (tag, attributes["src"]) == ("iframe", event["embed_url"])
    assert script == ("script", {"src": "http://events.test/embed.js", "async": None})
    assert event["embed_code"].endswith("</iframe>\n" + '<script src="http://events.test/embed.js" async></script>')
    assert event["embed_url"] == f"http://events.test/events/{event['id']}/embed"


@requirement("events.form")
@pytest.mark.parametrize("name", [{}, {"name": "Ann Lee"}], ids=["without a name", "with a name"])
async def test_a_visitor_registers_on_the_form_without_a_key(service: Service, name: dict[str, str]) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    page = await service.http.get(event["embed_url"])
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    tags = Tags(page.text).tags
    [form] = [attributes for tag, attributes in tags if tag == "form"]
    fields = {str(attributes["name"]): attributes for tag, attributes in tags if tag == "input"}
    assert "required" in fields["email"]
    assert "required" not in fields["name"]
    sent = {"token": str(fields["token"]["value"]), "email": "ann@example.com", **name}
    answer = await service.http.post(str(form["action"]), data=sent)
    await service.settle()

    assert answer.status_code == 303
    [registration] = (await ada.get("/api/registrations")).json()["data"]
    assert (registration["email"], registration["name"]) == ("ann@example.com", name.get("name"))
    assert registration["status"] == "registered"
    assert registration["user_id"]


@requirement("events.images")
async def test_an_event_without_photos_has_no_images(service: Service) -> None:
    event = await (await service.organizer()).create_event()

    assert (event["image_urls"], event["primary_image_url"]) == ([], None)


@requirement("events.images")
async def test_a_photo_that_was_never_uploaded_is_refused(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert await refused_event(ada, image_keys=["nothing/here.png"]) == {"image_keys"}
    response = await ada.patch(f"/api/events/{event['id']}", {"event": {"image_keys": ["nothing/here.png"]}})
    assert failing_fields(response) == {"image_keys"}
