"""The list of an event's registrations: its states, its order, its parts, and its search."""

import re

import pytest

from tests.events.console.organizing import next_page_link, sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.form_browser import main_text
from tests.helpers.people import end_event, erase, handle_of, mentions, sign_up


async def test_the_list_of_registrations_shows_their_status_and_the_place_on_the_waiting_list(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=2)
    for name in ("ann", "bob", "cleo", "dan"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.run_sql("update events set waitinglist_capacity = 2")
    await service.settle()
    await service.run_sql("update events set capacity = 2, waitinglist_capacity = 5 where id = %(id)s", id=event["id"])
    await ada.register(event["id"], email="eve@example.com")

    text = main_text(await browser.get(f"/console/events/{event['id']}/registrations"))

    assert "1 of 2 seats taken · 2 of 5 places on the waiting list taken" in text
    rows = re.findall(r"(\w+)@example.com (Seat|Waiting list, place \d|Pending|No seat) ", text)
    assert rows == [
        ("eve", "Pending"),
        ("dan", "No seat"),
        ("cleo", "Waiting list, place 2"),
        ("bob", "Waiting list, place 1"),
        ("ann", "Seat"),
    ]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=registered", ["ann"]),
        ("state=waitlisted", ["bob", "cleo"]),
        ("state=rejected", ["dan"]),
        ("state=pending", []),
        ("q=CLEO", ["cleo"]),
        ("q=%20ann%40example.com%20", ["ann"]),
        ("q=nn%40example.co", ["ann"]),
        ("q=Bob+Ex", ["bob"]),
        ("q=example.com&state=waitlisted", ["bob", "cleo"]),
        ("q=%25", []),
        ("q=_nn", []),
    ],
)
async def test_the_list_of_registrations_is_filtered_and_searched(
    service: Service, query: str, names: list[str]
) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=2)
    other = await ada.create_event(title="Pottery")
    await sign_up(service, other, "cleo", "zoe")
    await sign_up(service, event, "ann", "bob", "cleo")
    await service.run_sql("update events set waitinglist_capacity = 3 where id = %(id)s", id=event["id"])
    await ada.register(event["id"], email="dan@example.com")
    await service.run_sql("update events set waitinglist_capacity = 2 where id = %(id)s", id=event["id"])
    await service.settle()

    text = main_text(await browser.get(f"/console/events/{event['id']}/registrations?{query}"))

    assert re.findall(r"(\w+)@example.com", text.partition("Search")[2]) == names
    assert ("Nobody matches." in text) == (not names)


async def test_a_long_list_of_registrations_is_paged_without_gaps(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=60, waitinglist_capacity=100)
    for number in range(120):
        await ada.register(event["id"], email=f"p{number}@example.com")
    await service.settle()
    path: str | None = f"/console/events/{event['id']}/registrations?q=example&state="
    newest: list[int] = []
    waiting: list[int] = []

    while path:
        page = await browser.get(path)
        newest += [int(number) for number in re.findall(r"<bdi>p(\d+)@", page.text)]
        path = next_page_link(page.text)
    path = f"/console/events/{event['id']}/registrations?state=waitlisted"
    while path:
        page = await browser.get(path)
        waiting += [int(place) for place in re.findall(r"Waiting list, place (\d+)", page.text)]
        path = next_page_link(page.text)

    assert newest == [*range(119, -1, -1)]
    assert waiting == [*range(1, 61)]


async def test_the_names_of_other_organizers_are_neither_shown_nor_found(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    await service.organizer(name="Secret Society", email="sam@example.com")
    event = await ada.create_event()
    await ada.register(event["id"], email="sam@example.com")
    await service.settle()
    path = f"/console/events/{event['id']}/registrations"

    assert "sam@example.com" in main_text(await browser.get(path))
    assert "Secret" not in main_text(await browser.get(path))
    assert "Nobody matches." in main_text(await browser.get(f"{path}?q=secret"))


async def test_erased_people_have_no_name_in_the_list_of_registrations(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    await end_event(service, event)
    await erase(service)
    path = f"/console/events/{event['id']}/registrations"

    page_text = main_text(await browser.get(path))

    assert "Somebody whose data was erased Seat" in page_text
    assert not mentions(page_text, "ann")
    for text in ("ann", "erased", "example.com"):
        assert "Nobody matches." in main_text(await browser.get(f"{path}?q={text}"))


async def test_texts_of_strangers_are_escaped_in_the_list_of_registrations(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(title="<script>alert(1)</script>\u202e")
    address = "<b>&\"'@example.com"
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    # As an address may be stored since a time before addresses were checked.
    await service.run_sql("update users set email = %(email)s where email = 'ann@example.com'", email=address)
    await service.run_sql("update registrations set name = %(name)s", name='<img src=x onerror="alert(1)">\u202e')

    one = f"registrations/{await handle_of(service, address)}"
    for path in ("registrations", one, "add-registration", "registrations?q=%3Cscript%3E"):
        page = await browser.get(f"/console/events/{event['id']}/{path}")

        assert page.status_code == 200
        assert "<script>" not in page.text
        assert "<img" not in page.text
        assert "<b>" not in page.text
        assert "script-src 'self';" in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    "query", ["state=gone", "after=1", "after=9e9-1", "q=%00", f"q={'a' * 255}", "state=registered&state=pending"]
)
async def test_invalid_queries_of_the_list_of_registrations_are_refused(service: Service, query: str) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    assert (await browser.get(f"/console/events/{event['id']}/registrations?{query}")).status_code == 422


async def test_the_list_of_another_organizer_is_not_shown(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(title="Secret meeting")
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    _, eve = await sign_in_organizer(service, "eve")

    one = f"registrations/{await handle_of(service, 'ann@example.com')}"
    for path in ("registrations", "registrations?q=ann", one, "add-registration"):
        page = await eve.get(f"/console/events/{event['id']}/{path}")

        assert page.status_code == 403
        assert "Secret meeting" not in page.text
        assert "ann@" not in page.text
    assert (await eve.get("/console/events/999999/registrations")).status_code == 404


async def test_the_list_of_registrations_is_in_german_too(service: Service) -> None:
    ada, browser = await sign_in_organizer(service, language="de")
    event = await ada.create_event()
    await sign_up(service, event, "ann")

    text = main_text(await browser.get(f"/console/events/{event['id']}/registrations"))

    assert "1 von 10 Plätzen " in text
    assert "Ann Example ann@example.com Platz " in text


async def test_the_list_of_registrations_in_another_language_is_searched_and_filtered_alike(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()

    page = await browser.get(f"/console/events/{event['id']}/registrations?state=waitlisted&q=a%26b%22&lang=en")

    assert '<a href="?state=waitlisted&amp;q=a%26b%22&amp;lang=de" hreflang="de"' in page.text
