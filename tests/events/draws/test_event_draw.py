"""The draw of an event: people who register before it opens get a place by lot, and the log proves it."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import msgspec
import psycopg
import pytest

from holdfast.events.draws import drawing
from holdfast.events.draws import sql as draws
from holdfast.events.log import sealing
from holdfast.events.resources import Tx
from holdfast.events.seats import drawn as placing
from tests.events.draws.draw_steps import PEOPLE, ROUND
from tests.events.draws.event_scene import EventDraw, opening_event
from tests.events.draws.rounds import ROUNDS
from tests.helpers.events_service import Service, eventually

PENDING = "registration_pending"


@pytest.fixture
async def draw(service: Service, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventDraw]:
    async with opening_event(service, monkeypatch, capacity=3, waitinglist_capacity=3) as scene:
        yield scene


async def test_a_person_who_registers_before_the_event_opens_gets_the_drawn_place_that_the_log_proves(
    draw: EventDraw,
) -> None:
    assert dt.datetime.fromisoformat(draw.event["opens_at"]) == draw.closes
    await draw.enter(*PEOPLE)
    await draw.enter("ann")  # one entry an address
    assert await draw.statuses(*PEOPLE) == 7 * [PENDING]
    assert await draw.freeze(), "the list was frozen before the log was sealed"
    await draw.freeze_in_log()
    assert not await draw.freeze()
    await draw.enter_late("late")
    await draw.give_places()
    assert await draw.statuses("ann", "late") == [PENDING, PENDING]
    await draw.draw(119)
    await draw.give_places()
    assert await draw.status("ann") == PENDING, "it was drawn before its round"

    await draw.draw()
    await draw.give_places()
    order = [PEOPLE[ticket - 1] for ticket in await draw.order()]
    outcomes = 3 * ["registered"] + 3 * ["waitlisted"] + 2 * ["registration_rejected"]
    assert await draw.statuses(*order, "late") == outcomes
    kinds = await draw.service.run_sql("select kind, count(*) from mails group by kind order by kind")
    assert kinds == [("confirm", 8), ("refused", 2), ("seat", 3), ("waitlisted", 3)]
    again = {"registration": {"event_id": draw.event["id"], "email": f"{order[0]}@example.com"}}
    receipt = (await draw.ada.post("/api/registrations", again)).json()["receipt"]
    entered = dt.datetime.fromisoformat(msgspec.json.decode(receipt["promise"])["at"])
    assert entered < draw.closes, "a receipt says when its person entered, also after the draw"
    listed = (await draw.ada.get("/api/registrations")).json()["data"]
    assert [row["email"].partition("@")[0] for row in listed] == order[:6]
    assert dt.datetime.fromisoformat(listed[2]["received_at"]) == draw.closes + dt.timedelta(microseconds=3)

    await draw.ada.delete(draw.polls[order[1]])
    assert await draw.status(order[3]) == "registered", "the first in the drawn order moves up"
    await draw.change(capacity=4, waitinglist_capacity=4)
    await draw.enter_late("new")
    assert await draw.statuses(order[4], "new") == ["registered", "waitlisted"]
    await draw.draw()
    await draw.give_places()
    await draw.seal()
    assert await draw.faults() == []
    log = await draw.log()
    assert log[0]["draw"]["round"] == ROUND
    places = [entry["number"] for entry in log if entry["kind"] == "place"]
    assert places == [*await draw.order(), 8]
    assert [entry.get("outcome") for entry in log if entry["kind"] == "arrival"] == 8 * [None] + ["waitlisted"]


async def test_the_answer_to_an_entry_says_that_places_are_drawn(draw: EventDraw) -> None:
    """Before, it said that the registration is settled in order of arrival."""

    async def message(event: Mapping[str, Any], email: str) -> str:
        body = {"registration": {"event_id": event["id"], "email": email}}
        answer = await draw.ada.post("/api/registrations", body)
        assert answer.status_code == 202, answer.text
        return answer.json()["message"]

    other = await draw.ada.create_event()

    for _ in range(2):
        assert await message(draw.event, "ann@example.com") == DRAWN
    assert await message(other, "ann@example.com") == (
        "The registration was received. It is settled in order of arrival."
    )
    await draw.service.run_sql("update users set proved_at = null where slug is not null")
    assert (await message(draw.event, "bob@example.com")).startswith(f"{DRAWN} The organizer has not confirmed")


DRAWN = (
    "The registration was received. Places of this event are drawn: an entry from before opens_at gets its place by "
    "lot, and later ones come after all of these."
)


async def test_a_list_that_is_not_frozen_in_time_is_void_until_the_organizer_takes_people_as_they_came(
    draw: EventDraw,
) -> None:
    await draw.enter(*PEOPLE)
    await draw.freeze(90)
    await draw.seal()
    await draw.freeze(91)
    await draw.draw()
    await draw.give_places()
    assert await draw.statuses(*PEOPLE) == 7 * [PENDING]
    await draw.change(422, opens_at=(draw.closes + dt.timedelta(days=1)).isoformat())
    await draw.change(422, public_log=False)
    await draw.change(opens_at=None)
    await draw.enter_late("new")
    assert await draw.statuses("ann", "new") == [PENDING, PENDING], "those who came before have no outcome yet"
    await draw.give_places()
    assert await draw.statuses(*PEOPLE) == 3 * ["registered"] + 3 * ["waitlisted"] + ["registration_rejected"]
    await draw.seal()
    assert await draw.faults() == []
    assert [entry["draw"].get("void") for entry in await draw.log() if "draw" in entry] == [None, True, None]


async def waits_for_sealing(service: Service) -> bool:
    statement = "select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'"
    return bool(await service.run_sql(statement))


async def test_a_list_that_several_processes_find_too_late_becomes_void_once(draw: EventDraw) -> None:
    await draw.enter(*PEOPLE)
    await draw.freeze(91)
    database, round_at = draw.service.database, draw.round_at
    for seconds in (1, 2):
        now = round_at + dt.timedelta(seconds=seconds)
        await database.transact(partial(draws.make_void, subject=draw.subject, id=draw.event["id"], now=now))
    await draw.seal()

    assert [entry["draw"].get("void") for entry in await draw.log() if "draw" in entry] == [None, True]


async def test_a_freeze_that_is_sealed_before_the_round_counts_though_its_transaction_ends_after_it(
    draw: EventDraw,
) -> None:
    await draw.enter(*PEOPLE)
    await draw.seal()
    if await draw.freeze():
        await draw.seal()
        await draw.freeze()
    database = draw.service.database
    is_sealed, may_end = asyncio.Event(), asyncio.Event()

    async def seal_slowly(tx: Tx) -> None:
        assert await sealing._seal_next(tx, after=0, max_entries=1000)  # pyright: ignore[reportPrivateUsage]
        await tx.value("select 1")  # so that all before it has run
        is_sealed.set()
        await may_end.wait()

    sealed = asyncio.create_task(database.transact(seal_slowly))
    await is_sealed.wait()
    drawn = asyncio.create_task(draw.draw())
    await eventually(lambda: waits_for_sealing(draw.service))
    may_end.set()
    await asyncio.gather(sealed, drawn)

    assert await draw.service.run_sql("select draw_void_at, drawn_at is not null from events") == [(None, True)]


async def test_an_event_that_is_cancelled_before_its_draw_rejects_all_entries(draw: EventDraw) -> None:
    await draw.enter(*PEOPLE)
    await draw.freeze_in_log()
    await draw.ada.delete(draw.path)
    await draw.draw()
    await draw.give_places()
    assert await draw.statuses("ann", "gus") == 2 * ["registration_rejected"]
    assert await draw.service.run_sql("select from event_draws") == []
    await draw.seal()
    assert await draw.faults() == []


async def test_tickets_of_people_who_left_stay_in_the_list_and_are_passed_over(draw: EventDraw) -> None:
    await draw.enter(*PEOPLE)
    await draw.ada.delete(draw.polls["bob"])
    await draw.freeze_in_log()
    await draw.ada.delete(draw.polls["eve"])
    await draw.draw()
    people = await draw.service.run_sql("select user_id is null from event_entries order by ticket")
    assert [is_gone for (is_gone,) in people] == [False, True, False, False, True, False, False]
    ((list_size,),) = await draw.service.run_sql("select entries from event_freezes")
    await draw.give_places()
    order = [PEOPLE[ticket - 1] for ticket in await draw.order() if ticket not in {2, 5}]
    assert list_size == 7
    assert await draw.statuses(*order) == 3 * ["registered"] + 2 * ["waitlisted"]
    assert await draw.statuses("bob", "eve") == 2 * ["not_found"]
    await draw.seal()
    assert await draw.faults() == []


async def test_a_drawn_seat_that_has_to_be_paid_is_held_as_long_as_one_of_the_waiting_list(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opening_event(service, monkeypatch, capacity=1, price=1500, pricing_mode="fixed") as draw:
        await draw.enter("ann", "bob")
        await service.run_sql("update registrations set amount_due = 1500")
        await draw.freeze_in_log()
        await draw.draw()
        await draw.give_places()
        held = await service.run_sql(
            "select held_until > now() + interval '1 hour', amount from registrations"
            " join payments using (event_id, user_id, arrival) where status = 'held'"
        )
        kinds = await service.run_sql("select kind from mails order by kind")
    assert held == [(True, 1500)]
    assert kinds == [("confirm",), ("confirm",), ("payment_due",), ("refused",)]


async def test_people_join_their_accounts_during_a_draw_and_keep_their_places(draw: EventDraw) -> None:
    await draw.enter(*PEOPLE)
    await draw.freeze_in_log()
    await draw.enter_late("late")
    find = "select id from users where email in ('cyd@example.com', 'late@example.com') order by email"
    ((giver,), (taker,)) = await draw.service.run_sql(find)
    await draw.service.run_sql("delete from registrations where user_id = %(id)s", id=taker)
    await draw.service.run_sql("select move_registrations(%(giver)s, %(taker)s)", giver=giver, taker=taker)
    await draw.draw()
    await draw.give_places()
    place = (await draw.order()).index(3)
    [(status,)] = await draw.service.run_sql("select status::text from registrations where user_id = %(id)s", id=taker)
    assert status == (3 * ["registered"] + 3 * ["waitlisted"] + ["rejected"])[place]
    await draw.seal()
    assert await draw.faults() == []


async def test_drawn_places_are_given_once_under_kills_and_by_two_processes(
    draw: EventDraw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "DRAW_BATCH_SIZE", 2)
    await draw.enter(*PEOPLE)
    await draw.freeze_in_log()
    database, id, signature = draw.service.database, draw.event["id"], bytes.fromhex(ROUNDS[ROUND])
    now = draw.round_at + dt.timedelta(seconds=1)
    await database.transact(lambda tx: drawing.draw(tx, draw.subject, id, ROUND, signature, now), is_dry_run=True)
    await draw.give_places()
    assert await draw.statuses(*PEOPLE) == 7 * [PENDING]
    drawn = await asyncio.gather(
        *(database.transact(lambda tx: drawing.draw(tx, draw.subject, id, ROUND, signature, now)) for _ in range(2)),
        return_exceptions=True,
    )
    assert drawn.count("drawn") == 1
    assert await database.transact(lambda tx: placing.place_entries(tx, id), is_dry_run=True)
    await database.transact(lambda tx: placing.place_entries(tx, id))
    await draw.change(capacity=4)
    await draw.enter_late("new")
    await asyncio.gather(*(draw.give_places() for _ in range(2)))
    order = [PEOPLE[ticket - 1] for ticket in await draw.order()]
    outcomes = 4 * ["registered"] + 3 * ["waitlisted"] + ["registration_rejected"]
    assert await draw.statuses(*order, "new") == outcomes
    await draw.seal()
    assert await draw.faults() == []


async def test_the_schema_holds_one_draw_and_no_place_before_it(draw: EventDraw) -> None:
    await draw.enter("ann", "bob")
    run = draw.service.run_sql
    await run("update users set proved_at = now() where role = 'user'")
    with pytest.raises(psycopg.errors.CheckViolation):
        await run("update registrations set status = 'registered'")
    await draw.freeze_in_log()
    await draw.draw()
    for statement in (
        "update event_draws set signature = signature",
        "update event_freezes set entries = 3",
        "delete from event_drawn_tickets",
        "delete from event_confirmations",
        "delete from event_draws",
        "insert into event_draws select * from event_draws",
        "insert into event_freezes select * from event_freezes",
    ):
        with pytest.raises(psycopg.errors.IntegrityError):
            await run(statement)
    for change in ("draw_placed = -1", "draw_confirmed = -1", "draw_confirmed = 3"):
        with pytest.raises(psycopg.errors.CheckViolation):
            await run(f"update events set {change}")


async def test_opens_at_lies_in_the_future_before_the_event_and_is_fixed_after_the_first_registration(
    draw: EventDraw,
) -> None:
    later = draw.closes + dt.timedelta(minutes=1)

    async def errors(**fields: object) -> str:
        return str((await draw.change(422, **fields))["errors"])

    assert "future" in await errors(opens_at="2020-01-01T00:00:00Z")
    assert "opens_at" in await errors(opens_at="2099-01-01T00:00:00Z")
    assert "datetime" in await errors(datetime=draw.closes.isoformat())
    assert "public_log" in await errors(public_log=False)
    await draw.change(opens_at=None)
    assert await draw.service.run_sql("select from events where takes_entries") == []
    await draw.change(opens_at=later.isoformat())
    await draw.change(opens_at=draw.closes.isoformat())
    draw.polls["ann"] = await draw.ada.register(draw.event["id"], email="ann@example.com")
    assert "cannot be changed" in await errors(opens_at=None)
    assert "cannot be changed" in await errors(opens_at=later.isoformat())
    await draw.change(opens_at=draw.closes.isoformat(), title="Another title")
    await draw.service.settle()
    await draw.ada.delete(draw.polls["ann"])
    assert "cannot be changed" in await errors(opens_at=None)
    usual = await draw.ada.create_event()
    await draw.ada.register(usual["id"], email="bob@example.com")
    answer = await draw.ada.patch(f"/api/events/{usual['id']}", {"event": {"opens_at": draw.closes.isoformat()}})
    assert answer.status_code == 422, answer.text


async def test_a_draft_is_published_only_while_its_opening_is_to_come(draw: EventDraw) -> None:
    draft = await draw.ada.create_event(published=False, opens_at=draw.closes.isoformat())
    path = f"/api/events/{draft['id']}"
    await draw.service.run_sql("update events set draw_at = now() where not published")
    await draw.freeze(200)
    assert await draw.service.run_sql("select from events where draw_void_at is not null and not published") == []
    refusal = await draw.ada.patch(path, {"event": {"published": True}})
    assert "opens_at" in refusal.json()["errors"]
    changed = await draw.ada.patch(path, {"event": {"published": True, "opens_at": draw.closes.isoformat()}})
    assert changed.status_code == 200, changed.text
