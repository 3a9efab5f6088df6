"""Organizers create events in the console, also as copies."""

import html
import re

import pytest

from tests.events.console.event_scene import event_form, foreign_event, stored_events
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.form_browser import main_text, token

PAGE = "/console/events/new"


async def test_a_form_creates_an_event(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)

    done = await browser.send(PAGE, **event_form(do="draft"))

    [event] = (await ada.get("/api/events")).json()["data"]
    assert (done.status_code, done.headers["location"]) == (303, f"/console/events/{event['id']}")
    assert (
        event.items()
        >= {
            "title": "Life drawing",
            "body": "Bring a **pencil**.",
            "datetime": "2036-07-12T17:30:00Z",
            "ends_at": "2036-07-12T19:30:00Z",
            "timezone": "Europe/Berlin",
            "price": 1250,
            "capacity": 12,
            "waitinglist_capacity": 3,
            "cancellation_hours": 24,
            "location_name": "Studio",
            "address": None,
            "latitude": 52.52,
            "longitude": 13.405,
        }.items()
    )
    assert "Life drawing" in (await browser.get(done.headers["location"])).text


async def test_a_form_of_a_new_event_sent_twice_creates_one_event(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    page = await browser.get(PAGE)
    once = re.findall('name="once" value="([^"]+)"', page.text)[0]
    fields = {**event_form(), "once": once, "token": token(page)}

    answers = [await browser.http.post(PAGE, data=fields) for _ in range(2)]
    other = await browser.http.post(PAGE, data={**fields, "title": "Pottery"})

    assert [answer.status_code for answer in answers] == [303, 303]
    assert answers[0].headers["location"] == answers[1].headers["location"]
    assert (other.status_code, "has created an event before" in other.text) == (422, True)
    assert len(await stored_events(service)) == 1
    assert f'value="{once}"' not in other.text


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ({"price": "12,5"}, 1250),
        ({"price": "12"}, 1200),
        ({"price": "1250", "currency": "JPY"}, 1250),
        ({"price": "1.5", "currency": "KWD"}, 1500),
        ({"price": "", "pricing_mode": "free"}, 0),
    ],
)
async def test_money_is_written_as_people_write_it(service: Service, typed: dict[str, str], stored: int) -> None:
    ada, browser = await sign_in_organizer(service)

    done = await browser.send(PAGE, **event_form(**typed))

    assert done.status_code == 303, done.text
    assert (await ada.get("/api/events")).json()["data"][0]["price"] == stored


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"title": ""}, "Enter a title, such as Summer concert."),
        ({"title": "x" * 301}, "at most 300 characters"),
        ({"price": "1,250"}, "Enter an amount, such as 12.50."),
        ({"price": "12.5", "currency": "JPY"}, "Enter an amount, such as 1250."),
        ({"price": "-5"}, "Enter an amount"),
        ({"price": "9" * 16}, "Enter an amount"),
        ({"price": "0"}, "must be more than 0"),
        ({"price": "0.49", "currency": "EUR"}, "must be at least 0.50 EUR, so that it can be paid by card"),
        ({"price": "49", "currency": "JPY"}, "must be at least 50 JPY, so that"),
        ({"price": "1.234", "currency": "KWD"}, "must end in 0, such as 1.230 KWD, so that it can be paid by card"),
        ({"price": "99999999999", "currency": "ISK"}, "must be less, so that it can be paid by card"),
        (
            {"price": "5", "pricing_mode": "dynamic", "currency": "EUR", "min_price": "0.20", "max_price": "9"},
            "must be at least 0.50 EUR",
        ),
        ({"price": "0.20", "pricing_mode": "free"}, "must be empty or 0 for a free event"),
        ({"price": "5", "pricing_mode": "free"}, "must be empty or 0 for a free event"),
        ({"price": "5", "pricing_mode": "dynamic", "min_price": "6", "max_price": "9"}, "between the lowest and the"),
        ({"price": "5", "pricing_mode": "dynamic"}, "is needed for a price that moves"),
        ({"currency": "XXX"}, "is not a currency"),
        ({"datetime": ""}, "Enter a date and a time."),
        ({"datetime": "soon"}, "Enter a date and a time"),
        ({"datetime": "2036-02-30T10:00"}, "Enter a date and a time"),
        ({"datetime": "2036-03-30T02:30"}, "that exist in the chosen time zone"),
        ({"datetime": "0001-01-01T00:00"}, "Enter a date and a time"),
        ({"ends_at": "2036-07-12T19:30"}, "must be later than “Date and time”"),
        ({"ends_at": "late"}, "Enter a date and a time"),
        ({"ends_at": "9999-12-31T23:59"}, "must lie between the years 1970 and 9000"),
        ({"datetime": "9999-12-31T23:59"}, "must lie between the years 1970 and 9000"),
        ({"timezone": "../../etc/passwd"}, "must be the IANA name of a time zone"),
        ({"capacity": "0"}, "Enter a number of seats, such as 30. It must be at least 1."),
        ({"capacity": "many"}, "Enter a number of seats, such as 30."),
        ({"capacity": "9" * 30}, "Enter a number of seats"),
        ({"latitude": "91"}, "It must be at most 90"),
        ({"latitude": "nan"}, "Enter degrees north, such as 52.52."),
        ({"recurrence_frequency": "hours"}, "Choose one from the list."),
        ({"body": "a\x00b"}, "must not contain NUL characters"),
    ],
)
async def test_an_invalid_field_of_a_new_event_has_its_message_and_keeps_the_typed_text(
    service: Service, typed: dict[str, str], message: str
) -> None:
    _, browser = await sign_in_organizer(service)

    answer = await browser.send(PAGE, **event_form(**typed))

    assert answer.status_code == 422, answer.text
    assert message in html.unescape(answer.text)
    assert ' aria-invalid="true"' in answer.text
    assert "Studio" in answer.text
    for value in typed.values():
        assert html.escape(value, quote=False) in answer.text
    assert await stored_events(service) == []


