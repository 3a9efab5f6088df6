"""Each type of message is sent when what it names happens, with the data that its schema has."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from holdfast.events.webhooks.messages import MESSAGES
from holdfast.kit.webhooks.model import subject_of
from tests.events.queues.queue_scene import open_queue
from tests.helpers.events_service import Client, Service
from tests.helpers.webhook_programs import OrganizerPrograms

Story = Callable[[Service, Client], Awaitable[object]]


async def settle_one(service: Service, ada: Client, **event_fields: Any) -> tuple[dict[str, Any], str]:
    event = await ada.create_event(**event_fields)
    url = await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    return event, url


async def free_a_seat(service: Service, ada: Client) -> None:
    """The person with the only seat leaves, and the one who waits moves up."""
    event, url = await settle_one(service, ada, capacity=1, waitinglist_capacity=5)
    await ada.register(event["id"], email="ben@example.com")
    await service.settle()
    await ada.delete(url)
    await service.settle()


async def pay(service: Service, ada: Client) -> None:
    """A held seat becomes a registered one, as settling a payment does it."""
    await settle_one(service, ada)
    await service.run_sql("update registrations set status = 'held', held_until = now(), amount_due = 1250")
    await service.run_sql("update registrations set status = 'registered', held_until = null, amount_paid = 1250")


async def move(service: Service, ada: Client) -> None:
    _, url = await settle_one(service, ada, capacity=1, waitinglist_capacity=5)
    answer = await ada.patch(url, {"registration": {"status": "waitlisted"}})
    assert answer.status_code == 200, answer.text


async def remove(service: Service, ada: Client) -> None:
    _, url = await settle_one(service, ada)
    await ada.delete(url)


async def check_in(service: Service, ada: Client) -> None:
    await settle_one(service, ada)
    await service.run_sql(
        "insert into check_in_scans (event_id, id, user_id, device, told_at, is_entry)"
        " select event_id, gen_random_uuid(), user_id, 'Door 1', now(), true from registrations"
    )


async def refund(service: Service, ada: Client) -> None:
    await settle_one(service, ada)
    await service.run_sql(
        "insert into payments (event_id, user_id, arrival, amount, fee, currency, state, session_id, paid_at, ends_at)"
        " select event_id, user_id, arrival, 1250, 0, 'EUR', 'paid', 'cs_1', now(), now() from registrations"
    )
    await service.run_sql(
        "insert into refunds (payment_id, amount, reason) select id, 1250, 'by_organizer' from payments"
    )
    await service.run_sql("update refunds set state = 'made', refund_id = 're_1'")


async def create(service: Service, ada: Client) -> None:
    await ada.create_event()


async def publish(service: Service, ada: Client) -> None:
    event = await ada.create_event(published=False)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"published": True}})


async def edit(service: Service, ada: Client) -> None:
    event = await ada.create_event()
    await ada.patch(f"/api/events/{event['id']}", {"event": {"title": "Life drawing, again"}})


async def cancel(service: Service, ada: Client) -> None:
    event = await ada.create_event()
    await ada.delete(f"/api/events/{event['id']}")


async def fill(service: Service, ada: Client) -> None:
    await settle_one(service, ada, capacity=1)


async def make_room(service: Service, ada: Client) -> None:
    event, _ = await settle_one(service, ada, capacity=1)
    await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 2}})


async def drain(service: Service, ada: Client) -> None:
    """Both visitors of a waiting room are released, one after the other."""
    line = await open_queue(service, ada)
    await line.join("ann", "ben")
    await line.tick(times=2)


async def connect_an_app(service: Service, ada: Client) -> None:
    """A consent is stored, as the page of consent does it."""
    client_id = "https://agent.example/client"
    await service.run_sql(
        "insert into oauth_clients (id, name, redirect_uris, fetched_until)"
        " values (%(id)s, 'Agent', '{https://agent.example/back}', now())",
        id=client_id,
    )
    await service.run_sql(
        "insert into oauth_grants (account_id, tenant_id, client_id, scopes, expires_at)"
        " values (%(ada)s, %(ada)s, %(client_id)s, '{read_events}', now())",
        ada=ada.id,
        client_id=client_id,
    )


async def revoke(service: Service, ada: Client) -> None:
    answer = await ada.post("/api/keys", {"api_key": {"name": "Shop"}})
    assert answer.status_code == 201, answer.text
    await ada.delete(f"/api/keys/{answer.json()['data']['id']}")


STORIES: dict[str, Story] = {
    "registration.settled": settle_one,
    "registration.promoted": free_a_seat,
    "registration.paid": pay,
    "registration.moved": move,
    "registration.removed": remove,
    "registration.checked_in": check_in,
    "registration.refunded": refund,
    "event.created": create,
    "event.changed": edit,
    "event.cancelled": cancel,
    "event.full": fill,
    "event.available": make_room,
    "queue.opened": open_queue,
    "queue.drained": drain,
    "app.connected": connect_an_app,
    "key.revoked": revoke,
}


def test_every_type_of_message_has_a_story() -> None:
    assert [type.name for type in MESSAGES] == [*STORIES]


@pytest.mark.parametrize("name", STORIES)
async def test_a_message_is_sent_when_what_it_names_happens(
    service: Service, programs: OrganizerPrograms, name: str
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=[name])

    await STORIES[name](service, ada)
    await program.deliver()

    [message] = program.receiver.received
    [kind] = [kind for kind in MESSAGES if kind.name == name]
    assert message.type == name
    data = msgspec.convert(message.content["data"], kind.example.__class__)
    assert msgspec.to_builtins(data) == message.content["data"]
    assert message.content["subject"] == subject_of(data)
    assert len(message.body) < 20_000


async def test_a_draft_sends_a_message_when_it_is_published_and_not_before(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    await ada.create_event(published=False, title="Secret")
    await program.deliver()

    await publish(service, ada)
    await program.deliver()

    assert [(message.type, message.content["data"]["title"]) for message in program.receiver.received] == [
        ("event.created", "Life drawing")
    ]


async def test_no_message_names_a_mail_address(service: Service, programs: OrganizerPrograms) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    for story in (free_a_seat, move, remove, check_in):
        await story(service, ada)

    await program.deliver()

    assert not any(b"example.com" in message.body for message in program.receiver.received)


async def test_a_change_that_the_page_of_an_event_does_not_show_sends_no_message(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["event.changed"])
    await settle_one(service, ada)

    assert await program.deliver() == 0


async def test_a_waiting_room_is_told_when_it_takes_visitors_again_and_not_before(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["queue.opened"])
    line = await open_queue(service, ada, active=False, title="Rush")
    await line.change(title="Crowd")
    await program.deliver()
    assert program.receiver.received == []

    await line.change(active=True)
    await line.change(title="Crowd again")
    await service.run_sql("update queues set ends_at = now() - interval '1 minute'")
    await line.change(ends_at=None)
    await program.deliver()

    contents = [message.content for message in program.receiver.received]
    assert [(content["number"], content["data"]["title"]) for content in contents] == [
        (1, "Crowd"),
        (2, "Crowd again"),
    ]


async def test_a_waiting_room_that_is_deleted_was_neither_opened_nor_drained(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    line = await open_queue(service, ada)
    await line.join("ann")
    program = await programs.add(ada)

    await ada.delete(line.path)

    assert await program.deliver() == 0
