"""The page of one event in the console."""

import re

import pytest

from holdfast.events.events import overview
from tests.events.console.event_scene import foreign_event
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.event_visitor import page_text as text
from tests.helpers.events_service import Service
from tests.helpers.payments import PaymentScene

PRICES = (("fixed", 1500), ("free", 0))


async def test_the_page_of_an_event_shows_seats_waiting_list_and_place(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=4, location_name="Studio")
    for name in ("ann", "bob"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.settle()
    await ada.register(event["id"], email="cleo@example.com")

    page = await browser.get(f"/console/events/{event['id']}")

    for phrase in (
        "1 of 1 seats taken",
        "Waiting list 1 of 4 places taken",
        "1 registration is not decided yet",
        "Studio",
    ):
        assert phrase in text(page)


async def test_an_event_without_registrations_has_nothing_to_say_about_their_order(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(pricing_mode="fixed", price=1500, currency="EUR")

    page = text(await browser.get(f"/console/events/{event['id']}"))

    assert "Fair order" not in page
    # What is paid elsewhere is not in this figure.
    assert "Paid by card €0.00" in page


async def test_more_people_than_places_on_the_waiting_list_are_counted_as_people(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=2)
    for name in ("ann", "bob", "cleo"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.settle()
    path = f"/console/events/{event['id']}"
    fits = await browser.get(path)

    await service.run_sql("update events set waitinglist_capacity = 1")

    assert "Waiting list 2 of 2 places taken" in text(fits)
    assert "2 people wait for a seat." in text(await browser.get(path))
    listed = await browser.get(f"{path}/registrations")
    assert "1 of 1 seats taken · 2 people on the waiting list ·" in text(listed)


async def test_a_waiting_list_that_is_closed_is_not_counted_in_places(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(waitinglist_capacity=0)
    await service.run_sql("update events set seats_passed_on = 1")

    page = await browser.get(f"/console/events/{event['id']}")

    assert "Waiting list 0 people wait for a seat. 1 cancelled seat went to a person who waited" in text(page)


async def test_the_price_is_a_picture_with_words(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(pricing_mode="fixed", price=1500, currency="EUR")
    path = f"/console/events/{event['id']}"
    assert "The price so far" not in (await browser.get(path)).text

    await ada.patch(f"/api/events/{event['id']}", {"event": {"price": 2050}})
    page = await browser.get(path)

    assert re.search(r'<path class="line" d="M[0-9VH .]+"', page.text)
    assert re.findall(r"<td>(€[^<]+)</td>", page.text) == ["€20.50", "€15.00"]


async def test_the_changes_of_a_price_are_listed_in_words(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(
        pricing_mode="dynamic", price=1500, min_price=1000, max_price=3000, currency="EUR", timezone="Europe/Berlin"
    )
    await ada.patch(f"/api/events/{event['id']}", {"event": {"price": 2050}})

    page = await browser.get(f"/console/events/{event['id']}")

    changes = re.findall(r"<li><time [^>]+>[^<]+</time> <strong>([^<]+)</strong> <span[^>]*>([^<]+)", page.text)
    assert changes[-1] == ("€15.00", "the first price")
    assert "changed by hand" in {reason for _, reason in changes}


async def test_an_event_that_cannot_be_paid_for_yet_links_to_the_payouts(payment_scene: PaymentScene) -> None:
    ada, browser = await sign_in_organizer(payment_scene.service)
    paid, free = [await ada.create_event(pricing_mode=mode, price=price) for mode, price in PRICES]
    link = f'href="/console/payouts?event={paid["id"]}">Connect payouts'
    assert link in (await browser.get(f"/console/events/{paid['id']}")).text
    assert "Connect payouts" not in (await browser.get(f"/console/events/{free['id']}")).text

    await payment_scene.service.run_sql("update users set payouts_ready = true")

    assert "Connect payouts" not in (await browser.get(f"/console/events/{paid['id']}")).text


async def test_a_free_event_has_no_payments_among_its_parts_and_says_why_on_their_page(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    paid, free = [await ada.create_event(pricing_mode=mode, price=price) for mode, price in PRICES]

    for path in ("", "/registrations", "/check-in", "/share", "/photos", "/mails", "/edit"):
        for event, has_tab in ((free, False), (paid, True)):
            page = await browser.get(f"/console/events/{event['id']}{path}")
            assert (f'<a href="/console/events/{event["id"]}/payments">Payments</a>' in page.text) is has_tab, path
    assert "This event is free" in (await browser.get(f"/console/events/{free['id']}/payments")).text
    assert "This event is free" not in (await browser.get(f"/console/events/{paid['id']}/payments")).text
    for event, next_step in ((free, "registrations"), (paid, "share")):
        page = await browser.get(f"/console/events/{event['id']}/payments")
        assert f'class="button secondary" href="/console/events/{event["id"]}/{next_step}"' in page.text


async def test_the_event_of_another_organizer_is_not_shown(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    other = await foreign_event(service)

    answers = [await browser.get(f"/console/events/{id}") for id in (other["id"], 99999, "x", "-1")]

    assert [answer.status_code for answer in answers] == [403, 404, 404, 404]
    assert other["title"] not in "".join(answer.text for answer in answers)


async def test_a_visitor_who_is_not_signed_in_is_led_to_sign_in_from_the_pages_of_an_event(service: Service) -> None:
    event = await foreign_event(service)

    for path in ("new", f"{event['id']}", f"{event['id']}/edit", f"{event['id']}/cancel"):
        answer = await service.http.get(f"/console/events/{path}", headers={"Accept": "text/html"})
        assert answer.headers["location"] == f"/sign-in?return_to=%2Fconsole%2Fevents%2F{path.replace('/', '%2F')}"


@pytest.mark.parametrize(
    ("currency", "price", "advice"),
    [
        ("EUR", 49, "its price, €0.49, cannot be paid by card. It must be at least €0.50. Change the price"),
        ("KWD", 1234, "its price, KWD 1.234, cannot be paid by card. It must end in 0. Change the price"),
        ("EUR", 50, None),
    ],
)
async def test_a_price_that_cannot_be_charged_is_shown_with_advice(
    service: Service, currency: str, price: int, advice: str | None
) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(pricing_mode="fixed", price=price, currency=currency)

    page = text(await browser.get(f"/console/events/{event['id']}")).replace("\xa0", " ")

    assert (advice or "") in page
    assert ("cannot be paid by card" in page) is bool(advice)


async def test_the_chart_of_an_event_shows_registrations_and_seats_by_day(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(timezone="Europe/Berlin")
    for name in ("ann", "bob", "cleo"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.settle()
    await service.run_sql(
        "update registrations set received_at = received_at - interval '3 days'"
        " where arrival = (select min(arrival) from registrations)"
    )

    page = await browser.get(f"/console/events/{event['id']}")

    assert "Registrations by day" in page.text
    assert re.findall(r"</th><td>(\d)</td>", page.text) == ["2", "0", "0", "1"]


async def test_the_chart_of_an_event_shows_registrations_by_hour_on_its_first_day(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    for name in ("ann", "bob"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.settle()
    await service.run_sql("update registrations set received_at = date_trunc('day', received_at) + interval '12 hours'")
    await service.run_sql(
        "update registrations set received_at = received_at - interval '2 hours'"
        " where arrival = (select min(arrival) from registrations)"
    )

    page = await browser.get(f"/console/events/{event['id']}")

    assert "Registrations by hour" in page.text
    assert re.findall(r"</th><td>(\d)</td>", page.text) == ["1", "0", "1", "0", "0", "0", "0"]


async def test_an_event_shows_who_is_checked_in_from_the_day_before(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event, empty_event = await ada.create_event(), await ada.create_event()
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    early = await browser.get(f"/console/events/{event['id']}")
    await service.run_sql("update events set datetime = now() + interval '20 hours', end_datetime = null")

    late = await browser.get(f"/console/events/{event['id']}")
    empty = await browser.get(f"/console/events/{empty_event['id']}")

    assert "Checked in 0" not in text(early)
    assert "Checked in 0" not in text(empty)
    assert "Checked in 0 of 1 people" in text(late)


async def test_a_full_event_with_a_waiting_list_leads_to_its_seats(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=4)
    link = f'href="/console/events/{event["id"]}/edit#capacity"'
    for name in ("ann", "bob"):
        assert link not in (await browser.get(f"/console/events/{event['id']}")).text
        await ada.register(event["id"], email=f"{name}@example.com")
        await service.settle()

    assert link in (await browser.get(f"/console/events/{event['id']}")).text


async def test_the_page_of_an_event_stops_counting_at_a_limit(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "MAX_COUNTED", 1)
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    for name in ("ann", "bob"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.settle()

    page = await browser.get(f"/console/events/{event['id']}")

    assert "2 of 10 seats taken" in text(page)
    assert "Registrations by day" not in page.text


async def test_a_number_of_the_overview_stands_in_one_place_with_its_unit(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=8, waitinglist_capacity=4, pricing_mode="fixed", price=1250, currency="EUR")
    for number in range(5):
        await ada.register(event["id"], email=f"p{number}@example.com")
    await service.settle()

    page = text(await browser.get(f"/console/events/{event['id']}"))

    assert "Seats 5 of 8 seats taken Waiting list 0 of 4 places taken Paid" in page
    assert "€12.50 a seat" in page
    assert re.search(r"Fair order \d people so far, numbered in order of arrival. How people", page)


async def test_the_times_of_a_list_name_their_zone_once(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(timezone="Europe/Berlin", datetime="2036-01-12T17:30:00Z")
    for name in ("ann", "bob", "cleo"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.settle()

    page = text(await browser.get(f"/console/events/{event['id']}/registrations"))

    assert "All times in Berlin time" in page
    assert re.findall("CES?T", page) == ["CET"]  # at the date of the event
    assert len(re.findall(r"Today, \d+:\d\d [AP]M", page)) == 3