async def test_a_kind_of_price_that_does_not_exist_is_refused(service: Service) -> None:
    _, browser = await sign_in_organizer(service)

    answer = await browser.send(PAGE, **event_form(pricing_mode="barter"))

    assert (answer.status_code, "Choose one from the list." in answer.text) == (422, True)
    assert await stored_events(service) == []


@pytest.mark.parametrize(
    ("typed", "mode", "price"),
    [
        ({"price": ""}, "free", 0),
        ({"price": "0.00"}, "free", 0),
        ({"price": "12.50"}, "fixed", 1250),
        (
            {"price": "12.50", "pricing_mode": "dynamic", "min_price": "8", "max_price": "20"},
            "dynamic",
            1250,
        ),
    ],
)
async def test_an_event_with_a_price_is_paid_and_one_without_is_free(
    service: Service, typed: dict[str, str], mode: str, price: int
) -> None:
    ada, browser = await sign_in_organizer(service)
    fields = {name: text for name, text in event_form(do="draft").items() if name != "pricing_mode"}

    done = await browser.send(PAGE, **{**fields, **typed})

    assert done.status_code == 303, done.text
    [event] = (await ada.get("/api/events")).json()["data"]
    assert (event["pricing_mode"], event["price"]) == (mode, price)


@pytest.mark.parametrize(
    ("seats", "typed", "places"),
    [("12", "", 5), ("50", "", 5), ("51", "", 6), ("400", "", 40), ("400", "0", 0), ("400", "7", 7)],
)
async def test_the_waiting_list_has_a_place_for_every_tenth_seat_unless_a_number_is_typed(
    service: Service, seats: str, typed: str, places: int
) -> None:
    ada, browser = await sign_in_organizer(service)

    page = await browser.get(PAGE)
    done = await browser.send(PAGE, **event_form(capacity=seats, waitinglist_capacity=typed))

    assert "Without a number, the waiting list has a place for every ten seats, at least 5." in main_text(page)
    assert done.status_code == 303, done.text
    assert (await ada.get("/api/events")).json()["data"][0]["waitinglist_capacity"] == places


async def test_every_invalid_field_of_a_new_event_is_marked_at_once(service: Service) -> None:
    _, browser = await sign_in_organizer(service)

    answer = await browser.send(PAGE, **event_form(title="", price="cheap", datetime="soon", capacity="0"))

    assert answer.text.count(' aria-invalid="true"') == 4


