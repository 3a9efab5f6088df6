"""Unsealed entries of people who are erased, or whose registrations move to another account."""

from holdfast.events.seats import settlement
from tests.events.log.pending import accept, change, commitment, pending_entries
from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser
from tests.helpers.people import end_event, erase, handle_of, sign_up
from tests.helpers.sealing import seal_once


async def seal_entries(service: Service, event_id: int) -> str:
    """The entries of the log of an event, after all that is pending is sealed."""
    await seal_once(service.database)
    [(entries,)] = await service.run_sql(
        "select entries from log_entries join logs on logs.id = log_id where event_id = %(id)s", id=event_id
    )
    return entries.decode("utf-8", "replace")


async def test_an_erased_person_leaves_the_order_of_arrival_and_no_nonce(service: Service) -> None:
    ada = await service.organizer()
    past, coming, unsettled = await ada.create_event(), await ada.create_event(), await ada.create_event()
    for event in (past, coming):
        await sign_up(service, event, "ann")
    [(nonce,)] = await service.run_sql("select nonce::text from registrations where event_id = %(id)s", id=past["id"])
    handle = await handle_of(service, "ann@example.com")
    [waiting_for_settlement] = await accept(service, unsettled["id"], "ann")
    await end_event(service, past)

    await erase(service)

    assert await service.run_sql("select event_id, log_number, nonce, logged_as from registrations") == [
        (past["id"], 1, None, None)
    ]
    assert (await pending_entries(service, coming["id"]))[-1] == change(1, "registered", "removed", "person")
    assert waiting_for_settlement.nonce
    assert (await pending_entries(service, unsettled["id"]))[-1]["person"] == commitment(
        f"event {unsettled['id']}", handle, waiting_for_settlement.nonce
    )
    # What was not sealed yet says the same as the receipt, and has nothing to open it with.
    arrived = (await pending_entries(service, past["id"]))[1]
    assert (arrived["visitor_ids"], arrived["nonces"]) == ([commitment(f"event {past['id']}", handle, nonce)], [None])
    assert "user_ids" not in arrived
    assert commitment(f"event {past['id']}", handle, nonce) in await seal_entries(service, past["id"])


async def test_a_registration_that_moves_to_another_account_keeps_its_commitment(service: Service) -> None:
    ada = await service.organizer()
    settled, unsettled = await ada.create_event(), await ada.create_event()
    await sign_up(service, settled, "ann")
    handle = await handle_of(service, "ann@example.com")
    [before] = await accept(service, unsettled["id"], "ann")
    studio = await service.organizer("Ann Events", email="ann@example.com", is_proved=False)
    [(own_handle,)] = await service.run_sql("select public_id from users where id = %(id)s", id=studio.id)
    await service.run_sql(
        "insert into registrations (event_id, organizer_id, user_id, arrival, received_at, amount_paid, nonce) "
        "select id, organizer_id, %(user)s, 1000, now(), 0, gen_random_uuid() from events where id = %(event)s",
        user=studio.id,
        event=(await ada.create_event())["id"],
    )
    ann = Browser(service)
    await ann.sign_in("ann@example.com")
    await ann.send("/console/before", whose="mine")

    [again] = await accept(service, unsettled["id"], "ann")
    assert (again.public_id, again.logged_as, again.nonce) == (handle, handle, before.nonce)
    assert await service.run_sql(
        "select logged_as from registrations where user_id = %(id)s order by arrival", id=studio.id
    ) == [
        (handle,),
        (handle,),
        (own_handle,),
    ]
    [(nonce,)] = await service.run_sql(
        "select nonce::text from registrations where event_id = %(id)s", id=settled["id"]
    )
    arrived = (await pending_entries(service, settled["id"]))[1]
    assert arrived["visitor_ids"] == [commitment(f"event {settled['id']}", handle, nonce)]
    await settlement.settle(service.database)
    assert before.nonce
    for event, nonce_of_ann in ((settled, nonce), (unsettled, before.nonce)):
        assert commitment(f"event {event['id']}", handle, nonce_of_ann) in await seal_entries(service, event["id"])
