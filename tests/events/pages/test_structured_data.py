"""Structured data and previews of an event say what its page says."""

import re
from typing import Any

import pytest

from tests.events.pages.reading import meta, structured_data
from tests.helpers.events_service import Service

PLACE: dict[str, Any] = {
    "location_name": "Studio 4",
    "address": "Uferstraße 8, Berlin",
    "latitude": 52.5,
    "longitude": 13.25,
}


async def test_the_structured_data_of_an_event_has_the_fields_that_search_engines_list(service: Service) -> None:
    ada = await service.organizer("Ada Events")
    fields = {"pricing_mode": "fixed", "price": 1250, "currency": "EUR", "capacity": 2, **PLACE}
    event = await ada.create_event(title="Life drawing", datetime="2040-06-01T17:00:00Z", **fields)

    data = structured_data(await service.http.get(event["public_url"]))

    assert (data["@context"], data["@type"], data["name"]) == ("https://schema.org", "Event", "Life drawing")
    assert data["startDate"] == "2040-06-01T17:00:00+00:00"
    assert data["url"] == event["public_url"]
    assert data["eventStatus"] == "https://schema.org/EventScheduled"
    assert data["location"]["address"] == "Uferstraße 8, Berlin"
    assert data["location"]["geo"] == {"@type": "GeoCoordinates", "latitude": 52.5, "longitude": 13.25}
    assert data["organizer"] == {
        "@type": "Organization",
        "name": "Ada Events",
        "url": f"http://events.test/organizers/{ada.slug}",
    }
    offer = data["offers"]
    assert (offer["price"], offer["priceCurrency"]) == ("12.50", "EUR")
    assert offer["availability"] == "https://schema.org/InStock"


async def test_an_event_without_free_places_is_sold_out_in_structured_data(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    await ada.register(event["id"], email="one@example.com")
    await service.settle()

    offer = structured_data(await service.http.get(event["public_url"]))["offers"]

    assert (offer["price"], offer["availability"]) == ("0.00", "https://schema.org/SoldOut")


@pytest.mark.parametrize(
    ("currency", "amount", "written", "formatted"),
    [("JPY", 1500, "1500", "¥1,500"), ("KWD", 12340, "12.340", "KWD\u00a012.340"), ("USD", 5, "0.05", "$0.05")],
)
async def test_prices_have_the_digits_of_their_currency(
    service: Service, currency: str, amount: int, written: str, formatted: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(pricing_mode="fixed", price=amount, currency=currency)

    page = await service.http.get(event["public_url"])

    assert structured_data(page)["offers"]["price"] == written
    assert f'<p class="price" data-count="price">{formatted}</p>' in page.text


async def test_the_head_of_an_event_page_has_the_preview_of_its_link(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(title="Life drawing", body="Bring a **pencil**.", datetime="2040-06-01T17:00:00Z")

    page = await service.http.get(event["public_url"])
    german = await service.http.get(f"{event['public_url']}?lang=de")

    assert meta(page, "og:title") == meta(page, "twitter:title") == "Life drawing"
    assert meta(page, "og:description").endswith("UTC · Bring a pencil.")
    assert meta(page, "og:url") == event["public_url"]
    assert (meta(page, "og:locale"), meta(german, "og:locale")) == ("en_US", "de_DE")
    assert meta(page, "twitter:card") == "summary_large_image"


async def test_an_event_page_has_an_address_for_each_language_that_links_to_the_others(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    url = event["public_url"]

    for path, address in ((url, url), (f"{url}?lang=de", f"{url}?lang=de"), (f"{url}?utm=x", url)):
        page = await service.http.get(path)
        assert f'<link rel="canonical" href="{address}">' in page.text
        alternates = re.findall(r'<link rel="alternate" hreflang="([^"]+)" href="([^"]+)">', page.text)
        assert alternates == [("en", f"{url}?lang=en"), ("de", f"{url}?lang=de"), ("x-default", url)]
        assert 'name="robots"' not in page.text


async def test_a_map_shows_the_pin_or_searches_the_address(service: Service) -> None:
    ada = await service.organizer()
    pinned = await ada.create_event(**PLACE)
    addressed = await ada.create_event(address='Ufer & "Straße"\n8')
    nowhere = await ada.create_event()

    assert (
        'href="https://www.openstreetmap.org/?mlat=52.500000&amp;mlon=13.250000#map=17/52.50000/13.25000"'
        in (await service.http.get(pinned["public_url"])).text
    )
    assert (
        'href="https://www.openstreetmap.org/search?query=Ufer%20%26%20%22Stra%C3%9Fe%22%2C%208"'
        in (await service.http.get(addressed["public_url"])).text
    )
    assert "openstreetmap" not in (await service.http.get(nowhere["public_url"])).text
