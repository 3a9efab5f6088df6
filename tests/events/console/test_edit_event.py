"""Organizers edit events in the console, and overwrite nothing that they have not seen."""

import html
import re
from typing import Any

import pytest

from holdfast.events.settings import Settings
from tests.events.console.event_scene import foreign_event, form_fields, open_edit_form, stored_events
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.form_browser import Browser, main_text, token


async def create_moving_event(ada: Client, **fields: Any) -> dict[str, Any]:
    """An event with a price that moves."""
    return await ada.create_event(
        pricing_mode="dynamic", price=1500, min_price=1000, max_price=2000, currency="EUR", **fields
    )


async def test_a_form_changes_what_was_changed_in_it(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await create_moving_event(
        ada, timezone="Europe/Berlin", datetime="2036-07-12T17:30:00Z", address="Studio Street 1"
    )
    path, fields = await open_edit_form(browser, event)

    done = await browser.http.post(
        path, data={**fields, "title": "Pottery", "datetime": "2036-07-12T20:00", "max_price": "25", "address": ""}
    )

    after = (await ada.get(f"/api/events/{event['id']}")).json()["data"]
    assert (done.status_code, done.headers["location"]) == (303, f"/console/events/{event['id']}")
    changed = {name: value for name, value in after.items() if value != event[name]}
    unchecked = {"agent", "embed_code"}
    assert {name: value for name, value in changed.items() if name not in unchecked} == {
        "title": "Pottery",
        "datetime": "2036-07-12T18:00:00Z",
        "max_price": 2500,
        "address": None,
    }


async def test_a_form_without_changes_changes_nothing(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    # The clock of Berlin shows this time twice that day, and the form has no seconds of its own.
    event = await ada.create_event(
        timezone="Europe/Berlin",
        datetime="2036-10-26T01:30:15.250000Z",
        body="  two lines\r\nand spaces  ",
        recurrence_interval=0,
        latitude=52.520008,
        longitude=13.404954,
    )
    before = await stored_events(service)
    path, fields = await open_edit_form(browser, event)

    done = await browser.http.post(path, data={**fields, "body": fields["body"].replace("\n", "\r\n")})

    assert done.status_code == 303, done.text
    assert await stored_events(service) == before


async def test_a_change_of_the_time_zone_keeps_the_local_time_of_the_event(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(timezone="Europe/Berlin", datetime="2036-07-12T17:30:00Z")
    path, fields = await open_edit_form(browser, event)

    await browser.http.post(path, data={**fields, "timezone": "America/New_York"})

    after = (await ada.get(f"/api/events/{event['id']}")).json()["data"]
    assert (after["timezone"], after["datetime"]) == ("America/New_York", "2036-07-12T23:30:00Z")


async def test_a_published_event_moves_into_the_past_only_after_a_question(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(timezone="Europe/Berlin", datetime="2036-07-12T17:30:00Z")
    path, fields = await open_edit_form(browser, event)
    typed = {**fields, "title": "Pottery", "datetime": "2016-07-12T19:30"}

    question = await browser.http.post(path, data=typed)
    before = (await ada.get(f"/api/events/{event['id']}")).json()["data"]
    done = await browser.http.post(path, data={**typed, "anyway": "yes"})
    after = (await ada.get(f"/api/events/{event['id']}")).json()["data"]

    assert question.status_code == 422
    text = " ".join(main_text(question).split())
    assert "This date is in the past" in text
    assert "The event would be over at once, and nobody could register any more." in text
    assert 'value="Pottery"' in question.text
    assert before["datetime"] == event["datetime"]
    assert (done.status_code, after["datetime"]) == (303, "2016-07-12T17:30:00Z")


@pytest.mark.parametrize(
    ("fields", "typed"),
    [
        pytest.param({"published": False}, {"datetime": "2016-07-12T19:30"}, id="a draft"),
        pytest.param({"datetime": "2016-01-01T12:00:00Z"}, {"datetime": "2016-07-12T19:30"}, id="over already"),
        pytest.param({}, {"title": "Pottery"}, id="another field"),
    ],
)
async def test_no_question_comes_where_no_registration_ends(
    service: Service, fields: dict[str, Any], typed: dict[str, str]
) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(**fields)
    path, sent = await open_edit_form(browser, event)

    done = await browser.http.post(path, data={**sent, **typed})

    assert done.status_code == 303, done.text


async def test_more_options_are_closed_while_none_of_them_was_chosen(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    plain = await ada.create_event()
    chosen = await ada.create_event(cancellation_hours=24)

    pages = [await browser.get(f"/console/events/{event['id']}/edit") for event in (plain, chosen)]

    assert ['<details id="more" open>' in page.text for page in pages] == [False, True]


EVENING = {"timezone": "Europe/Berlin", "datetime": "2036-07-12T17:30:00Z", "ends_at": "2036-07-12T19:30:15Z"}


@pytest.mark.parametrize(
    ("typed", "begins", "ends"),
    [
        ({"datetime": "2036-07-13T20:00"}, "2036-07-13T18:00:00Z", "2036-07-13T20:00:15Z"),
        ({"ends_at": "2036-07-12T22:00"}, "2036-07-12T17:30:00Z", "2036-07-12T20:00:00Z"),
        (
            {"datetime": "2036-07-13T20:00", "ends_at": "2036-07-14T02:00"},
            "2036-07-13T18:00:00Z",
            "2036-07-14T00:00:00Z",
        ),
        ({"ends_at": ""}, "2036-07-12T17:30:00Z", None),
        ({"timezone": "America/New_York"}, "2036-07-12T23:30:00Z", "2036-07-13T01:30:15Z"),
        (
            {"timezone": "America/New_York", "datetime": "2036-07-12T18:30"},
            "2036-07-12T22:30:00Z",
            "2036-07-13T00:30:15Z",
        ),
    ],
)
async def test_the_end_of_an_event_moves_with_its_beginning_unless_it_is_edited(
    service: Service, typed: dict[str, str], begins: str, ends: str | None
) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(**EVENING)
    path, fields = await open_edit_form(browser, event)
    # The form shows no seconds. They are kept where the time is.
    assert fields["ends_at"] == "2036-07-12T21:30"

    done = await browser.http.post(path, data={**fields, **typed})

    after = (await ada.get(f"/api/events/{event['id']}")).json()["data"]
    assert (done.status_code, after["datetime"], after["ends_at"]) == (303, begins, ends)


async def test_the_form_of_an_event_says_how_many_people_get_a_mail_if_the_date_changes(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=4)
    path = f"/console/events/{event['id']}/edit"
    sentence = "If you change the date or the place, 2 people get an e-mail 10 minutes after you save."
    before = await browser.get(path)
    for name, notify in (("ann", True), ("bob", True), ("cleo", False)):
        await ada.register(event["id"], email=f"{name}@example.com", notify=notify)
    await service.settle()

    after = await browser.get(path)

    assert "10 minutes after you save" not in main_text(before)
    assert sentence in main_text(after)


async def test_changes_of_others_to_an_event_are_shown_and_not_overwritten(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(recurrence_frequency="days", datetime="2036-07-12T17:30:00Z")
    path, fields = await open_edit_form(browser, event)
    changes = {"title": "Title of an agent", "capacity": 40, "recurrence_frequency": "weeks"}
    changes |= {"datetime": "2036-07-13T17:30:00Z", "timezone": "America/New_York"}
    changes |= {"ends_at": "2036-07-13T19:30:00Z"}
    await ada.patch(f"/api/events/{event['id']}", {"event": changes})
    before = await stored_events(service)

    refusal = await browser.http.post(path, data={**fields, "title": "My title", "location_name": "Studio"})

    assert (refusal.status_code, "Somebody else has changed this event" in refusal.text) == (409, True)
    assert await stored_events(service) == before
    again = form_fields(refusal)
    assert (again["title"], again["capacity"], again["location_name"]) == ("My title", "10", "Studio")
    differing = re.findall(r'<dt><a href="#(\w+)">.*?<dd[^>]*>([^<]*)<', refusal.text, re.DOTALL)
    assert dict(differing) == {
        "title": "Title of an agent",
        "capacity": "40",
        "location_name": "empty",
        "recurrence_frequency": "weekly",
        "timezone": "America/New York",
        "datetime": "July 13, 2036, 1:30\u202fPM\u00a0EDT",
        "ends_at": "July 13, 2036, 3:30\u202fPM\u00a0EDT",
    }

    done = await browser.http.post(path, data={**again, "capacity": "40"})

    after = (await ada.get(f"/api/events/{event['id']}")).json()["data"]
    assert done.status_code == 303, done.text
    assert (after["title"], after["capacity"], after["location_name"]) == ("My title", 40, "Studio")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"title": " "}, "Enter a title, such as Summer concert."),
        ({"capacity": "1"}, "must be at least the number of seats taken, 2"),
        ({"capacity": ""}, "Enter a number of seats, such as 30."),
        ({"price": "30"}, "must lie between the lowest and the highest price"),
        ({"price": "1.234,00"}, "Enter an amount, such as 12.50."),
        ({"min_price": "0.49"}, "must be at least 0.50 EUR, so that it can be paid by card"),
        ({"min_price": ""}, "is needed for a price that moves"),
        ({"max_price": "5"}, "must be above the lowest price"),
        ({"datetime": "never"}, "Enter a date and a time"),
        ({"ends_at": "1999-01-01T00:00"}, "must be later than “Date and time”"),
        ({"timezone": "Mars/Olympus"}, "must be the IANA name of a time zone"),
        ({"longitude": "181"}, "It must be at most 180"),
    ],
)
async def test_an_invalid_field_of_an_event_has_its_message_beside_it(
    service: Service, typed: dict[str, str], message: str
) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await create_moving_event(ada)
    for name in ("ann", "bob"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.settle()
    before = await stored_events(service)
    path, fields = await open_edit_form(browser, event)

    answer = await browser.http.post(path, data={**fields, **typed})

    assert answer.status_code == 422, answer.text
    [name] = typed
    [note] = re.findall(f'id="{name}-note">([^<]*)<', answer.text)
    assert message in html.unescape(note)
    assert form_fields(answer)[name] == typed[name].strip()
    assert await stored_events(service) == before


async def test_an_invalid_price_has_its_message_also_when_others_changed_the_event(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await create_moving_event(ada)
    path, fields = await open_edit_form(browser, event)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Title of an agent"}})

    answer = await browser.http.post(path, data={**fields, "price": "cheap"})

    assert (answer.status_code, "Title of an agent" in answer.text) == (409, True)
    assert "Enter an amount, such as 12.50." in answer.text


async def test_more_text_than_an_organizer_may_have_is_refused(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"text_per_organizer": 50})) as service:
        ada, browser = await sign_in_organizer(service)
        event = await ada.create_event()
        path, fields = await open_edit_form(browser, event)
        before = await stored_events(service)

        refusal = await browser.http.post(path, data={**fields, "body": "x" * 1_000})

        assert (refusal.status_code, "bytes of text" in refusal.text) == (422, True)
        assert form_fields(refusal)["body"] == "x" * 1_000
        assert await stored_events(service) == before


async def test_the_event_of_another_organizer_cannot_be_edited(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    mine, other = await ada.create_event(), await foreign_event(service)
    _, fields = await open_edit_form(browser, mine)
    before = await stored_events(service)

    paths = [f"/console/events/{id}/edit" for id in (other["id"], 99999, "x", "0", f"0{mine['id']}")]
    read = [await browser.get(path) for path in paths]
    sent = [await browser.http.post(path, data={**fields, "title": "Taken"}) for path in paths]

    assert [response.status_code for response in read] == [403, 404, 404, 404, 404]
    assert [response.status_code for response in sent] == [403, 404, 404, 404, 404]
    assert other["title"] not in "".join(response.text for response in (*read, *sent))
    assert await stored_events(service) == before


async def test_a_form_cannot_change_the_organizer_or_readonly_fields_of_an_event(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    other = await service.organizer("Other Events")
    event = await create_moving_event(ada)
    before = await stored_events(service)
    path, fields = await open_edit_form(browser, event)

    more = {"organizer_id": str(other.id), "currency": "USD", "pricing_mode": "free", "image_keys": "photos/1/x.jpg"}
    done = await browser.http.post(path, data={**fields, **more})

    assert done.status_code == 303, done.text
    assert await stored_events(service) == before


async def test_a_form_of_another_site_or_session_edits_no_event(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event()
    path, fields = await open_edit_form(browser, event)
    before = await stored_events(service)
    stranger = Browser(service)
    await stranger.sign_in("stranger@example.com")

    changed = {**fields, "title": "Taken"}
    foreign = await browser.http.post(path, data=changed, headers={"Sec-Fetch-Site": "cross-site"})
    theirs = token(await stranger.get("/console/start"))
    of_another = await browser.http.post(path, data={**changed, "token": theirs})

    assert [foreign.status_code, of_another.status_code] == [403, 403]
    assert await stored_events(service) == before
