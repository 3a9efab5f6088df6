"""Pages are rendered once for many, and never shown when something has changed."""

import asyncio
import re

import pytest
from prometheus_client import REGISTRY

from holdfast.events.settings import Settings
from holdfast.kit.http.answers import LIVE
from holdfast.kit.pages import page_cache
from holdfast.kit.pages.page_cache import CachedPage, PageCache, cached_page
from tests.events.pages.reading import readable_text
from tests.helpers.any_bound import ANY_BOUND
from tests.helpers.event_visitor import page_state
from tests.helpers.events_service import Service, eventually, running_events


async def test_an_unchanged_event_page_is_answered_with_304_until_it_changes(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    first = await service.http.get(event["public_url"])
    known = {"If-None-Match": first.headers["etag"]}

    again = await service.http.get(event["public_url"], headers=known)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Watercolours"}})
    changed = await service.http.get(event["public_url"], headers=known)

    assert (first.status_code, again.status_code, changed.status_code) == (200, 304, 200)
    assert again.content == b""
    assert [*map(str.encode, first.headers.get_list("cache-control"))] == [LIVE[1]]
    assert "Watercolours" in changed.text


async def test_a_change_of_the_organizer_or_the_clock_shows_as_well(service: Service) -> None:
    ada = await service.organizer("Ada Events")
    event = await ada.create_event()
    await service.http.get(event["public_url"])

    await service.run_sql("update users set name = 'Ben Events' where id = %(id)s", id=ada.id)
    renamed = await service.http.get(event["public_url"])
    await service.run_sql("update events set datetime = clock_timestamp() + interval '300 ms'")
    soon = await service.http.get(event["public_url"])

    async def says_that_it_is_over() -> bool:
        return "This event is over." in (await service.http.get(event["public_url"])).text

    assert "Ben Events" in renamed.text
    assert "This event is over." not in soon.text
    await eventually(says_that_it_is_over)


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_change_of_an_event_is_shown_as_soon_as_it_is_announced(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2)

    async def places() -> tuple[str, str]:
        """What the page says of places, and the state of the form in a frame."""
        page, frame = [await service.http.get(event[field]) for field in ("public_url", "embed_url")]
        [places] = re.findall(r"\d seats? left|No seats left", readable_text(page)) or ["?"]
        return places, page_state(frame)

    seen = [await places()]
    url = ""
    for number in range(2):
        url = await ada.register(event["id"], email=f"person{number}@example.com")
        await service.settle()
        seen.append(await places())
    left = await ada.delete(url)
    assert left.status_code == 204, left.text
    await service.wait_for_notices()
    seen.append(await places())
    await ada.delete(f"/api/events/{event['id']}")
    cancelled = await service.http.get(event["public_url"])

    assert seen == [("2 seats left", "open"), ("1 seat left", "open"), ("?", "full"), ("1 seat left", "open")]
    assert "cancelled" in cancelled.text


async def test_the_event_page_says_how_many_registrations_are_numbered_and_links_the_log(service: Service) -> None:
    ada = await service.organizer()
    event, unlogged = await ada.create_event(), await ada.create_event(public_log=False)
    assert "How is this fair?" not in readable_text(await service.http.get(unlogged["public_url"]))
    assert "so far" not in readable_text(await service.http.get(event["public_url"]))

    sentences: list[str] = []
    for number in range(3):
        await ada.register(event["id"], email=f"person{number}@example.com")
        await service.settle()
        page = await service.http.get(event["public_url"], headers={"Accept-Language": "de" if number == 2 else "en"})
        assert f'href="/log/events/{event["id"]}/checkpoint"' in page.text
        sentences += re.findall(r"\d (?:person|people) so far\.|Bisher \d Anmeldungen\.", readable_text(page))

    assert sentences == [
        "1 person so far.",
        "2 people so far.",
        "Bisher 3 Anmeldungen.",
    ]


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_change_is_shown_by_every_process(settings: Settings) -> None:
    async with running_events(settings) as one, running_events(settings) as other:
        ada = await one.organizer()
        event = await ada.create_event()
        for process in (one, other):
            assert "Watercolours" not in (await process.http.get(event["public_url"])).text

        await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Watercolours"}})
        await other.wait_for_notices()

        for process in (one, other):
            assert "Watercolours" in (await process.http.get(event["public_url"])).text


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_crowd_at_one_event_asks_the_database_once(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await service.wait_for_notices()
    await service.http.get(event["public_url"])

    def lookups() -> float | None:
        return REGISTRY.get_sample_value("holdfast_batch_calls_count", {"batch": "find_linked_event"})

    before = lookups()
    for _ in range(5):
        await service.http.get(event["public_url"])
        await service.http.get(event["embed_url"])

    assert before
    assert lookups() == before


async def test_a_cached_page_is_kept_for_one_language(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    pages = [
        await service.http.get(event["public_url"], headers={"Accept-Language": language})
        for language in ("de", "en", "de", "en")
    ]

    assert ["Über diese Veranstaltung" in page.text for page in pages] == [True, False, True, False]


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_an_unchanged_event_is_read_once_for_the_pages_of_all_languages(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=12)
    await service.wait_for_notices()

    def reads() -> float:
        return REGISTRY.get_sample_value("holdfast_batch_calls_count", {"batch": "read_event_page"}) or 0

    async def read_both() -> list[str]:
        return [(await service.http.get(f"{event['public_url']}?lang={code}")).text for code in ("en", "de")]

    before = reads()
    english, german = await read_both()
    await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 34}})
    larger_english, larger_german = await read_both()

    assert ("of 12" in english, "von 12" in german) == (True, True)
    assert ("of 34" in larger_english, "von 34" in larger_german) == (True, True)
    assert reads() - before == 2


