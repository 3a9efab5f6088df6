"""Sending the registration form: its outcomes in plain words, and the form again with what was typed."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.events.events.recurrence import continue_series
from holdfast.events.pages.registration.form import purpose, tokens
from tests.events.check_in.check_in_scene import code_of
from tests.helpers.event_visitor import Visitor, field_value, page_state, page_text
from tests.helpers.events_service import Service


async def count(service: Service) -> int:
    [(count,)] = await service.run_sql("select count(*) from registrations")
    return count


async def test_a_full_event_offers_its_waiting_list_and_then_nothing(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=1)
    visitor = Visitor(service)

    async def register(email: str) -> str:
        path = await visitor.register(event["id"], email)
        await service.settle()
        return page_text(await visitor.http.get(path))

    assert "Register" in page_text(await visitor.open(event["id"]))
    assert "You have a seat." in await register("ann@example.com")
    waiting = await visitor.open(event["id"])
    assert page_state(waiting) == "waiting_list"
    assert "Join the waiting list" in page_text(waiting)
    assert "You are number 1 on the waiting list." in await register("ben@example.com")
    full = await visitor.open(event["id"])
    assert page_state(full) == "full"
    assert "<form" not in full.text
    # The visitor had opened the form before.
    late = await visitor.post(event["id"], token=field_value(waiting, "token"), email="cal@example.com")
    assert (late.status_code, page_state(late)) == (422, "full")


async def test_a_visitor_who_comes_while_the_last_seat_is_given_reads_that_none_was_left(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    visitor = Visitor(service)
    first = await visitor.register(event["id"], "ann@example.com")
    second = await visitor.register(event["id"], "ben@example.com")
    await service.settle()

    assert page_state(await visitor.http.get(first)) == "registered"
    page = await visitor.http.get(second)
    assert page_state(page) == "rejected"
    assert "Others came first, and the waiting list is full." in page_text(page)


async def test_a_registration_after_a_rejection_has_a_new_outcome(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    visitor = Visitor(service)
    await visitor.register(event["id"], "ann@example.com")
    refusal = await visitor.register(event["id"], "ben@example.com")
    await service.settle()
    await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 2}})

    again = await visitor.register(event["id"], "ben@example.com")
    await service.settle()

    assert again != refusal
    assert page_state(await visitor.http.get(again)) == "registered"
    assert (await visitor.http.get(refusal)).status_code == 410


@pytest.mark.parametrize("framed", [True, False])
async def test_a_form_of_an_event_that_cannot_be_paid_for_yet_stores_nothing(service: Service, framed: bool) -> None:
    ada = await service.organizer()
    free = await ada.create_event()
    event = await ada.create_event(price=500, pricing_mode="fixed")
    visitor = Visitor(service, framed=framed)

    page = await visitor.open(event["id"])
    # A program can make itself a token for the form of another event only; this one was free when it was opened.
    await service.run_sql(
        "update events set pricing_mode = 'free', price = 0, current_price = null where id = %(id)s", id=event["id"]
    )
    token = field_value(await visitor.open(event["id"]), "token")
    await service.run_sql(
        "update events set pricing_mode = 'fixed', price = 500, current_price = 500 where id = %(id)s", id=event["id"]
    )
    refusal = await visitor.post(event["id"], token=token, email="ann@example.com")

    assert page_state(page) == "unpayable"
    assert "cannot be paid here yet" in page_text(page)
    assert (refusal.status_code, page_state(refusal)) == (422, "unpayable")
    assert await count(service) == 0
    assert await service.run_sql("select count(*) from users where email = 'ann@example.com'") == [(0,)]
    assert page_state(await visitor.open(free["id"])) == "open"


async def test_the_form_of_a_cancelled_or_past_event_takes_no_registrations(service: Service) -> None:
    ada = await service.organizer()
    cancelled, over = await ada.create_event(), await ada.create_event()
    visitor = Visitor(service)
    tokens = [field_value(await visitor.open(event["id"]), "token") for event in (cancelled, over)]
    await ada.delete(f"/api/events/{cancelled['id']}")
    await service.run_sql("update events set datetime = now() - interval '1 second' where id = %(id)s", id=over["id"])

    for event, token, expected in zip((cancelled, over), tokens, ("cancelled", "expired"), strict=True):
        assert page_state(await visitor.open(event["id"])) == expected
        page = await visitor.post(event["id"], token=token, email="ann@example.com")
        assert (page.status_code, page_state(page)) == (422, expected)
    assert await count(service) == 0


async def test_a_form_opened_before_a_date_of_a_series_passed_registers_for_the_next(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(recurrence_frequency="weeks", recurrence_interval=1)
    visitor = Visitor(service)
    opened = await visitor.open(event["id"])
    await service.run_sql(
        "update events set datetime = now() - interval '1 second', recurs_from = now() - interval '1 second'"
    )
    await service.database.transact(continue_series)
    [(next_id,)] = await service.run_sql("select id from events where follows_id is not null")

    page = await visitor.open(event["id"])
    late = await visitor.post(event["id"], token=field_value(opened, "token"), email="ann@example.com", name="Ann")

    assert f'action="/events/{next_id}/embed"' in page.text
    assert (late.status_code, page_state(late)) == (422, "open")
    assert "The date you had chosen has passed." in page_text(late)
    assert (field_value(late, "email"), field_value(late, "name")) == ("ann@example.com", "Ann")
    assert await count(service) == 0
    sent = await visitor.post(next_id, token=field_value(late, "token"), email="ann@example.com")
    assert sent.status_code == 303
    hosted = await Visitor(service).http.get(f"/events/{event['id']}/registrations")
    assert hosted.headers["location"] == f"/organizers/{ada.slug}/events/{next_id}"


async def test_sending_a_form_twice_registers_once_and_shows_the_same_outcome(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    visitor = Visitor(service)
    token = field_value(await visitor.open(event["id"]), "token")

    answers = [
        await visitor.post(event["id"], token=token, email=email) for email in ("ann@example.com", " Ann@Example.COM ")
    ]
    await service.settle()
    answers.append(await visitor.post(event["id"], token=token, email="ann@example.com"))

    assert len({answer.headers["location"] for answer in answers}) == 1
    assert await count(service) == 1


async def test_a_repeated_form_reveals_nothing_of_the_older_registration(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    visitor = Visitor(service)
    await visitor.register(event["id"], "ann@example.com", name="Ann")
    await service.settle()
    await service.run_sql("update registrations set received_at = received_at - interval '16 minutes'")

    page = await Visitor(service).send(event["id"], email="ann@example.com", name="Mallory")

    assert (page.status_code, page_state(page)) == (200, "known")
    assert "This address is already registered." in page_text(page)
    for secret in ("Ann", "ann@", "seat", "/registrations/"):
        assert secret not in page_text(page)
    assert await service.run_sql("select name from registrations") == [("Ann",)]


async def test_the_details_of_an_older_registration_are_sent_to_its_address_once_an_hour(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await Visitor(service).register(event["id"], "ann@example.com")
    await service.settle()
    await service.run_sql("update registrations set received_at = received_at - interval '16 minutes'")
    visitor = Visitor(service)

    async def details() -> int:
        sent = await service.run_sql("select recipient from mails where kind = 'seat_again'")
        assert {*sent} <= {("ann@example.com",)}
        return len(sent)

    for _ in range(3):
        await visitor.send(event["id"], email="ann@example.com")
    assert await details() == 1
    await service.run_sql("update registrations set details_at = details_at - interval '61 minutes'")
    await visitor.send(event["id"], email="ann@example.com")
    assert await details() == 2
    await service.run_sql("update registrations set details_at = null, notify = false")
    page = await visitor.send(event["id"], email="ann@example.com")
    assert page_state(page) == "known"
    assert await details() == 2


async def test_a_form_sent_again_mails_the_details_again_but_a_double_click_does_not(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    visitor = Visitor(service)
    await visitor.register(event["id"], "ann@example.com")
    await service.settle()

    async def kinds() -> list[tuple[object, ...]]:
        return await service.run_sql("select kind from mails order by id")

    await visitor.register(event["id"], "ann@example.com")
    assert await kinds() == [("seat",)]

    await service.run_sql("update registrations set received_at = received_at - interval '2 minutes'")
    for _ in range(2):
        await visitor.register(event["id"], "ann@example.com")
    assert await kinds() == [("seat",), ("seat_again",)]


async def test_the_outcome_is_shown_for_a_day(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    visitor = Visitor(service)
    path = await visitor.register(event["id"], "ann@example.com")
    await service.settle()

    for hours, status in ((23, 200), (25, 410)):
        await service.run_sql(
            "update registrations set received_at = now() - %(hours)s * interval '1 hour'", hours=hours
        )
        assert (await visitor.http.get(path)).status_code == status


async def test_an_outcome_page_refreshes_until_the_registration_is_settled(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    visitor = Visitor(service)
    path = await visitor.register(event["id"], "ann@example.com")

    assert '<noscript><meta http-equiv="refresh" content="1"></noscript>' in (await visitor.http.get(path)).text
    await service.settle()
    assert "refresh" not in (await visitor.http.get(path)).text.replace('data-refresh=""', "")


async def test_the_language_goes_on_from_page_to_page(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    http = Visitor(service).http

    page = await http.get(f"/events/{event['id']}/embed?lang=de")
    wrong = await http.post(
        f"/events/{event['id']}/embed?lang=de", data={"token": field_value(page, "token"), "email": "x"}
    )
    sent = await http.post(
        f"/events/{event['id']}/embed?lang=de", data={"token": field_value(page, "token"), "email": "ann@example.com"}
    )

    assert f'action="/events/{event["id"]}/embed?lang=de"' in page.text
    assert "Das ist keine E-Mail-Adresse." in page_text(wrong)
    assert sent.headers["location"].endswith("/outcome/embed?lang=de")
    assert "Ihre Anmeldung ist eingegangen." in page_text(await http.get(sent.headers["location"]))
    assert await service.run_sql("select language from registrations") == [("de",)]


async def test_outcome_pages_may_be_framed_only_if_the_form_was_framed(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    framed, hosted = Visitor(service), Visitor(service, framed=False)
    path = await framed.register(event["id"], "ann@example.com")

    for page in (await framed.open(event["id"]), await framed.http.get(path), await framed.open(4711)):
        assert "frame-ancestors *" in page.headers["content-security-policy"]
        assert "x-frame-options" not in page.headers
    for page in (await hosted.http.get(path.removesuffix("/embed")), await hosted.post(event["id"], email="x")):
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert page.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("age", [timedelta(hours=3), timedelta(days=400)])
async def test_an_old_form_is_shown_again_with_what_was_typed(service: Service, age: timedelta) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    visitor = Visitor(service)
    then = (datetime.now(UTC) - age).timestamp()
    old = tokens(service.database.resources.secret).issue(purpose(event["id"]), then)

    page = await visitor.post(event["id"], token=old, email="ann@example.com", name="Ann")
    again: dict[str, Any] = {name: field_value(page, name) for name in ("token", "email", "name")}

    assert page.status_code == 422
    assert "open for too long" in page_text(page)
    assert (again["email"], again["name"]) == ("ann@example.com", "Ann")
    assert (await visitor.post(event["id"], **again)).status_code == 303


async def test_a_form_with_an_error_is_shown_on_the_page_of_the_event(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(title="Life drawing", body="Bring a pencil.")
    visitor = Visitor(service, framed=False)

    page = await visitor.send(event["id"], email="nobody", name="Ann")

    assert page.status_code == 422
    assert "Bring a pencil." in page_text(page)
    assert "This is not an e-mail address." in page_text(page)
    assert (field_value(page, "email"), field_value(page, "name")) == ("nobody", "Ann")
    assert page.headers["cache-control"] == "no-store"
    assert await count(service) == 0


async def test_the_page_after_registering_has_the_code_for_the_entrance_and_no_link_to_the_persons_page(
    service: Service,
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    visitor = Visitor(service)
    path = await visitor.register(event["id"], "ann@example.com")
    before = await visitor.http.get(path)
    await service.settle()

    page = await visitor.http.get(path)

    assert 'class="code"' not in before.text
    code = re.search(r'<strong class="code">([^<]+)</strong>', page.text)
    assert code
    assert code[1] == await code_of(service, event["id"], "ann")
    assert not re.search(r'href="/registrations/(?!\S*outcome)', page.text)
