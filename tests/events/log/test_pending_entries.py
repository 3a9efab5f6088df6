"""The pending log entries of an event: each transaction writes its changes in order, and nothing else."""

import asyncio
from typing import Any

import pytest

from holdfast.events.seats import intake, settlement
from holdfast.events.settings import Settings
from tests.events.check_in.check_in_scene import begun_event, give_seats
from tests.events.log.pending import accept, change, commitment, moment, pending_entries, take_pending_entries
from tests.helpers.events_service import Client, Service, running_events

OPEN = {"kind": "open", "of": "event", "seated": 0, "waiting": 0, "first_number": 1}


async def numbers(service: Service, event_id: int) -> list[tuple[str, int | None]]:
    rows = await service.run_sql(
        """
        select split_part(email, '@', 1), log_number from registrations join users on users.id = user_id
         where event_id = %(id)s order by received_at, arrival
        """,
        id=event_id,
    )
    return [(name, number) for name, number in rows]


async def test_settlement_numbers_arrivals_and_writes_one_row_for_each_event_and_batch(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    first, second = await ada.create_event(capacity=2, waitinglist_capacity=1), await ben.create_event()
    results = [
        (await accept(service, event["id"], name))[0]
        for name in ("ann", "bob", "cal", "dee")
        for event in (first, second)
    ]

    assert await settlement.settle(service.database, batch_size=3) == 8

    for event, those in ((first, results[0::2]), (second, results[1::2])):
        assert await numbers(service, event["id"]) == [("ann", 1), ("bob", 2), ("cal", 3), ("dee", 4)]
        opened, *batches = await pending_entries(service, event["id"])
        assert (opened["kind"], opened["first_number"]) == ("open", 1)
        assert [batch["kind"] for batch in batches] == ["arrivals"] * 3
        assert [batch["first_number"] for batch in batches] in ([1, 3, 4], [1, 2, 4])
        assert [at for batch in batches for at in batch["received_at"]] == [result.received_at for result in those]
        assert [nonce for batch in batches for nonce in batch["nonces"]] == [result.nonce for result in those]
        assert all(result.nonce for result in those)
        # Only the last batch had room for more than there was.
        assert ["cut" in batch for batch in batches] == [False, False, True]
        assert batches[-1]["cut"] > batches[-1]["received_at"][-1]
    assert [
        outcome for batch in (await pending_entries(service, first["id"]))[1:] for outcome in batch["outcomes"]
    ] == [
        "registered",
        "registered",
        "waitlisted",
        "rejected",
    ]


async def test_numbers_go_on_behind_a_registration_that_is_locked(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await accept(service, event["id"], "ann", "bob", "cal")

    async with service.database.transaction() as tx:
        await tx.tuples(
            "select from registrations where arrival = (select min(arrival) + 1 from registrations) for update"
        )
        assert await settlement.settle(service.database) == 1
        assert await numbers(service, event["id"]) == [("ann", 1), ("bob", None), ("cal", None)]
    await settlement.settle(service.database)

    batches = (await pending_entries(service, event["id"]))[1:]
    assert [(batch["first_number"], len(batch["nonces"]), "cut" in batch) for batch in batches] == [
        (1, 1, False),
        (2, 2, True),
    ]


async def test_an_accepted_registration_returns_the_data_of_its_receipt(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    unlogged = await ada.create_event(public_log=False)
    [ann, repeated, bob] = await accept(service, event["id"], "ann", "ann", "bob")
    [again] = await accept(service, event["id"], "ann")
    await service.settle()
    [settled] = await accept(service, event["id"], "ann")
    stored = await service.run_sql("select received_at, nonce::text from registrations order by arrival")

    assert [(ann.received_at, ann.nonce), (bob.received_at, bob.nonce)] == stored
    assert ann.nonce != bob.nonce
    for result in (repeated, again, settled):
        assert (result.received_at, result.nonce, result.logged_as) == (ann.received_at, ann.nonce, None)

    # A person who was rejected arrives again, with another nonce and later with another number.
    await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 2}})
    [renewed] = await accept(service, event["id"], "bob")
    assert renewed.received_at
    assert bob.received_at
    assert renewed.received_at > bob.received_at
    assert renewed.nonce not in (None, bob.nonce)
    await service.settle()
    assert await numbers(service, event["id"]) == [("ann", 1), ("bob", 3)]

    [in_no_log] = await accept(service, unlogged["id"], "ann")
    await service.settle()
    assert in_no_log.received_at
    assert in_no_log.nonce is None
    assert (await accept(service, unlogged["id"], "ann"))[0].nonce is None
    assert await pending_entries(service, unlogged["id"]) == []
    assert await numbers(service, unlogged["id"]) == [("ann", None)]


