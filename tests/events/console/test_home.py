"""The first page of the console shows what needs attention, and finds events."""

import re

import httpx2

from tests.events.console.organizing import sign_in_organizer
from tests.events.console.paid_scene import give_back, pay_for_seat
from tests.helpers.events_service import Service
from tests.helpers.form_browser import main_text
from tests.helpers.payments import PaymentScene


def titles(page: httpx2.Response) -> list[str]:
    return re.findall(r"<h2><a [^>]*><bdi>([^<]*)</bdi></a></h2>", page.text)


async def test_events_to_come_are_listed_soonest_first_and_those_that_are_over_latest_first(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    for title, days in (("Third", 30), ("First", 10), ("Long ago", 20), ("Yesterday", 25)):
        event = await ada.create_event(title=title)
        await service.run_sql(
            "update events set datetime = now() + make_interval(days => %(days)s) where id = %(id)s",
            id=event["id"],
            days={"Long ago": -9, "Yesterday": -1}.get(title, days),
        )

    assert titles(await browser.get("/console")) == ["First", "Third"]
    assert titles(await browser.get("/console?state=past")) == ["Yesterday", "Long ago"]


async def test_an_event_is_found_by_a_part_of_its_title_in_any_case(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    for title in ("Life drawing", "Still life", "100% wool", "Pottery"):
        await ada.create_event(title=title)

    assert sorted(titles(await browser.get("/console?q=LIFE"))) == ["Life drawing", "Still life"]
    assert titles(await browser.get("/console?q=%25")) == ["100% wool"]
    assert "No event has this in its title." in main_text(await browser.get("/console?q=zzz"))


async def test_more_events_than_a_page_are_read_one_page_after_the_other(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    for number in range(25):
        await ada.create_event(title=f"Event {number}")

    first = await browser.get("/console?q=event")
    following = re.search(r'href="([^"]+)" rel="next"', first.text)
    assert following
    second = await browser.get(following[1].replace("&amp;", "&"))

    assert sorted([*titles(first), *titles(second)]) == sorted(f"Event {number}" for number in range(25))
    assert 'rel="next"' not in second.text


async def test_an_invalid_offset_or_state_shows_the_first_page(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    await ada.create_event(title="Life drawing")

    for query in ("offset=x", "offset=-1", f"offset={'9' * 30}", "state=none", f"q={'%20' * 500}"):
        page = await browser.get(f"/console?{query}")
        assert (page.status_code, titles(page)) == (200, ["Life drawing"]), query


async def test_the_first_page_shows_where_people_wait_and_that_payments_are_not_possible(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    full = await ada.create_event(title="Life drawing", capacity=1, waitinglist_capacity=5)
    await ada.create_event(title="Pottery", pricing_mode="fixed", price=1500)
    for name in ("ann", "bob"):
        await ada.register(full["id"], email=f"{name}@example.com")
    await service.settle()

    page = await browser.get("/console")
    text = main_text(page)
    public = await service.http.get(full["public_url"])

    bars = [re.findall(r'class="(bar[^"]*)"', answer.text) for answer in (public, page)]
    assert bars == [["bar warning"], ["bar warning", "bar"]], "A full event has the same colour for all."
    assert "Life drawing is full. 1 person is waiting. Add seats See who is waiting" in text
    assert f'href="/console/events/{full["id"]}/edit#capacity"' in page.text
    assert "Nobody can register for your events with a price yet, since nothing can be paid to you." in text


async def test_an_event_with_a_price_says_what_was_paid(payment_scene: PaymentScene) -> None:
    browser, _, payments = await pay_for_seat(payment_scene)
    before = main_text(await browser.get("/console"))

    await give_back(browser, payments, "3.00")
    after = main_text(await browser.get("/console"))

    assert "€12.00 paid" in before
    assert "€9.00 paid" in after
