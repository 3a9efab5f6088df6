"""What an organizer publishes: a page, a form to embed, photos."""

from html.parser import HTMLParser

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import failing_fields
from tests.contract.steps import refused_event
from tests.support import Service


class Tags(HTMLParser):
    """The tags of a piece of HTML, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@requirement("events.public-url", "events.create")
async def test_the_public_page_lies_under_the_slug_of_the_organizer(service: Service) -> None:
    ada = await service.organizer(slug="ada-events")

    event = await ada.create_event()

    assert event["public_url"] == f"http://events.test/organizers/ada-events/events/{event['id']}"


@requirement("events.embed", "events.create")
@pytest.mark.parametrize("title", ["Life drawing", '"><script>alert(1)</script>', "Tom & Jerry's <b>show</b>"])
async def test_the_embed_code_is_one_iframe_of_the_form(service: Service, title: str) -> None:
    event = await (await service.organizer()).create_event(title=title)

    [(tag, attributes)] = Tags(event["embed_code"]).found
    assert (tag, attributes["src"]) == ("iframe", event["embed_url"])
    assert event["embed_code"].endswith("</iframe>")
    assert event["embed_url"] == f"http://events.test/events/{event['id']}/embed"


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