async def test_a_change_of_a_registration_is_logged_with_who_made_it(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=5)
    ann, bob, cal, _dan = [
        await ada.register(event["id"], email=f"{name}@example.com") for name in ("ann", "bob", "cal", "dan")
    ]
    await service.settle()
    await take_pending_entries(service, event["id"])

    await ada.patch(ann, {"registration": {"amount_paid": 5}})
    assert await take_pending_entries(service, event["id"]) == []
    await ada.patch(ann, {"registration": {"status": "waitlisted"}})
    assert await take_pending_entries(service, event["id"]) == [
        change(1, "registered", "waitlisted", "organizer", reason="by_organizer"),
        change(3, "waitlisted", "registered", "service"),
    ]
    await ada.delete(bob)
    assert await take_pending_entries(service, event["id"]) == [
        change(2, "registered", "removed", "organizer"),
        change(4, "waitlisted", "registered", "service"),
    ]
    await ada.delete(cal)
    await ada.patch(ann, {"registration": {"status": "registered"}})
    assert await take_pending_entries(service, event["id"]) == [
        change(3, "registered", "removed", "organizer"),
        change(1, "waitlisted", "registered", "organizer"),
    ]


async def test_a_registration_that_is_withdrawn_before_it_is_settled_is_named_by_its_commitment(
    service: Service,
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [ann] = await accept(service, event["id"], "ann")
    await take_pending_entries(service, event["id"])

    assert ann.public_id
    assert ann.nonce
    assert ann.received_at
    await ada.delete(f"/api/registrations/{event['id']}/{ann.public_id}")

    assert await take_pending_entries(service, event["id"]) == [
        {
            "kind": "change",
            "person": commitment(f"event {event['id']}", ann.public_id, ann.nonce),
            "received_at": moment(ann.received_at),
            "from": "pending",
            "to": "removed",
            "by": "organizer",
        }
    ]
    assert await service.settle() == 0


async def test_the_log_frees_the_seats_of_no_shows_before_it_gives_them_away(service: Service) -> None:
    gate = await begun_event(service, 2, 4)
    await take_pending_entries(service, gate.event_id)

    await give_seats(gate)

    assert await take_pending_entries(service, gate.event_id) == [
        change(1, "registered", "rejected", "organizer", reason="no_show"),
        change(2, "registered", "rejected", "organizer", reason="no_show"),
        change(3, "waitlisted", "registered", "organizer"),
        change(4, "waitlisted", "registered", "organizer"),
    ]


async def test_a_log_opens_when_its_event_is_published_and_has_each_change_of_its_places(service: Service) -> None:
    ada = await service.organizer()
    draft = await ada.create_event(published=False, capacity=3)
    path = f"/api/events/{draft['id']}"

    async def edit(**fields: Any) -> list[dict[str, Any]]:
        assert (await ada.patch(path, {"event": fields})).status_code == 200
        return await take_pending_entries(service, draft["id"])

    assert await edit(capacity=4) == []
    assert await edit(published=True, capacity=5) == [{**OPEN, "capacity": 5, "waiting_places": 0}]
    assert await edit(title="Another") == []
    assert await edit(waitinglist_capacity=2) == [
        {"kind": "change", "capacity": 5, "waiting_places": 2, "by": "organizer"}
    ]
    await ada.delete(path)
    assert await take_pending_entries(service, draft["id"]) == [
        {"kind": "change", "event": "cancelled", "by": "organizer"}
    ]


async def test_a_log_that_is_switched_off_keeps_its_promises_and_is_continued_by_the_next(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=3, waitinglist_capacity=1)
    path = f"/api/events/{event['id']}"
    await accept(service, event["id"], "ann", "bob")

    answer = await ada.patch(path, {"event": {"public_log": False}})

    assert answer.json()["data"]["public_log"] is False
    assert answer.json()["data"]["registration_count"] == 2
    _, arrived, closed = await take_pending_entries(service, event["id"])
    assert (arrived["outcomes"], "cut" in arrived) == (["registered", "registered"], True)
    assert closed == {"kind": "close", "reason": "switched_off"}
    [cal] = await accept(service, event["id"], "cal")
    await service.settle()
    assert cal.nonce is None
    assert await take_pending_entries(service, event["id"]) == []

    await ada.patch(path, {"event": {"public_log": True}})
    await accept(service, event["id"], "dan")
    await service.settle()

    opened, arrived = await take_pending_entries(service, event["id"])
    assert opened == {**OPEN, "capacity": 3, "waiting_places": 1, "seated": 3, "first_number": 3}
    assert (arrived["first_number"], arrived["outcomes"]) == (3, ["waitlisted"])
    assert await numbers(service, event["id"]) == [("ann", 1), ("bob", 2), ("cal", None), ("dan", 3)]
    assert await service.run_sql(
        "select generation, arrivals, closed_at is null from logs where event_id = %(id)s order by 1", id=event["id"]
    ) == [(1, 2, False), (2, 3, True)]


async def test_a_log_is_not_closed_under_a_registration_that_is_being_stored(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    request = intake.IntakeRequest(ada.id, event["id"], email="ann@example.com")

    async with service.database.transaction() as tx:
        [ann] = await intake.store_pending(tx, [request])
        closing = asyncio.create_task(ada.patch(f"/api/events/{event['id']}", {"event": {"public_log": False}}))
        await asyncio.sleep(0)
    assert (await closing).status_code == 200

    assert ann.nonce
    assert [entry["kind"] for entry in await pending_entries(service, event["id"])] == ["open", "arrivals", "close"]


async def test_an_operator_who_switches_logs_off_keeps_those_there_are(settings: Settings) -> None:
    async with running_events(settings) as service:
        ada = await service.organizer()
        event = await ada.create_event()
    async with running_events(settings.model_copy(update={"public_logs": False})) as service:
        client = Client(service.http, ada.key, ada.id)
        other, queue = await client.create_event(public_log=True), await client.create_queue()
        changed = await client.patch(f"/api/events/{other['id']}", {"event": {"public_log": True}})
        earlier = (await client.get(f"/api/events/{event['id']}")).json()["data"]

        assert [earlier["public_log"], other["public_log"], queue["public_log"]] == [True, False, False]
        assert changed.json()["data"]["public_log"] is False
        assert await service.run_sql("select event_id from logs where closed_at is null") == [(event["id"],)]


@pytest.mark.parametrize("settled_by_older", [False, True])
async def test_a_registration_stored_by_an_older_version_is_logged_as_far_as_it_is_known(
    service: Service, *, settled_by_older: bool
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [ann] = await accept(service, event["id"], "ann")
    await service.run_sql("update registrations set nonce = null")
    await take_pending_entries(service, event["id"])

    if settled_by_older:
        await service.run_sql("update registrations set status = 'registered', settled_at = now()")
        assert ann.received_at
        assert await take_pending_entries(service, event["id"]) == [
            {
                "kind": "change",
                "received_at": moment(ann.received_at),
                "from": "pending",
                "to": "registered",
                "by": "service",
            }
        ]
        assert await service.settle() == 0
    else:
        await service.settle()
        [arrived] = await take_pending_entries(service, event["id"])
        assert (arrived["first_number"], arrived["nonces"]) == (1, [None])
        assert (await accept(service, event["id"], "ann"))[0].nonce is None