async def test_the_next_date_of_a_series_is_shown_at_the_address_of_a_past_one(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(
        title="Life drawing", datetime="2040-06-01T17:00:00Z", recurrence_frequency="weeks", recurrence_interval=2
    )
    planned = await service.http.get(event["public_url"])
    await service.run_sql(
        "insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency,"
        " pricing_mode, price, recurrence_frequency, recurrence_interval, recurs_from, follows_id)"
        " select organizer_id, 'The next one', body, datetime + interval '14 days', 5, 0, currency, pricing_mode, 0,"
        " recurrence_frequency, recurrence_interval, recurs_from, id from events"
    )
    await service.run_sql("update events set datetime = now() where id = %(id)s", id=event["id"])

    page = await service.http.get(event["public_url"])

    assert "Repeats every 2 weeks. Then again on Friday, June 15, 2040." in readable_text(planned)
    assert "The date you came for has passed. This is the next one." in page.text
    assert "5 seats left" in readable_text(page)
    assert (
        f'<link rel="canonical" href="http://events.test/organizers/{ada.slug}/events/{event["id"] + 1}">' in page.text
    )
    assert f'action="/events/{event["id"] + 1}/registrations"' in page.text


async def test_a_moving_price_is_shown_with_its_bounds_and_its_history(service: Service) -> None:
    ada = await service.organizer()
    prices = {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000, "currency": "EUR"}
    event = await ada.create_event(capacity=3, **prices)
    before = await service.http.get(event["public_url"])
    await ada.register(event["id"], email="one@example.com")
    await service.settle()

    page = await service.http.get(event["public_url"])

    assert "€25.00 The price moves with demand, between €10.00 and €60.00." in readable_text(before)
    assert "The price so far" not in before.text
    assert "The price so far" in readable_text(page)
    assert '<path class="line" d="M' in page.text
    price = (await ada.get(f"/api/events/{event['id']}")).json()["data"]["current_price"]
    assert re.findall(r"<td>(€[^<]+)</td>", page.text) == [f"€{price / 100:.2f}", "€25.00"]


async def test_a_page_is_rendered_once_for_all_waiting_requests() -> None:
    pages, rendered = PageCache(ANY_BOUND), 0
    resume = asyncio.Event()

    async def render() -> CachedPage:
        nonlocal rendered
        rendered += 1
        await resume.wait()
        return cached_page("<p>", [])

    waiting = [asyncio.create_task(pages.get("key", render)) for _ in range(100)]
    await asyncio.sleep(0)
    # The first of them goes away.
    waiting[0].cancel()
    await asyncio.sleep(0)
    resume.set()
    page_results = await asyncio.gather(*waiting[1:])

    assert rendered == 1
    assert {page.content for page in page_results} == {b"<p>"}
    assert (await pages.get("key", render)).content == b"<p>"
    assert rendered == 1


async def test_a_page_whose_rendering_failed_is_rendered_again() -> None:
    pages = PageCache(ANY_BOUND)

    async def fail() -> CachedPage:
        raise LookupError

    async def render() -> CachedPage:
        return cached_page("<p>", [])

    with pytest.raises(LookupError):
        await pages.get("key", fail)
    assert (await pages.get("key", render)).content == b"<p>"


async def test_the_cache_of_pages_is_bounded_in_bytes() -> None:
    pages, rendered = PageCache(ANY_BOUND, max_bytes=100_000), 0

    async def render() -> CachedPage:
        nonlocal rendered
        rendered += 1
        return cached_page("x" * 20_000, [])

    async def huge() -> CachedPage:
        return cached_page("x" * 200_000, [])

    for number in range(20):
        await pages.get(number, render)
    assert len((await pages.get("huge", huge)).content) == 200_000
    for number in reversed(range(20)):
        await pages.get(number, render)

    assert rendered == 20 + 16


async def test_a_cached_page_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "CACHE_TTL_SECONDS", 0)
    pages, times = PageCache(ANY_BOUND), 0

    async def render() -> CachedPage:
        nonlocal times
        times += 1
        return cached_page("a page", [])

    for _ in range(2):
        await pages.get("a", render)

    assert times == 2
