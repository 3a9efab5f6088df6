"""What happens to an organizer's events is sent to the organizer's programs, signed, at least once, and in order."""

from standardwebhooks.webhooks import Webhook

from tests.events.webhooks.programs import Programs
from tests.support import Service


async def test_a_program_gets_a_signed_message_when_a_registration_is_settled(
    service: Service, programs: Programs
) -> None:
    ada = await service.organizer()
    program = await programs.add(ada, types=["registration.settled"])
    event = await ada.create_event(capacity=1)
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    assert await program.deliver() == 1

    [message] = program.receiver.received
    verified = Webhook(program.endpoint["secret"]).verify(message.body, message.headers)
    assert verified["type"] == "registration.settled"
    assert verified["subject"] == f"event {event['id']}"
    assert verified["number"] == 1
    assert verified["data"] | {"user_id": ""} == {
        "event_id": event["id"],
        "user_id": "",
        "status": "registered",
        "was": "pending",
        "reason": None,
        "amount_paid": 0,
    }
