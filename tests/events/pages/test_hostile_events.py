"""Texts of strangers about an event are shown as written, and escaped."""

import re
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser

import pytest

from tests.events.pages.reading import meta, structured_data
from tests.helpers.events_service import Service

HOSTILE = [
    "<script>alert(1)</script>",
    "</title></style></script><script>alert(1)</script>",
    '"\' onmouseover=alert(1) x="',
    "<!--<script>",
    "]]><img src=x onerror=alert(1)>",
    "{{ 7777 * 7777 }}{% raw %}",
    "\u202egnp.exe\u2066",
    "javascript:alert(1)",
    "&lt;b&gt;&amp;",
    "W" * 250,
]


class Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


@pytest.mark.parametrize("text", HOSTILE)
async def test_a_hostile_text_is_escaped_everywhere_on_the_event_page(service: Service, text: str) -> None:
    ada, plain = await service.organizer(text[:100]), await service.organizer()
    fields = {"title": text, "location_name": text, "address": text, "body": f"{text}\n\n[x]({text[:50]})"}
    event = await ada.create_event(**fields)
    harmless = await plain.create_event(title="x", location_name="x", address="x", body="x\n\n[x](https://x.example)")

    for path, other in (
        (event["public_url"], harmless["public_url"]),
        (f"/organizers/{ada.slug}", f"/organizers/{plain.slug}"),
    ):
        page, usual = await service.http.get(path), await service.http.get(other)
        assert page.status_code == 200
        elements, expected = Elements(page.text).elements, Elements(usual.text).elements
        # A link in the body is the only element that may be missing.
        assert [tag for tag, _ in elements if tag != "a"] == [tag for tag, _ in expected if tag != "a"]
        assert not any(name.startswith("on") or name == "style" for _, attributes in elements for name in attributes)
        for _, attributes in elements:
            assert not (attributes.get("href") or "").lower().startswith(("javascript:", "data:"))
        assert "60481729" not in page.text


@pytest.mark.parametrize("text", HOSTILE)
async def test_a_hostile_title_is_complete_in_the_heading_and_one_line_elsewhere(service: Service, text: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event(title=text)

    page = await service.http.get(event["public_url"])

    heading = re.search(r'<h1 dir="auto">(.*?)</h1>', page.text, re.DOTALL)
    assert heading
    assert unescape(heading[1]) == text
    line = re.sub("[\u202e\u2066]", " ", text).strip()
    assert meta(page, "og:title") == line
    assert structured_data(page)["name"] == line
    title = re.search(r"<title>(.*?)</title>", page.text, re.DOTALL)
    assert title
    assert unescape(title[1]) == line


async def test_a_word_of_ten_thousand_letters_is_shown(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(body="W" * 10_000)

    page = await service.http.get(event["public_url"])

    assert "W" * 10_000 in page.text
    assert len(meta(page, "description")) == 200


async def test_a_text_of_an_event_reaches_no_header(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(title="x\r\nSet-Cookie: a=b", body="y\r\nSet-Cookie: a=b")

    page = await service.http.get(event["public_url"])

    assert "set-cookie" not in page.headers
    assert "Set-Cookie" not in str(page.headers)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue", "America/St_Johns", None])
@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59Z", "1900-01-01T00:00:00Z", "0001-01-01T00:00:00Z"])
async def test_events_at_the_earliest_and_latest_dates_have_pages(
    service: Service, zone: str | None, moment: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(timezone=zone, recurrence_frequency="years")
    # Dates of the past cannot all be given to the service; what is stored must have a page all the same.
    await service.run_sql("update events set datetime = %(moment)s, recurs_from = %(moment)s", moment=moment)

    for path in (event["public_url"], f"/organizers/{ada.slug}", f"{event['public_url']}?lang=de"):
        assert (await service.http.get(path)).status_code == 200


async def test_an_event_with_a_time_zone_is_shown_in_it(service: Service) -> None:
    ada = await service.organizer()
    moment = datetime(2040, 6, 1, 17, 0, tzinfo=UTC)
    event = await ada.create_event(datetime=moment.isoformat(), timezone="Europe/Berlin")

    english = await service.http.get(event["public_url"])
    german = await service.http.get(event["public_url"], params={"lang": "de"})

    assert "Friday, June 1, 2040" in english.text
    assert "7:00\u202fPM" in english.text
    assert "Freitag, 1. Juni 2040" in german.text
    assert "19:00\u00a0MESZ" in german.text
    assert structured_data(english)["startDate"] == "2040-06-01T19:00:00+02:00"
