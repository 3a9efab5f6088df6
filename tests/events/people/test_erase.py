"""Erasing a person removes their data everywhere, and keeps the numbers of organizers."""

import pytest

from holdfast.events import ownership
from holdfast.events.people import operations
from holdfast.events.people.model import AccountSelector
from holdfast.kit.contract.problems import Problem
from tests.events.mails.post import tell_changes
from tests.events.pages.own_registration import own_path
from tests.helpers.event_visitor import Visitor, page_state
from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser
from tests.helpers.people import (
    ANN,
    end_event,
    erase,
    handle_of,
    list_registrations,
    mentions,
    read_all_text,
    sign_up,
)


async def test_no_stored_row_or_file_names_an_erased_person(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    past, coming, changed = await ada.create_event(), await ben.create_event(), await ben.create_event()
    await sign_up(service, past, "ann", "bob")
    await sign_up(service, coming, "ann")
    await ben.post(
        "/api/registrations",
        {"registration": {"event_id": changed["id"], "email": "Ann@Example.com"}},
        headers={"Idempotency-Key": "1"},
    )
    await service.settle()
    await service.run_sql("update mails set outcome = 'sent', ended_at = now() where mod(id, 2) = 0")
    await ben.patch(f"/api/events/{changed['id']}", {"event": {"location_name": "Studio 8"}})
    await tell_changes(service)
    await end_event(service, past)
    handle = await handle_of(service, "ann@example.com")
    before = await read_all_text(service)
    assert all(text in before for text in ("ann@example.com", "Ann Example", handle))

    await erase(service)

    after = await read_all_text(service)
    assert mentions(before, "ann")
    assert not mentions(after, "ann")
    assert handle not in after
    assert "bob@example.com" in after


async def test_past_registrations_stay_with_their_counts_and_amounts(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(pricing_mode="fixed", price=1500)
    await ada.register(event["id"], email="ann@example.com", amount_paid=1200)
    await ada.register(event["id"], email="bob@example.com")
    await service.settle()
    await end_event(service, event)
    before = await list_registrations(ada, event)

    done = await erase(service)

    after = await list_registrations(ada, event)
    assert (done.cancelled, done.remaining) == ([], 1)
    assert [
        (registration["status"], registration["amount_paid"], registration["received_at"]) for registration in after
    ] == [(registration["status"], registration["amount_paid"], registration["received_at"]) for registration in before]
    erased, bob = after
    assert erased["email"] == f"erased-{erased['user_id']}@erased.invalid"
    assert erased["name"] is None
    assert erased["user_id"] != before[0]["user_id"]
    assert bob == before[1]
    assert await service.run_sql("select registered_count from events") == [(2,)]
    users = (await ada.get("/api/users")).json()["data"]
    assert [user["email"] for user in users[1:]] == [erased["email"], "bob@example.com"]


async def test_registrations_for_events_to_come_are_cancelled_and_the_next_in_line_move_up(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    seats = [await organizer.create_event(capacity=1, waitinglist_capacity=5) for organizer in (ada, ben)]
    for event in seats:
        await sign_up(service, event, "ann", "bob", "cal")
    queued = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, queued, "bob", "ann", "cal")
    pending = await ada.create_event()
    await Visitor(service).register(pending["id"], "ann@example.com")

    done = await erase(service)

    assert [(registration.event_id, registration.status) for registration in done.cancelled] == [
        *((event["id"], "registered") for event in seats),
        (queued["id"], "waitlisted"),
        (pending["id"], "pending"),
    ]
    for organizer, event in zip((ada, ben), seats, strict=True):
        assert [
            (registration["email"], registration["status"])
            for registration in await list_registrations(organizer, event)
        ] == [
            ("bob@example.com", "registered"),
            ("cal@example.com", "waitlisted"),
        ]
    assert [registration["email"][:3] for registration in await list_registrations(ada, queued)] == ["bob", "cal"]
    assert await service.settle() == 0
    promoted = await service.run_sql("select recipient from mails where kind = 'promoted'")
    assert promoted == [("bob@example.com",)] * 2


async def test_a_freed_seat_lowers_a_moving_price_as_any_cancellation_does(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(pricing_mode="dynamic", price=1000, min_price=1000, max_price=9000, capacity=2)
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    full = (await ada.get(f"/api/events/{event['id']}")).json()["data"]["current_price"]

    await erase(service)

    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"]["current_price"] < full
    history = (await ada.get(f"/api/events/{event['id']}/price_history")).json()["data"]
    assert [change["reason"] for change in history] == ["registration", "registration", "init"]


async def test_an_erased_person_gets_no_mail_about_the_kept_registration(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann")
    await end_event(service, event)
    await erase(service)
    [registration] = await list_registrations(ada, event)
    path = f"/api/registrations/{event['id']}/{registration['user_id']}"

    soon = (await ada.create_event())["datetime"]
    assert (await ada.patch(f"/api/events/{event['id']}", {"event": {"datetime": soon}})).status_code == 200
    await tell_changes(service)
    assert (await ada.patch(path, {"registration": {"status": "waitlisted"}})).status_code == 200
    assert (await ada.patch(path, {"registration": {"status": "registered"}})).status_code == 200
    assert (await ada.delete(path)).status_code == 204

    assert await service.run_sql("select from mails") == []


async def test_the_account_of_an_erased_person_can_be_registered_for_nothing(service: Service) -> None:
    ada = await service.organizer()
    past, other = await ada.create_event(), await ada.create_event()
    await sign_up(service, past, "ann")
    before = await handle_of(service, "ann@example.com")
    await end_event(service, past)
    await erase(service)
    [registration] = await list_registrations(ada, past)

    for handle in (before, registration["user_id"]):
        body = {"registration": {"event_id": other["id"], "user_id": handle}}
        refusal = await ada.post("/api/registrations", body)
        assert (refusal.status_code, refusal.json()["code"]) == (422, "validation_failed")
    await ada.register(other["id"], email=registration["email"])
    await service.settle()

    [somebody] = await list_registrations(ada, other)
    assert somebody["email"] == registration["email"]
    assert somebody["user_id"] != registration["user_id"]


async def test_a_registration_after_an_erasure_makes_a_new_account(service: Service) -> None:
    ada = await service.organizer()
    past, coming = await ada.create_event(), await ada.create_event()
    await sign_up(service, past, "ann")
    await end_event(service, past)
    await erase(service)

    await sign_up(service, coming, "ann")

    [again] = await list_registrations(ada, coming)
    [registration] = await list_registrations(ada, past)
    assert (again["email"], again["name"]) == ("ann@example.com", "Ann Example")
    assert again["user_id"] != registration["user_id"]
    assert len(await service.run_sql("select from users where role = 'user'")) == 2


async def test_old_links_of_an_erased_person_are_answered_like_deleted_ones(service: Service) -> None:
    ada = await service.organizer()
    past, coming = await ada.create_event(), await ada.create_event()
    addresses: list[str] = []
    for event in (past, coming):
        await sign_up(service, event, "ann")
        addresses.append(await own_path(service, event["id"], "ann@example.com"))
    handle = await handle_of(service, "ann@example.com")
    await end_event(service, past)

    await erase(service)

    http = Visitor(service).http
    for address in addresses:
        for path in ("", "/unsubscribe"):
            page = await http.get(address + path)
            assert (page.status_code, page_state(page)) == (410, "gone")
        assert (await http.post(f"{address}/unsubscribe")).status_code == 200
    for event in (past, coming):
        answer = await ada.get(f"/api/registrations/{event['id']}/{handle}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_the_link_of_a_form_shows_nothing_of_an_erased_person(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    path = await Visitor(service).register(event["id"], "ann@example.com")
    await service.settle()

    await erase(service)

    page = await Visitor(service).http.get(path)
    assert (page.status_code, page_state(page)) == (410, "gone")


async def test_an_address_with_mails_and_no_account_is_erased_too(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    await ada.delete(f"/api/registrations/{event['id']}/{await handle_of(service, 'ann@example.com')}")
    await service.run_sql("delete from users where email = 'ann@example.com'")

    done = await erase(service)

    assert (done.account_id, done.remaining, done.mails) == (None, 0, 2)
    assert not mentions(await read_all_text(service), "ann")


async def test_a_person_who_is_erased_is_signed_out(service: Service) -> None:
    browser, other = Browser(service), Browser(service)
    await browser.sign_in("ann@example.com")
    await other.sign_in("bob@example.com")
    later = await Browser(service).ask("ann@example.com")

    await erase(service)

    assert not await browser.is_signed_in()
    assert await other.is_signed_in()
    assert "too old" in (await browser.get(later)).text
    assert "ann@" not in await read_all_text(service)


@pytest.mark.parametrize("selector", [ANN, AccountSelector(id=2), AccountSelector(public_id="aaaaaaaa")])
async def test_an_erasure_of_an_unknown_person_is_answered_with_404(
    service: Service, selector: AccountSelector
) -> None:
    await service.organizer()

    with pytest.raises(Problem) as refusal:
        await erase(service, selector)

    assert refusal.value.status == 404


async def test_a_second_erasure_is_answered_with_404(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, "ann")
    done = await erase(service)

    for selector in (ANN, AccountSelector(id=done.account_id)):
        with pytest.raises(Problem) as refusal:
            await erase(service, selector)
        assert refusal.value.status == 404


async def test_an_organizer_cannot_be_erased_and_reads_what_to_do_instead(service: Service) -> None:
    ada, ben = await service.organizer(email="ann@example.com"), await service.organizer()
    event = await ben.create_event()
    await sign_up(service, event, "ann")

    for work in (ownership.erase, operations.preview, operations.export):
        with pytest.raises(Problem) as refusal:
            await service.database.transact(lambda tx, work=work: work(tx, ANN))
        assert refusal.value.status == 403
        assert f"the organizer {ada.slug}" in refusal.value.message
        assert "cancel its events" in refusal.value.message

    assert [registration["email"] for registration in await list_registrations(ben, event)] == ["ann@example.com"]


async def test_a_preview_of_an_erasure_says_what_is_done_and_changes_nothing(service: Service) -> None:
    ada = await service.organizer()
    past, coming, cancelled = await ada.create_event(), await ada.create_event(), await ada.create_event()
    for event in (past, coming, cancelled):
        await sign_up(service, event, "ann")
    await end_event(service, past)
    await ada.delete(f"/api/events/{cancelled['id']}")
    before = await read_all_text(service)

    ahead = await service.database.read(lambda reader: operations.preview(reader, ANN))

    assert await read_all_text(service) == before
    assert ([registration.event_id for registration in ahead.cancelled], ahead.remaining, ahead.mails) == (
        [coming["id"]],
        2,
        3,
    )
    assert await erase(service) == ahead
