"""An entry of a draw counts as confirmed if the person has shown that the address is theirs before the list closes."""

import datetime as dt
import html
from collections.abc import AsyncIterator

import pytest

from tests.events.draws.draw_steps import PEOPLE
from tests.events.draws.event_scene import EventDraw, confirm_entries, opening_event, own_page_address, press_confirm
from tests.helpers.event_visitor import Visitor, page_text
from tests.helpers.events_service import Service


@pytest.fixture
async def draw(service: Service, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventDraw]:
    async with opening_event(service, monkeypatch, capacity=3, waitinglist_capacity=2) as scene:
        yield scene


async def show(draw: EventDraw, address: str) -> str:
    return html.unescape(page_text(await Visitor(draw.service).http.get(address)))


async def proved_people(draw: EventDraw) -> list[str]:
    rows = await draw.service.run_sql(
        "select email from users where role = 'user' and proved_at is not null order by 1"
    )
    return [email.partition("@")[0] for (email,) in rows]


async def test_confirmed_entries_get_their_places_before_all_others_as_the_log_proves(draw: EventDraw) -> None:
    await draw.enter(*PEOPLE)
    await confirm_entries(draw, "bob", "dan", "gus")
    await confirm_entries(draw, "bob")  # again changes nothing
    await draw.freeze_in_log()
    await draw.enter_late("late")
    await confirm_entries(draw, "late", "ann")  # too late
    await draw.draw()
    await draw.give_places()
    await draw.seal()

    order = sorted(await draw.order(), key=lambda ticket: ticket not in {2, 4, 7})
    drawn = [PEOPLE[ticket - 1] for ticket in order]
    assert await draw.statuses(*drawn, "late") == (
        3 * ["registered"] + 2 * ["waitlisted"] + 3 * ["registration_rejected"]
    )
    assert set(drawn[:3]) == {"bob", "dan", "gus"}
    log = await draw.log()
    assert [entry["numbers"] for entry in log if entry["kind"] == "confirmations"] == [[2, 4, 7]]
    assert [entry["number"] for entry in log if entry["kind"] == "place"] == [*order, 8]
    assert await draw.faults() == []
    await draw.service.wait_for_notices()
    public = draw.event["public_url"].removeprefix("http://events.test")
    assert "7 entries, 3 confirmed." in await show(draw, public)
    assert "come first, in this order, and then the others" in await show(draw, public)


async def test_a_mail_asks_only_unconfirmed_entries_to_confirm_and_says_until_when(draw: EventDraw) -> None:
    await draw.enter("ann")
    await confirm_entries(draw, "ann")
    other = await draw.ada.create_event(opens_at=draw.closes.isoformat(), title="Another draw")
    await draw.service.run_sql("delete from mails")
    for name in ("ann", "bob"):
        await draw.ada.register(other["id"], email=f"{name}@example.com")
    await draw.ada.register(other["id"], email="cyd@example.com", notify=False)
    await draw.service.settle()

    recipients = await draw.service.run_sql("select recipient from mails where kind = 'confirm'")
    assert recipients == [("bob@example.com",)]


async def test_a_program_that_follows_the_link_or_a_form_of_another_site_confirms_no_entry(
    draw: EventDraw,
) -> None:
    await draw.enter("ann")
    address = await own_page_address(draw, "ann")
    http = Visitor(draw.service).http
    before = await show(draw, address)
    assert "Please confirm your entry. Confirm by" in before
    assert "Confirm my entry" in before
    assert (await http.get(f"{address}/confirm")).status_code == 303
    foreign = await http.post(f"{address}/confirm", headers={"sec-fetch-site": "cross-site"})
    assert foreign.status_code == 403
    assert await proved_people(draw) == []
    assert (await press_confirm(draw, address)).status_code == 303
    assert await proved_people(draw) == ["ann"]
    assert "Your address is confirmed" in await show(draw, address)
    await draw.ada.delete(draw.polls["ann"])
    assert (await press_confirm(draw, address)).status_code == 410


async def test_the_page_of_an_entry_says_that_it_was_not_confirmed_in_time(draw: EventDraw) -> None:
    await draw.enter("ann", "bob")
    await confirm_entries(draw, "ann")
    await draw.freeze_in_log()
    await draw.service.run_sql("update events set draw_at = now() - interval '1 second'")
    assert "Your address is confirmed" in await show(draw, await own_page_address(draw, "ann"))
    await confirm_entries(draw, "bob")
    assert "Your address was not confirmed in time" in await show(draw, await own_page_address(draw, "bob"))


async def test_the_page_after_the_form_does_not_tell_whether_an_address_is_known(draw: EventDraw) -> None:
    visitor = Visitor(draw.service)
    await draw.enter("ann")
    await confirm_entries(draw, "ann")
    another = await draw.ada.create_event(opens_at=draw.closes.isoformat())
    paths = [await visitor.register(another["id"], f"{name}@example.com") for name in ("ann", "bob")]
    await draw.service.settle()
    ann, bob = [await show(draw, path) for path in paths]
    assert "If your address is new here, you get an e-mail now." in ann
    assert ann == bob.replace("number 2 of 2", "number 1 of 2")


async def test_a_person_who_registers_again_gets_the_mail_to_confirm_at_most_once_an_hour(draw: EventDraw) -> None:
    await draw.enter("ann")
    await draw.service.run_sql("update registrations set received_at = now() - interval '1 hour'")
    await draw.service.run_sql("delete from mails")
    for _ in range(2):
        answer = await Visitor(draw.service).send(draw.event["id"], email="ann@example.com")
        assert "This address is already registered." in answer.text
    assert await draw.service.run_sql("select kind, recipient from mails") == [("confirm", "ann@example.com")]


async def test_a_person_who_signed_in_by_mail_before_the_list_closed_is_confirmed(draw: EventDraw) -> None:
    await draw.enter("ann", "bob")
    closed = draw.closes
    prove = "update users set proved_at = %(at)s where email = %(email)s"
    await draw.service.run_sql(prove, at=closed - dt.timedelta(microseconds=1), email="ann@example.com")
    await draw.service.run_sql(prove, at=closed, email="bob@example.com")
    await draw.freeze_in_log()
    assert await draw.service.run_sql("select tickets from event_confirmations") == [([1],)]
    assert await draw.service.run_sql("select draw_confirmed from events") == [(1,)]
