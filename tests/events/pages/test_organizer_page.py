"""The page of an organizer lists its events that are to come, soonest first."""

import re
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from tests.events.pages.reading import readable_text
from tests.helpers.events_service import Client, Service
from tests.helpers.exchange import read_stream
from tests.helpers.people import sign_up


def titles(page: httpx2.Response) -> list[str]:
    return re.findall(r'<h3 dir="auto"><a [^>]*>([^<]*)</a></h3>', page.text)


async def create(organizer: Client, title: str, days: int, **fields: object) -> dict[str, object]:
    date = datetime.now(UTC) + timedelta(days=days)
    return await organizer.create_event(title=title, datetime=date.isoformat(), **fields)


async def test_events_that_are_to_come_are_listed_soonest_first(service: Service) -> None:
    ada, ben = await service.organizer("Ada Events"), await service.organizer()
    await create(ada, "Third", 30)
    await create(ada, "First", 10)
    await create(ada, "Second", 20)
    cancelled = await create(ada, "Cancelled", 15)
    await ada.delete(f"/api/events/{cancelled['id']}")
    past = await create(ada, "Past", 5)
    await service.run_sql("update events set datetime = now() where id = %(id)s", id=past["id"])
    await create(ben, "Of somebody else", 12)

    page = await service.http.get(f"/organizers/{ada.slug}")

    assert titles(page) == ["First", "Second", "Third", "Past"]
    assert page.text.index("Third") < page.text.index("<h2>Past events</h2>") < page.text.index(">Past<")
    assert '<h1 dir="auto">Ada Events</h1>' in page.text
    assert 'content="noindex"' not in page.text


async def test_an_organizer_without_coming_events_says_so(service: Service) -> None:
    ada = await service.organizer()

    page = await service.http.get(f"/organizers/{ada.slug}")

    assert "Nothing is planned at the moment" in page.text


async def test_a_long_list_goes_on_without_leaving_out_or_repeating_an_event(service: Service) -> None:
    ada = await service.organizer()
    # Events of the same date are told apart by their ids.
    expected = [f"Event {number}" for number in range(45)]
    for number, title in enumerate(expected):
        await ada.create_event(title=title, datetime=f"2040-01-{number // 9 + 1:02}T18:00:00.123456Z")

    listed: list[str] = []
    pages = 0
    path = f"/organizers/{ada.slug}?lang=de"
    while path:
        page = await service.http.get(path)
        listed += titles(page)
        pages += 1
        following = re.search(r'href="([^"]+)" rel="next">Spätere', page.text)
        path = following[1].replace("&amp;", "&") if following else ""

    assert listed == expected
    assert pages == 3


async def test_past_events_are_found_page_by_page_the_latest_first(service: Service) -> None:
    ada = await service.organizer()
    await ada.create_event(title="To come")
    expected = [f"Event {number}" for number in range(30)]
    for title in expected:
        await ada.create_event(title=title, price=900, pricing_mode="fixed")
    await service.run_sql("update events set datetime = now() - (id / 2) * interval '1 day' where title <> 'To come'")
    by_date = "select title from events where title <> 'To come' order by datetime desc, id desc"
    expected = [title for (title,) in await service.run_sql(by_date)]

    path = f"/organizers/{ada.slug}?lang=de"
    lists: list[list[str]] = []
    while path:
        page = await service.http.get(path)
        lists.append(titles(page))
        following = re.search(r'href="([^"]+)">Frühere', page.text)
        path = following[1].replace("&amp;", "&") if following else ""

    assert lists == [["To come", *expected[:6]], expected[6:26], expected[26:]]
    last = (await service.http.get(f"/organizers/{ada.slug}?before=9999999999999999-1")).text
    assert f'href="/organizers/{ada.slug}">Go to the next events' in last
    # What is over has no price and no places.
    assert "9.00" not in last


async def test_a_card_says_what_a_place_costs_and_whether_there_is_one(service: Service) -> None:
    ada = await service.organizer()
    for number, seats in enumerate([{"capacity": 2}, {"capacity": 1, "waitinglist_capacity": 1}, {"capacity": 1}]):
        fields = {"price": 1250, "pricing_mode": "fixed", "currency": "EUR", "location_name": "Studio 4"}
        event = await ada.create_event(title=f"Event {number}", **fields, **seats)
        await ada.register(event["id"], email="one@example.com")
        await service.settle()

    page = readable_text(await service.http.get(f"/organizers/{ada.slug}"))

    assert "Studio 4 €12.50 1 seat left" in page
    assert "Studio 4 €12.50 Full, waiting list open" in page
    assert "Studio 4 €12.50 Full" in page


@pytest.mark.parametrize("place", ["0-0", "x", "1", "99999999999999999999-1", "999999999999999999-1", "-1-1", "1-1-1"])
async def test_an_invalid_page_of_the_list_of_events_is_its_beginning_or_end(service: Service, place: str) -> None:
    ada = await service.organizer()
    await ada.create_event(title="Life drawing")

    page = await service.http.get(f"/organizers/{ada.slug}", params={"after": place})

    assert page.status_code == 200
    assert titles(page) == ["Life drawing"]


@pytest.mark.parametrize("slug", ["nobody", "a", "A" * 200, "a%00b", "...", "%F0%9F%8E%A8", "demo%2Fevents"])
async def test_an_unknown_organizer_is_a_page_that_says_so(service: Service, slug: str) -> None:
    page = await service.http.get(f"/organizers/{slug}", headers={"Accept": "text/html"}, follow_redirects=True)

    assert page.status_code == 404
    assert "There is no such page." in page.text


async def test_the_stream_of_an_organizer_reports_changes_of_its_events(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    event, other = await create(ada, "Pottery", 5), await create(ben, "Of somebody else", 5)
    page = await service.http.get(f"/organizers/{ada.slug}")
    assert f'data-stream="/organizers/{ada.slug}/stream"' in page.text

    async with read_stream(service.app, f"http://events.test/organizers/{ada.slug}/stream") as reader:
        await sign_up(service, event, "ann")
        registered = await reader.next()
        await sign_up(service, other, "bob")
        await create(ada, "Watercolours", 6)
        created = await reader.next()

    notices = [(message["event"], message["data"].keys()) for message in (registered, created)]
    assert notices == [("changed", {"at"})] * 2
    unknown = [await service.http.get(f"/organizers/nobody-here{end}") for end in ("/stream", "")]
    # A cache keeps for a second that there is no such page, and nothing of a stream.
    assert [answer.headers["cache-control"] for answer in unknown] == ["no-store", "public, max-age=0, s-maxage=1"]
    assert [answer.status_code for answer in unknown] == [404, 404]
