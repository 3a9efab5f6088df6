"""The objects of the contract, written down once more as strict types: an answer fits one exactly or fails.

Beside the contract's fields, a registration has `email` and `name`, a user `public_id`, an event `timezone`,
`cancellation_hours`, `ends_at`, `published`, `public_log`, `opens_at` and `waiting_room_url`, a queue `public_log`,
`draw_at` and `event_id`. The answer to what was accepted has a `receipt`.
"""

from datetime import datetime
from typing import Annotated, Literal, TypeVar

import httpx2
import msgspec
from msgspec import Meta, Struct

T = TypeVar("T")

Utc = Annotated[datetime, Meta(tz=True)]
Handle = Annotated[str, Meta(min_length=8, max_length=8)]


class Shape(Struct, forbid_unknown_fields=True):
    """Base of every shape: no field may be missing, none may be added."""


class Payment(Shape):
    status: Literal["not_required", "required", "unavailable"]
    status_reason: Literal["free_event", "organizer_processor_ready", "organizer_processor_not_configured"]
    platform_fee_percent: int
    agent_payment_required: bool
    event_is_paid: bool
    platform_fee_collection: Literal["application_fee_amount", "none"]
    platform_fee_source: Literal["student_payment"] | None
    student_payment_processor: Literal["connect_destination_charge"] | None
    student_payment_required: bool


class Deliverables(Shape):
    embed_code: str
    embed_url: str
    public_url: str


class Agent(Shape):
    payment: Payment
    agent_payment_required: bool
    deliverables: Deliverables
    hosted_registration: bool
    hosted_registration_ready: bool
    registration_processing: Literal["sorted"]
    workflow: Literal["publish_public_url_or_embed_code"]


class Event(Shape):
    id: int
    status: Literal["active", "expired", "full", "cancelled"]
    address: str | None
    title: str
    body: str
    datetime: Utc
    ends_at: Utc | None
    payment: Payment
    price: int
    cancelled_at: Utc | None
    capacity: int
    pricing_mode: Literal["free", "fixed", "dynamic"]
    max_price: int | None
    min_price: int | None
    organizer_id: int
    recurrence_frequency: Literal["none", "days", "weeks", "months", "years"]
    recurrence_interval: int
    waitinglist_capacity: int
    current_price: int | None
    latitude: float | None
    longitude: float | None
    location_name: str | None
    image_urls: list[str]
    registration_count: int
    agent: Agent
    embed_code: str
    embed_url: str
    primary_image_url: str | None
    public_url: str
    timezone: str | None
    cancellation_hours: int
    published: bool
    public_log: bool
    opens_at: Utc | None
    waiting_room_url: str | None


class PriceChange(Shape):
    id: int
    reason: Literal["init", "registration", "tick", "manual_change", "other"]
    timestamp: Utc
    event_id: int
    original_price: int | None
    new_price: int


class Registration(Shape):
    id: str
    status: Literal["registered", "waitlisted"]
    event_id: int
    amount_paid: int
    user_id: Handle
    received_at: Utc
    email: str
    name: str | None


class Next(Shape):
    action: Literal["poll_status"]
    description: str
    url: str


class Receipt(Shape):
    promise: str
    nonce: str
    index: int
    path: list[str]
    signed: str


class Acceptance(Shape):
    message: str
    status: Literal["accepted"]
    next: Next
    receipt: Receipt


class Queue(Shape):
    id: int
    active: bool
    title: str
    description: str | None
    queue_length: int
    organizer_id: int
    starts_at: Utc | None
    ends_at: Utc | None
    max_queue_size: int | None
    draw_at: Utc | None
    event_id: int | None
    public_log: bool
    release_rate: int
    target_url: str
    token_ttl_minutes: int
    embed_url: str
    waiting_room_url: str


class Waiting(Shape):
    status: Literal["waiting"]
    position: int
    estimated_wait_seconds: int


class NotInQueue(Shape):
    status: Literal["not_in_queue"]


class Photos(Shape):
    event_id: int
    image_keys: list[str]
    image_urls: list[str]
    primary_image_url: str | None


class AddedPhoto(Photos):
    key: str
    url: str | None


class Upload(Shape):
    key: str
    content_type: Literal["image/jpeg", "image/png", "image/webp", "image/gif"]
    content_length: int
    expires_in: int
    upload_url: str


class User(Shape):
    id: int
    public_id: Handle
    name: str | None
    email: str
    role: Literal["user", "organizer", "admin"]
    slug: str | None


class ApiKey(Shape):
    id: int
    name: str
    key: str
    active: bool
    inserted_at: Utc
    user_id: int | None


class Authentication(Shape):
    header: str
    note: str


class Organizer(Shape):
    id: int
    name: str
    email: str
    role: Literal["organizer"]
    slug: str
    public_url: str
    public_path: str


class RegisteredOrganizer(Shape):
    authentication: Authentication
    api_key: ApiKey
    organizer: Organizer


class Pagination(Shape):
    count: int
    offset: int
    limit: int
    has_more: bool


def one(response: httpx2.Response, kind: type[T], status: int = 200) -> T:
    """The object in `data` of a successful answer."""
    assert response.status_code == status, response.text
    body = response.json()
    assert body.keys() == {"data"}
    return msgspec.convert(body["data"], kind)


def unpaged_objects(response: httpx2.Response, kind: type[T]) -> list[T]:
    """The objects of a list that has no pages."""
    return one(response, list[kind])


def page(response: httpx2.Response, kind: type[T]) -> tuple[list[T], Pagination]:
    """The objects on a page of a list, and where the page lies."""
    assert response.status_code == 200, response.text
    body = response.json()
    assert body.keys() == {"data", "pagination"}
    return msgspec.convert(body["data"], list[kind]), msgspec.convert(body["pagination"], Pagination)


def objects_on_page(response: httpx2.Response, kind: type[T]) -> list[T]:
    """The objects on a page of a list."""
    return page(response, kind)[0]


def refusal(response: httpx2.Response) -> tuple[int, str]:
    """Status and code of an error, once its envelope has been checked."""
    assert response.status_code >= 400, response.text
    assert response.headers["content-type"].startswith("application/json")
    body = response.json()
    assert [name for name in ("error", "code", "hint") if not isinstance(body[name], str) or not body[name]] == []
    return response.status_code, body["code"]


def failing_fields(response: httpx2.Response) -> set[str]:
    """The fields a validation failure names, each with at least one message."""
    assert refusal(response) == (422, "validation_failed"), response.text
    errors = msgspec.convert(response.json()["errors"], dict[str, Annotated[list[str], Meta(min_length=1)]])
    return set(errors)
