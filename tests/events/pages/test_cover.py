"""An event without photos has a cover that is drawn from its title, on its page and as the preview of its link."""

from io import BytesIO

import pytest
from PIL import Image

from holdfast.events.pages.cover import cover_svg, draw_cover
from tests.events.pages.reading import preview_image
from tests.helpers.events_service import Service
from tests.helpers.photos import with_photo


def test_a_title_always_has_the_same_cover_and_other_titles_have_different_ones() -> None:
    titles = [f"Evening {number}" for number in range(50)]

    assert cover_svg("Life drawing") == cover_svg("Life drawing")
    assert draw_cover("Life drawing") == draw_cover(" life DRAWING ")
    assert len({cover_svg(title) for title in titles}) == 50


async def test_the_page_of_an_event_shows_its_cover_and_link_previews_show_it_as_an_image(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(title="Life drawing")

    page = (await service.http.get(event["public_url"])).text
    address = preview_image(page)
    assert address
    image = await service.http.get(address)

    assert '<svg class="cover"' in page
    assert (image.status_code, image.headers["content-type"]) == (200, "image/png")
    assert "immutable" in image.headers["cache-control"]
    assert Image.open(BytesIO(image.content)).size == (1200, 630)
    assert len(image.content) < 100_000


@pytest.mark.parametrize("title", ["Life drawing", "日本の夜", "x" * 300, "Ü", "a\u202eb", "W" * 40 + " " + "i" * 200])
async def test_a_title_of_any_script_and_length_has_an_image(service: Service, title: str) -> None:
    event = await (await service.organizer()).create_event(title=title)

    address = preview_image((await service.http.get(event["public_url"])).text)

    assert address
    assert (await service.http.get(address)).status_code == 200


async def test_the_address_of_the_image_changes_with_the_title(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(title="Life drawing")
    before = preview_image((await service.http.get(event["public_url"])).text)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Still life"}})

    after = preview_image((await service.http.get(event["public_url"])).text)

    assert before
    assert after
    assert before != after
    assert (await service.http.get(after)).status_code == 200
    assert (await service.http.get(before)).status_code == 404


async def test_an_event_with_a_photo_shows_the_photo_instead(service: Service) -> None:
    ada = await service.organizer()
    event, _ = await with_photo(ada, service)

    page = (await service.http.get(event["public_url"])).text

    assert '<svg class="cover"' not in page
    assert "/cover-" not in page


async def test_an_unconfirmed_organizer_has_no_image_of_its_titles(service: Service) -> None:
    ada = await service.organizer(is_proved=False)
    event = await ada.create_event(title="Life drawing")

    page = (await service.http.get(event["public_url"])).text

    assert preview_image(page) is None
