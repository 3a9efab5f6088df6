"""Arguments that every tool accepts, on an organizer prepared for them."""

from typing import Any

import pytest

from holdfast.events.api import OPERATIONS
from tests.helpers.agents import STATELESS, Agent
from tests.helpers.events_service import Client, Service, event_fields, queue_fields
from tests.helpers.photos import accept_photos, key_of

TOOLS = {operation.name: operation for operation in OPERATIONS if operation.tool}
ERAS = ("2025-11-25", STATELESS)
"""A version of the protocol of either era."""

both_eras = pytest.mark.parametrize("version", ERAS)

ANN = "annannan"
"""The handle of Ann, who is registered for event 1; those of other people are random."""

PHOTOS = FIRST, SECOND, SPARE = [key_of(1, letter) for letter in "abc"]
"""The keys of photos: event 1 shows the first two, no event the third."""


class Arguments(dict[str, dict[str, Any]]):
    """Arguments by tool."""

    def __missing__(self, tool: str) -> dict[str, Any]:
        raise KeyError(f"{tool} has no arguments: add some to ARGUMENTS in {__file__}")


ARGUMENTS = Arguments(
    {
        "list_organizers": {},
        "list_users": {"limit": 1},
        "list_api_keys": {},
        "create_api_key": {"name": "Door"},
        "revoke_api_key": {"id": 2},
        "list_events": {"offset": 1},
        "create_event": event_fields(),
        "get_event": {"event_id": 1},
        "update_event": {"event_id": 2, "price": 1800},
        "cancel_event": {"event_id": 2},
        "get_price_history": {"event_id": 2},
        "add_event_photo": {"event_id": 1, "key": SPARE},
        "set_primary_photo": {"event_id": 1, "key": SECOND},
        "remove_event_photo": {"event_id": 1, "key": SECOND},
        "presign_upload": {"content_type": "image/png", "content_length": 1000},
        "create_onboarding_link": {},
        "list_registrations": {},
        "create_registration": {"event_id": 2, "email": "ben@example.com"},
        "get_registration": {"event_id": 1, "user_id": ANN},
        "update_registration": {"event_id": 1, "user_id": ANN, "status": "waitlisted"},
        "delete_registration": {"event_id": 1, "user_id": ANN},
        "list_queues": {"limit": 1},
        "create_queue": queue_fields(),
        "get_queue": {"queue_id": 1},
        "update_queue": {"queue_id": 1, "active": False},
        "delete_queue": {"queue_id": 1},
        "list_webhooks": {"endpoint_id": 1},
        "set_webhook": {"url": "https://shop.example/webhooks", "types": ["event.full"]},
        "delete_webhook": {"endpoint_id": 1},
        "ping_webhook": {"endpoint_id": 1},
        "list_webhook_deliveries": {"endpoint_id": 1, "status": "waiting"},
        "resend_webhook_messages": {"endpoint_id": 1, "since": "2026-01-01T00:00:00Z"},
        "list_webhook_attempts": {"endpoint_id": 1, "message_id": "msg_1"},
    }
)


async def prepare_organizer(service: Service) -> Client:
    """An organizer for whom all of them are accepted: event 1 is free and has photos, the price of 2 moves; keys 1
    and 2, queue 1, endpoint 1, and Ann.
    """
    # The same for all tests: so the payment processor of all is asked for the same account each time.
    ada = await service.organizer(email="ada@example.com")
    await ada.create_queue()
    await accept_photos(service, *PHOTOS)
    await ada.create_event(image_keys=[FIRST, SECOND], timezone="Europe/Berlin", cancellation_hours=24)
    await ada.create_event(pricing_mode="dynamic", price=1500, min_price=1000, max_price=2000)
    await ada.post("/api/keys", {"api_key": {"name": "Box office"}})
    await ada.post("/api/webhook_endpoints", {"webhook_endpoint": {"url": "https://shop.example/"}})
    await ada.register(1, email="ann@example.com")
    await service.settle()
    await service.run_sql("update users set public_id = %(ann)s where email = 'ann@example.com'", ann=ANN)
    return ada


def agent(service: Service, organizer: Client, version: str = ERAS[0]) -> Agent:
    """Someone who acts for an organizer, with its key, in a version of the protocol."""
    return Agent(service.app, organizer.key, version)
