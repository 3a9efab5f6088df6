"""Examples of requests and answers of the reference. They tell one story, so that they are true to each other.

The organizer Ada Events sells 12 seats of the event 7 for €15, of which 9 are taken. Ben holds one. The waiting room 3
stands before a sale on another site. Her program gets webhooks at the endpoint 4.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.events.organizers.operations import API_KEY_HEADER, NOTE
from holdfast.events.queues.model import AcceptedVisitor, QueueNextStep
from holdfast.events.registrations.model import AcceptedRegistration, RegistrationNextStep

BASE = "https://events.example.com"
SITE_URL = "https://shop.example.com/sale"
PHOTO = "photos/2/hUv0Xq3Zb1yTn5Kd8Wm2Rg.jpg"
PHOTO_URL = f"{BASE}/media/{PHOTO}"
EVENT_URL = f"{BASE}/organizers/ada-events/events/7"
EMBED_URL = f"{BASE}/events/7/embed"
EMBED_CODE = f'<iframe src="{EMBED_URL}" title="Life drawing" width="100%" height="640"></iframe>'
RELEASE = "eyJhbGciOiJSUzI1NiJ9.eyJxaWQiOjN9.c2lnbmF0dXJl"
"""A release token of the waiting room, shortened."""

BODIES: Mapping[str, Mapping[str, Any]] = {
    "register_organizer": {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"},
    "create_api_key": {"name": "Importer"},
    "create_event": {
        "title": "Life drawing",
        "body": "Bring a pencil.",
        "datetime": "2031-05-01T18:00:00Z",
        "ends_at": "2031-05-01T20:00:00Z",
        "pricing_mode": "fixed",
        "price": 1500,
        "currency": "EUR",
        "capacity": 12,
        "timezone": "Europe/Berlin",
        "cancellation_hours": 24,
    },
    "update_event": {"capacity": 16},
    "add_event_photo": {"url": "https://example.com/studio.jpg"},
    "set_primary_photo": {"key": PHOTO},
    "presign_upload": {"content_type": "image/jpeg", "content_length": 482113},
    "create_registration": {"event_id": 7, "email": "ben@example.com", "notify": True},
    "update_registration": {"status": "waitlisted"},
    "create_queue": {
        "title": "Spring sale",
        "release_rate": 60,
        "target_url": SITE_URL,
        "token_ttl_minutes": 10,
    },
    "update_queue": {"active": False},
    "join_queue": {"visitor_id": "visitor-1"},
    "verify_queue_token": {"token": RELEASE},
    "create_webhook_endpoint": {"url": "https://shop.example.com/webhooks", "types": ["registration.settled"]},
    "update_webhook_endpoint": {"active": False},
    "resend_webhook_messages": {"since": "2031-04-01T18:00:00Z"},
}
"""Request bodies, by operation."""

PARAMETERS: Mapping[str, Any] = {
    "event_id": 7,
    "queue_id": 3,
    "endpoint_id": 4,
    "id": 12,
    "user_id": "sht2pjgt",
    "visitor_id": "visitor-1",
    "message_id": "msg_912",
    "key": PHOTO,
}
"""Values of parameters of paths and queries."""

_PAYMENT: Mapping[str, Any] = {
    "status": "required",
    "status_reason": "organizer_processor_ready",
    "platform_fee_percent": 5,
    "agent_payment_required": False,
    "event_is_paid": True,
    "platform_fee_collection": "application_fee_amount",
    "platform_fee_source": "student_payment",
    "student_payment_processor": "connect_destination_charge",
    "student_payment_required": True,
}
_DELIVERABLES: Mapping[str, Any] = {"embed_code": EMBED_CODE, "embed_url": EMBED_URL, "public_url": EVENT_URL}
_AGENT: Mapping[str, Any] = {
    "payment": _PAYMENT,
    "deliverables": _DELIVERABLES,
    "hosted_registration_ready": True,
    "agent_payment_required": False,
    "hosted_registration": True,
    "registration_processing": "sorted",
    "workflow": "publish_public_url_or_embed_code",
}
_WHOLE_KEY = "hf_5sT2kQm8Vx1bNc7Zr4Yd9Wp3Lf6Hj0GaUe1XoTiLqRzM"
_API_KEY: Mapping[str, Any] = {
    "id": 12,
    "name": "Importer",
    "key": f"{_WHOLE_KEY[:8]}********",
    "active": True,
    "inserted_at": "2031-03-01T09:12:44Z",
    "user_id": 2,
}


def _with_receipt(answer: Struct, log: str) -> Mapping[str, Any]:
    """An answer with its texts, and the receipt of a log."""
    promise = str(_RECEIPT["promise"]).replace("events/7", log)
    return {**msgspec.to_builtins(answer), "receipt": {**_RECEIPT, "promise": promise}}


_RECEIPT: Mapping[str, Any] = {
    "promise": '{"log":"events.example.com/log/events/7","at":"2031-04-02T07:41:09.201442Z","person":"q…","within":60}',
    "nonce": "5f1c6e0e2f0f4f5c9f1a8f4a1d3b2c10",
    "index": 0,
    "path": [],
    "signed": "holdfast promises v1\nevents.example.com\n1\nq8Xm…\n\n— events.example.com 5Kd8…\n",
}
_ORGANIZER: Mapping[str, Any] = {
    "id": 2,
    "name": "Ada Events",
    "email": "ada@example.com",
    "role": "organizer",
    "slug": "ada-events",
    "public_url": f"{BASE}/organizers/ada-events",
    "public_path": "/organizers/ada-events",
}
_AUTHENTICATION: Mapping[str, Any] = {
    "header": API_KEY_HEADER,
    "note": NOTE.format(sign_in=f"{BASE}/sign-in"),
}
_PHOTOS: Mapping[str, Any] = {
    "event_id": 7,
    "image_keys": [PHOTO],
    "image_urls": [PHOTO_URL],
    "primary_image_url": PHOTO_URL,
}
_TOKEN_DATA: Mapping[str, Any] = {
    "queue_id": 3,
    "visitor_id": "visitor-1",
    "token_id": "3-411",
    "issued_at": "2031-04-01T08:06:51Z",
    "expires_at": "2031-04-01T08:26:51Z",
    "target_url": SITE_URL,
    "use_count": 1,
    "first_use": True,
}

OBJECTS: Mapping[str, Mapping[str, Any]] = {
    "ApiKey": _API_KEY,
    "Authentication": _AUTHENTICATION,
    "Organizer": _ORGANIZER,
    "RegisteredOrganizer": {
        "authentication": _AUTHENTICATION,
        "api_key": {**_API_KEY, "id": 11, "name": "First key", "key": _WHOLE_KEY},
        "organizer": _ORGANIZER,
    },
    "User": {
        "id": 31,
        "public_id": "sht2pjgt",
        "name": "Ben",
        "email": "ben@example.com",
        "role": "user",
        "slug": None,
    },
    "Pagination": {"count": 1, "offset": 0, "limit": 100, "has_more": False},
    "Payment": _PAYMENT,
    "Deliverables": _DELIVERABLES,
    "Agent": _AGENT,
    "Event": {
        "id": 7,
        "status": "active",
        "address": "Mill Lane 4, Berlin",
        "title": "Life drawing",
        "body": "Bring a pencil.",
        "datetime": "2031-05-01T18:00:00Z",
        "ends_at": "2031-05-01T20:00:00Z",
        "payment": _PAYMENT,
        "price": 1500,
        "cancelled_at": None,
        "capacity": 12,
        "pricing_mode": "fixed",
        "max_price": None,
        "min_price": None,
        "organizer_id": 2,
        "recurrence_frequency": "none",
        "recurrence_interval": 0,
        "waitinglist_capacity": 5,
        "current_price": 1500,
        "latitude": 52.4987,
        "longitude": 13.4322,
        "location_name": "Studio 4",
        "image_urls": [PHOTO_URL],
        "registration_count": 9,
        "agent": _AGENT,
        "embed_code": EMBED_CODE,
        "embed_url": EMBED_URL,
        "primary_image_url": PHOTO_URL,
        "public_url": EVENT_URL,
        "timezone": "Europe/Berlin",
        "cancellation_hours": 24,
        "published": True,
        "public_log": True,
        "opens_at": None,
        "waiting_room_url": None,
    },
    "PriceChange": {
        "id": 41,
        "reason": "manual_change",
        "timestamp": "2031-04-01T09:30:00Z",
        "event_id": 7,
        "original_price": 1200,
        "new_price": 1500,
    },
    "AddedPhoto": {"key": PHOTO, "url": PHOTO_URL, **_PHOTOS},
    "EventPhotos": _PHOTOS,
    "Upload": {
        "key": "uploads/2/8fK2xYdQv0Zb1yTn5Kd8Wm.jpg",
        "content_type": "image/jpeg",
        "content_length": 482113,
        "expires_in": 900,
        "upload_url": f"{BASE}/uploads/2/8fK2xYdQv0Zb1yTn5Kd8Wm.jpg?signature=…",
    },
    "Registration": {
        "id": "7-sht2pjgt",
        "status": "registered",
        "event_id": 7,
        "amount_paid": 1500,
        "user_id": "sht2pjgt",
        "received_at": "2031-04-02T07:41:09.201442Z",
        "email": "ben@example.com",
        "name": "Ben",
    },
    "AcceptedRegistration": _with_receipt(
        AcceptedRegistration(RegistrationNextStep("/api/registrations/7/sht2pjgt")), "events/7"
    ),
    "Receipt": _RECEIPT,
    "Onboarding": {
        "stripe_account_id": "acct_1Nv0FGQ9RKHgCVdK",
        "onboarding_complete": False,
        "onboarding_url": f"{BASE}/console/payouts",
    },
    "Queue": {
        "id": 3,
        "active": True,
        "title": "Spring sale",
        "description": None,
        "queue_length": 411,
        "organizer_id": 2,
        "starts_at": "2031-04-01T08:00:00Z",
        "ends_at": None,
        "max_queue_size": None,
        "draw_at": None,
        "release_rate": 60,
        "target_url": SITE_URL,
        "event_id": None,
        "token_ttl_minutes": 10,
        "public_log": True,
        "embed_url": f"{BASE}/queues/3/embed",
        "waiting_room_url": f"{BASE}/queues/3",
    },
    "AcceptedVisitor": _with_receipt(AcceptedVisitor(QueueNextStep("/api/queues/3/status/visitor-1")), "queues/3"),
    "Status": {"status": "waiting", "position": 411, "estimated_wait_seconds": 411},
    "TokenData": _TOKEN_DATA,
    "TokenVerification": {"data": _TOKEN_DATA, "valid": True},
    "WebhookEndpoint": {
        "id": 4,
        "url": "https://shop.example.com/webhooks",
        "types": ["registration.settled"],
        "ordered": False,
        "status": "active",
        "signature": "v1",
        "public_key": None,
        "created_at": "2031-03-01T09:20:10Z",
        "failing_since": None,
        "waits_until": None,
        "waiting": 0,
        "failed": 3,
    },
    "WebhookDelivery": {
        "message_id": "msg_912",
        "type": "registration.settled",
        "subject": "event 7",
        "number": 9,
        "status": "delivered",
        "attempts": 1,
        "created_at": "2031-04-02T07:41:09Z",
        "next_attempt_at": None,
        "ended_at": "2031-04-02T07:41:09Z",
        "data": {
            "event_id": 7,
            "user_id": "sht2pjgt",
            "status": "registered",
            "was": "pending",
            "reason": None,
            "amount_paid": 0,
        },
    },
    "WebhookAttempt": {
        "attempt": 1,
        "attempted_at": "2031-04-02T07:41:09Z",
        "status": 204,
        "milliseconds": 38,
        "reason": None,
        "error": None,
    },
    "ResentMessages": {"count": 3},
}
"""Objects of answers, by the name of their schema."""

CHANGES: Mapping[str, Mapping[str, Any]] = {
    "create_api_key": {"key": _WHOLE_KEY},
    "list_organizers": {"id": 2, "public_id": "kq7xw2nf", "name": "Ada Events", "email": "ada@example.com"}
    | {"role": "organizer", "slug": "ada-events"},
    "create_event": {"registration_count": 0, "address": None, "location_name": None, "latitude": None}
    | {"longitude": None, "image_urls": [], "primary_image_url": None, "waitinglist_capacity": 0},
    "update_event": {"capacity": 16},
    "cancel_event": {"status": "cancelled", "cancelled_at": "2031-04-20T10:00:00Z"}
    | {"agent": {**_AGENT, "hosted_registration_ready": False}},
    "update_registration": {"status": "waitlisted", "amount_paid": 0},
    "create_queue": {"queue_length": 0, "starts_at": None},
    "update_queue": {"active": False},
    "create_webhook_endpoint": {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "failed": 0},
    "update_webhook_endpoint": {"status": "paused"},
    "rotate_webhook_secret": {"secret": "whsec_b3JkZXJfaXNfa2VwdF9mb3JfYWxsXzI0"},
    "resend_webhook_message": {"count": 1},
}
"""How the answer of an operation differs from the example of its object."""