async def test_texts_typed_into_a_new_event_are_escaped(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    attack = '"><script>alert(1)</script></textarea>'

    wrong = await browser.send(PAGE, **event_form(title=attack, body=attack, timezone=attack, capacity="0"))
    done = await browser.send(PAGE, **event_form(title=attack, body=attack))
    pages = [wrong, *[await browser.get(path) for path in ("/console", done.headers["location"])]]

    for page in pages:
        assert "<script>alert" not in page.text
        assert "&lt;script&gt;alert" in page.text


async def test_a_copy_has_everything_but_the_date(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(
        title="Pottery", pricing_mode="dynamic", price=1500, min_price=1000, max_price=2000, currency="EUR"
    )
    await service.run_sql(
        "insert into photos (key, organizer_id, state, content_type, content_length)"
        " values ('photos/1/abcdefghijklmnopqrstuv.jpg', %(id)s, 'accepted', 'image/jpeg', 1)",
        id=ada.id,
    )
    await service.run_sql("update events set image_keys = '{photos/1/abcdefghijklmnopqrstuv.jpg}'")
    page = await browser.get(f"{PAGE}?copy={event['id']}")
    fields = {
        **event_form(title="Pottery", pricing_mode="dynamic", price="15.00", min_price="10.00", max_price="20.00"),
        "copy": str(event["id"]),
    }

    done = await browser.http.post(PAGE, data={**fields, "token": token(page)})

    for value in ("Pottery", "15.00", "10.00", "20.00", "EUR"):
        assert f'value="{value}"' in page.text
    assert re.search('name="datetime"[^>]* value=""', page.text)
    assert done.status_code == 303, done.text
    _, copy = (await ada.get("/api/events")).json()["data"]
    assert copy["image_urls"] == ["http://events.test/media/photos/1/abcdefghijklmnopqrstuv.jpg"]
    assert (copy["min_price"], copy["max_price"]) == (1000, 2000)


async def test_the_event_of_another_organizer_cannot_be_copied(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    event = await foreign_event(service)
    before = await stored_events(service)

    read = await browser.get(f"{PAGE}?copy={event['id']}")
    sent = await browser.send(PAGE, **event_form(copy=str(event["id"])))
    missing = await browser.send(PAGE, **event_form(copy="99999"))
    odd = await browser.send(PAGE, **event_form(copy="7 or 1"))

    assert [response.status_code for response in (read, sent, missing, odd)] == [403, 403, 404, 404]
    assert event["title"] not in read.text + sent.text
    assert await stored_events(service) == before


async def test_a_form_cannot_create_an_event_for_another_organizer(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    other = await service.organizer("Other Events")

    await browser.send(PAGE, **event_form(), organizer_id=str(other.id))

    assert await service.run_sql("select organizer_id from events") == [(ada.id,)]


async def test_a_form_of_another_site_creates_no_event(service: Service) -> None:
    _, browser = await sign_in_organizer(service)
    page = await browser.get(PAGE)

    foreign = await browser.http.post(
        PAGE, data={**event_form(), "token": token(page)}, headers={"Origin": "https://evil.example"}
    )
    unsigned = await browser.http.post(PAGE, data={**event_form(), "token": "1-forged"})

    assert [response.status_code for response in (foreign, unsigned)] == [403, 403]
    assert await stored_events(service) == []


async def test_the_form_of_a_new_event_is_filled_with_zone_and_currency_of_the_last_one(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    await ada.create_event(timezone="Asia/Kathmandu", currency="NPR", pricing_mode="fixed", price=150_000)

    page = await browser.get(PAGE)

    assert '<option value="Asia/Kathmandu" selected>' in page.text
    assert '<option value="NPR" selected>' in page.text
    assert "Time zone: Asia/Kathmandu , as in your last event . Change it" in main_text(page)
    assert "Made from the title; add a photo to replace it." in main_text(page)


async def test_a_free_event_does_not_change_the_currency_of_the_next_one_nor_of_its_copy(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    await ada.create_event(pricing_mode="fixed", price=1250, currency="EUR")
    free = await ada.create_event(pricing_mode="free", price=0)

    for path in (PAGE, f"{PAGE}?copy={free['id']}"):
        assert '<option value="EUR" selected>' in (await browser.get(path)).text


async def test_without_a_price_so_far_the_currency_is_that_of_the_country_of_the_last_event(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    await ada.create_event(pricing_mode="free", price=0, timezone="Europe/Zurich")

    page = await browser.http.get(PAGE, headers={"Accept-Language": "en-US"})

    assert '<option value="CHF" selected>' in page.text


@pytest.mark.parametrize(
    ("accepted", "currency"),
    [
        ("de-DE,de;q=0.9", "EUR · Euro"),
        ("de", "EUR · Euro"),
        ("en-GB,en;q=0.5", "GBP · Pfund"),
        ("de-CH", "CHF · Schweizer Franken"),
        ("xx-YY, ja", "JPY · "),
        ("en-GB;q=0.5, de-CH;q=0.9, ja;q=0.7", "CHF · Schweizer Franken"),
        ("en-GB;q=0, ja", "JPY · "),
        ("ja;q=0.1, de-DE; q=0.8", "EUR · Euro"),
        ("ja;q=2, de-DE;q=0.8", "EUR · Euro"),
        ("", "USD · US-Dollar"),
        ("en-aaaaaaaaaaaa;q=x,,_,-", "USD · US-Dollar"),
    ],
)
async def test_the_first_event_has_the_currency_of_the_region_of_the_browser(
    service: Service, accepted: str, currency: str
) -> None:
    _, browser = await sign_in_organizer(service)

    page = await browser.http.get(f"{PAGE}?lang=de", headers={"Accept-Language": accepted})

    assert f'<option value="{currency[:3]}" selected>{currency.partition("Pfund")[0]}' in page.text


async def test_the_form_of_a_new_event_is_in_german_too(service: Service) -> None:
    _, browser = await sign_in_organizer(service, language="de")

    page = await browser.get(PAGE)
    answer = await browser.send(PAGE, **event_form(price="billig"))

    assert "Neue Veranstaltung" in page.text
    assert "Geben Sie einen Betrag ein, zum Beispiel 12.50." in answer.text
