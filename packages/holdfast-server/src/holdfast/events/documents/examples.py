"""Examples for the reference: a request body for every operation that has one, and answers built from schemas."""

from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]

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
        "capacity": 12,
        "timezone": "Europe/Berlin",
        "cancellation_hours": 24,
    },
    "update_event": {"capacity": 16},
    "add_event_photo": {"url": "https://example.com/studio.jpg"},
    "set_primary_photo": {"key": "photos/7/hUv0Xq3Zb1yTn5Kd8Wm2Rg.jpg"},
    "presign_upload": {"content_type": "image/jpeg", "content_length": 482113},
    "create_registration": {"event_id": 7, "email": "ben@example.com", "notify": True},
    "update_registration": {"status": "waitlisted"},
    "create_queue": {
        "title": "Spring sale",
        "release_rate": 60,
        "target_url": "https://shop.example.com/sale",
        "token_ttl_minutes": 10,
    },
    "update_queue": {"active": False},
    "join_queue": {"visitor_id": "visitor-1"},
    "verify_queue_token": {"token": "eyJhbGciOiJSUzI1NiJ9.eyJxaWQiOjd9.c2lnbmF0dXJl"},
}
"""Example request bodies by operation."""

VALUES: Mapping[str, Any] = {
    "body": "Bring a pencil.",
    "cancellation_hours": 24,
    "code": "not_found",
    "currency": "EUR",
    "email": "ben@example.com",
    "ends_at": "2031-05-01T20:00:00Z",
    "error": "No event has the id 7.",
    "hint": "Check the id.",
    "key": "hf_5sT2…",
    "location_name": "Studio 4",
    "name": "Ada Events",
    "offset": 0,
    "reason": "registration",
    "slug": "ada-events",
    "target_url": "https://shop.example.com/sale",
    "timezone": "Europe/Berlin",
    "title": "Life drawing",
    "token": "eyJhbGciOi…",
    "user_id": "sht2pjgt",
    "visitor_id": "visitor-1",
}
"""Example values of fields and parameters, where the type alone is not enough."""


def example_of(schema: Schema, resolve: Callable[[Schema], Schema], name: str = "") -> Any:
    """An example value of a schema, for the field `name`."""
    schema = resolve(schema)
    kind = schema.get("type")
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], resolve, name)
    if kind == "object":
        return {
            field: example_of(field_schema, resolve, field)
            for field, field_schema in schema.get("properties", {}).items()
        }
    if kind == "array":
        return [example_of(schema["items"], resolve, name)]
    if kind in {"integer", "number"}:
        value = VALUES.get(name)
        return value if isinstance(value, int) else max(7, schema.get("minimum", 0))
    if kind == "boolean":
        return name != "has_more"
    if schema.get("format") == "date-time":
        return VALUES.get(name, "2031-05-01T18:00:00Z")
    if name.endswith(("url", "urls")):
        return VALUES.get(name, "https://events.example.com/…")
    return VALUES.get(name, "…") if kind == "string" else None
