"""What happens to an organizer's events is sent to the organizer's programs, signed, at least once, and in order."""

import asyncio

import pytest
from cryptography.exceptions import InvalidSignature
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.events.webhooks.verifying import verify_v1a
from tests.helpers.events_service import Service
from tests.helpers.webhook_programs import OrganizerPrograms, change
from tests.helpers.webhook_receiver import ReceiverAnswer, deliver


async def test_a_program_gets_a_signed_message_when_a_registration_is_settled(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["registration.settled"])
    event = await ada.create_event(capacity=1)
    url = await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    assert await program.deliver() == 1

    [message] = program.receiver.received
    verified = Webhook(program.endpoint["secret"]).verify(message.body, message.headers)
    assert verified["type"] == "registration.settled"
    assert verified["subject"] == f"event {event['id']}"
    assert verified["number"] == 1
    assert verified["data"] == {
        "event_id": event["id"],
        "user_id": url.rpartition("/")[2],
        "status": "registered",
        "was": "pending",
        "reason": None,
        "amount_paid": 0,
    }


async def test_a_message_of_the_scheme_v1a_is_verified_with_the_public_key(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, signature="v1a")
    await ada.create_event()

    await program.deliver()

    [message] = program.receiver.received
    assert "secret" not in program.endpoint
    verify_v1a(program.endpoint["public_key"], message.headers, message.body)
    with pytest.raises(InvalidSignature):
        verify_v1a(program.endpoint["public_key"], message.headers, message.body + b" ")


@pytest.mark.parametrize("fault", ["body", "time", "id", "secret"])
async def test_a_message_that_was_altered_on_its_way_is_refused_by_the_library_of_the_specification(
    service: Service, programs: OrganizerPrograms, fault: str
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada)
    await ada.create_event()
    await program.deliver()
    [message] = program.receiver.received
    secret, headers, body = program.endpoint["secret"], {**message.headers}, message.body
    Webhook(secret).verify(body, headers)

    match fault:
        case "body":
            body = body.replace(b"Life drawing", b"Life drawinG")
        case "time":
            headers["webhook-timestamp"] = str(int(headers["webhook-timestamp"]) - 3600)
        case "id":
            headers["webhook-id"] = "msg_999"
        case _:
            secret = (await programs.add(ada)).endpoint["secret"]

    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, headers)


async def test_a_program_gets_only_the_types_that_it_chose(service: Service, programs: OrganizerPrograms) -> None:
    ada = await service.organizer()
    settled = await programs.add(ada, types=["registration.settled"])
    everything = await programs.add(ada)
    event = await ada.create_event(capacity=1)
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    await deliver(service.database)

    assert settled.receiver.types == ["registration.settled"]
    assert sorted(everything.receiver.types) == ["event.created", "event.full", "registration.settled"]


async def test_a_program_gets_nothing_of_another_organizer(service: Service, programs: OrganizerPrograms) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    program = await programs.add(ada)
    event = await ben.create_event()
    await ben.register(event["id"], email="ann@example.com")
    await service.settle()

    assert await deliver(service.database) == 0
    assert program.receiver.received == []


async def test_an_organizer_without_a_program_stores_no_messages(service: Service, programs: OrganizerPrograms) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    await programs.add(ada)
    event = await ben.create_event()
    await ben.register(event["id"], email="ann@example.com")
    await service.settle()

    assert await service.run_sql("select count(*) from webhook_messages") == [(0,)]


async def test_messages_about_one_event_are_numbered_without_gaps(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["registration.settled", "registration.removed"])
    events = [await ada.create_event(capacity=50) for _ in range(2)]
    for number in range(3):
        urls = [await ada.register(event["id"], email=f"ann{number}@example.com") for event in events]
        await service.settle()
        await ada.delete(urls[0])

    await program.deliver()

    numbers: dict[str, list[int]] = {}
    for message in program.receiver.received:
        numbers.setdefault(message.content["subject"], []).append(message.content["number"])
    assert {subject: sorted(every) for subject, every in numbers.items()} == {
        f"event {events[0]['id']}": [1, 2, 3, 4, 5, 6],
        f"event {events[1]['id']}": [1, 2, 3],
    }


async def test_a_message_is_sent_once_if_two_processes_fan_out_and_send(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["registration.settled"])
    event = await ada.create_event(capacity=100)
    for number in range(40):
        await ada.register(event["id"], email=f"ann{number}@example.com")
    await service.settle()

    await asyncio.gather(*(deliver(service.database) for _ in range(4)))
    await deliver(service.database)

    assert len(program.receiver.received) == 40
    assert sorted(message.content["number"] for message in program.receiver.received) == [*range(1, 41)]


async def test_many_messages_go_over_few_connections(service: Service, programs: OrganizerPrograms) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["registration.settled"])
    event = await ada.create_event(capacity=200)
    for number in range(100):
        await ada.register(event["id"], email=f"ann{number}@example.com")
    await service.settle()

    await program.deliver()

    assert len(program.receiver.received) == 100
    assert program.receiver.connections <= 8


async def test_in_strict_order_a_message_waits_until_the_one_before_it_is_delivered(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, ordered=True, types=["registration.settled"])
    first, second = [await ada.create_event() for _ in range(2)]
    for number in range(3):
        await ada.register(first["id"], email=f"ann{number}@example.com")
    await ada.register(second["id"], email="ann@example.com")
    await service.settle()
    failures = [500, 500]

    program.receiver.answer = lambda message: ReceiverAnswer(
        failures.pop() if failures and message.content["subject"] == f"event {first['id']}" else 204
    )
    for _ in range(12):
        await program.deliver()
        await program.pass_pauses()

    numbers = [
        message.content["number"]
        for message in program.receiver.received
        if message.content["subject"] == f"event {first['id']}"
    ]
    assert numbers == [1, 1, 1, 2, 3]
    assert {delivery["status"] for delivery in await program.deliveries()} == {"delivered"}


async def test_messages_that_waited_for_their_turn_are_sent_when_the_order_is_given_up(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, ordered=True, types=["registration.settled"])
    event = await ada.create_event()
    for number in range(3):
        await ada.register(event["id"], email=f"ann{number}@example.com")
    await service.settle()
    program.receiver.answer = lambda message: ReceiverAnswer(500 if message.content["number"] == 1 else 204)
    await program.deliver()

    await change(ada, program.path, ordered=False)
    await program.deliver()

    assert [delivery["status"] for delivery in await program.deliveries()] == ["waiting", "delivered", "delivered"]
