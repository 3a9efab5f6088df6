"""Changing several registrations of an event at once: the question, the change, and people left out with a reason."""

import asyncio
import re
from typing import Any

from tests.events.console.event_scene import confirm_bulk_change, foreign_event
from tests.events.console.organizing import sign_in_organizer
from tests.events.console.paid_scene import pay_for_seat
from tests.helpers.events_service import Client, Service, eventually
from tests.helpers.form_browser import main_text, token
from tests.helpers.payments import PaymentScene
from tests.helpers.people import handle_of, list_registrations, sign_up


async def boxes(service: Service, *names: str) -> str:
    """The query of the boxes of people."""
    return "&".join([f"p-{await handle_of(service, f'{name}@example.com')}=1" for name in names])


async def states(ada: Client, event: dict[str, Any]) -> dict[str, str]:
    return {row["email"].partition("@")[0]: row["status"] for row in await list_registrations(ada, event)}


async def test_several_people_are_moved_and_none_gets_the_seat_of_another_of_them(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=2, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob", "cleo", "dan")
    await service.run_sql("delete from mails")
    path = f"/console/events/{event['id']}/several-registrations"

    question = await browser.get(f"{path}?do=wait&{await boxes(service, 'ann', 'bob', 'cleo')}")
    untouched = await states(ada, event)
    answer = await confirm_bulk_change(browser, question)

    text = main_text(question)
    assert "ann@example.com Ann Example Seat Loses the seat, and waits until you give one again · is told by" in text
    assert "cleo@example.com Cleo Example Waiting list, place 1 Nothing" in text
    assert untouched == {"ann": "registered", "bob": "registered", "cleo": "waitlisted", "dan": "waitlisted"}
    assert "Done with 2 of 3 people" in main_text(answer)
    assert "cleo@example.com The person is on the waiting list." in main_text(answer)
    # The seats go to those who wait; ann and bob stay on the list.
    assert await states(ada, event) == {
        "ann": "waitlisted",
        "bob": "waitlisted",
        "cleo": "registered",
        "dan": "registered",
    }
    mails = await service.run_sql("select split_part(recipient, '@', 1), kind from mails order by recipient")
    assert mails == [("ann", "waitlisted"), ("bob", "waitlisted"), ("cleo", "promoted"), ("dan", "promoted")]


async def test_several_people_are_removed_without_promoting_one_of_them_first(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob", "cleo")
    await service.run_sql("delete from mails")
    path = f"/console/events/{event['id']}/several-registrations"

    question = await browser.get(f"{path}?do=remove&{await boxes(service, 'ann', 'bob')}")
    answer = await confirm_bulk_change(browser, question)

    assert answer.status_code == 303
    assert "2 registrations are removed." in main_text(await browser.get(answer.headers["location"]))
    assert await states(ada, event) == {"cleo": "registered"}
    mails = await service.run_sql("select split_part(recipient, '@', 1), kind from mails order by recipient")
    assert mails == [("ann", "removed"), ("bob", "removed"), ("cleo", "promoted")]


async def test_several_registrations_are_checked_in_by_one_form_once(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    event = await ada.create_event(capacity=2, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob", "cleo")
    path = f"/console/events/{event['id']}/several-registrations"

    first = await confirm_bulk_change(browser, await browser.get(f"{path}?do=in&{await boxes(service, 'ann')}"))
    again = await confirm_bulk_change(
        browser, await browser.get(f"{path}?do=in&{await boxes(service, 'ann', 'bob', 'cleo')}")
    )

    assert first.status_code == 303
    assert "Done with 1 of 3 people" in main_text(again)
    assert "ann@example.com The person is in already." in main_text(again)
    assert "cleo@example.com The person is on the waiting list." in main_text(again)
    rows = await service.run_sql(
        "select split_part(email, '@', 1), device, is_entry from check_in_scans join users on users.id = user_id"
    )
    assert sorted(rows) == [("ann", "By hand", True), ("bob", "By hand", True)]


async def test_a_bulk_change_of_foreign_or_no_people_is_refused(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    mine, event = await ada.create_event(), await foreign_event(service)
    await sign_up(service, event, "ann")
    [path, foreign] = [f"/console/events/{one['id']}/several-registrations" for one in (mine, event)]
    handle = await handle_of(service, "ann@example.com")
    form = token(await browser.get("/console/agents"))

    for action in ("in", "wait", "remove"):
        fields = {"token": form, "people": handle, "do": action}
        assert (await browser.get(f"{foreign}?do={action}&p-{handle}=1")).status_code == 403
        assert (await browser.http.post(foreign, data=fields)).status_code == 403
        assert "None of these" in main_text(await browser.get(f"{path}?do={action}&p-{handle}=1"))
        nobody = await browser.get(f"{path}?do={action}")
        assert nobody.headers["location"].endswith("?done=none_chosen")
    assert (await browser.get(f"{path}?do=else&p-{handle}=1")).status_code == 400
    assert await service.run_sql("select status::text from registrations") == [("registered",)]


async def test_a_bulk_change_leaves_an_event_that_was_handed_over_meanwhile(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    bob = await service.organizer()
    event = await ada.create_event(waitinglist_capacity=5)
    await sign_up(service, event, "ann")
    path = f"/console/events/{event['id']}/several-registrations"
    form = token(await browser.get("/console/agents"))
    people = await handle_of(service, "ann@example.com")

    for action in ("in", "wait", "remove"):
        await service.run_sql("update events set organizer_id = %(id)s", id=ada.id)
        async with service.database.transaction() as tx:
            await tx.tuples("update events set organizer_id = %(id)s returning 1", {"id": bob.id})
            request = browser.http.post(path, data={"token": form, "people": people, "do": action})
            meanwhile = asyncio.create_task(request)
            await eventually(lambda: service.run_sql("select from pg_locks where not granted"))
        assert (await meanwhile).status_code == 403

    assert await service.run_sql("select status::text from registrations") == [("registered",)]
    assert await service.run_sql("select from check_in_scans") == []


async def test_a_bulk_removal_names_people_who_paid_by_card_and_refunds_them(payment_scene: PaymentScene) -> None:
    browser, ann, person = await pay_for_seat(payment_scene)
    await payment_scene.service.run_sql("update events set capacity = 2")
    await payment_scene.register(ann.event_id, "bob@example.com")
    path = f"/console/events/{ann.event_id}/several-registrations"
    handles = person.split("/")[-2], await handle_of(payment_scene.service, "bob@example.com")

    unpaid = main_text(await browser.get(f"/console/events/{ann.event_id}/registrations?state=unpaid"))
    question = await browser.get(f"{path}?do=remove&p-{handles[0]}=1&p-{handles[1]}=1")
    await confirm_bulk_change(browser, question)

    assert ("bob@example.com" in unpaid, "ann@example.com" in unpaid) == (True, False)
    [about_bob, about_ann] = re.findall(r"Loses the seat.*?mail", main_text(question))
    assert "what was paid by card and has not gone back yet goes back" in about_ann
    assert "what was paid by card and has not gone back yet goes back" not in about_bob
    assert await payment_scene.service.run_sql("select amount, reason from refunds") == [(1200, "seat_lost")]


async def test_a_bulk_removal_promises_no_refund_to_people_who_are_already_refunded(
    payment_scene: PaymentScene,
) -> None:
    browser, ann, person = await pay_for_seat(payment_scene)
    handle = person.split("/")[-2]
    path = f"/console/events/{ann.event_id}/several-registrations"
    await confirm_bulk_change(browser, await browser.get(f"{path}?do=wait&p-{handle}=1"))

    question = main_text(await browser.get(f"{path}?do=remove&p-{handle}=1"))

    assert "The registration is deleted · is told by e-mail" in question
    assert await payment_scene.service.run_sql("select amount from refunds") == [(1200,)]
