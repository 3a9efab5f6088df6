"""Endpoints of webhooks, the messages that they get, and the deliveries of these."""

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, field

from holdfast.kit.contract.command import Command, Id, Timestamp, rule
from holdfast.kit.contract.messages import message
from holdfast.kit.postgres.pagination import OffsetPage
from holdfast.kit.webhooks.failures import FailureReason
from holdfast.kit.webhooks.signing import SignatureScheme

MAX_TYPES = 100
MAX_TYPE_LENGTH = 40

MAX_COUNTED = 1_000
"""The most messages that are counted: no answer takes longer because more of them wait or failed."""

EndpointStatus = Literal["active", "paused", "failing"]
DeliveryStatus = Literal["waiting", "delivered", "failed"]

EndpointId = Annotated[Id, Meta(description="From the list of endpoints.", examples=[1])]
MessageId = Annotated[
    str,
    Meta(
        pattern=r"^msg_[1-9][0-9]{0,17}$",
        description="Such as msg_1.",
        examples=["msg_1"],
        extra={"noun": message("the id of a message such as msg_1")},
    ),
]
Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2000,
        description="Begins with https://. Messages are posted to it.",
    ),
]
Types = Annotated[
    list[Annotated[str, Meta(max_length=MAX_TYPE_LENGTH)]],
    Meta(max_length=MAX_TYPES, description="The types of messages that it gets; empty: all."),
]
Ordered = Annotated[bool, Meta(description="A message waits until the one before it, of its subject, is delivered.")]


def id_of(message_id: str) -> int:
    """The number in the id of a message."""
    return int(message_id.removeprefix("msg_"))


def content_of(
    type: str, created_at: dt.datetime, subject: str, number: int, data: Mapping[str, Any]
) -> dict[str, object]:
    """The content of the body of a message."""
    timestamp = created_at.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"type": type, "timestamp": timestamp, "subject": subject, "number": number, "data": data}


class MessageType(NamedTuple):
    """A type of message that a service sends.

    name           `subject.what_happened`
    description    a sentence that says when it is sent
    example        its data, as an example; its class is the schema
    """

    name: str
    description: str
    example: Struct


def subject_of(data: Struct) -> str:
    """The subject of a message whose data begins with the id of its subject."""
    field = data.__struct_fields__[0]
    return f"{field.removesuffix('_id')} {getattr(data, field)}"


class ListWebhookEndpoints(Command):
    """No options: every endpoint is listed."""


class CreateWebhookEndpoint(Command):
    url: Url
    types: Types = field(default_factory=list[str])
    ordered: Ordered = False
    signature: Annotated[
        SignatureScheme, Meta(description="v1: HMAC with a shared secret. v1a: Ed25519, with a public key.")
    ] = "v1"
    language: Annotated[
        Annotated[str, Meta(max_length=10)] | None, Meta(description="Of mails about it, such as de; null: English.")
    ] = None


class GetWebhookEndpoint(Command):
    endpoint_id: EndpointId


class UpdateWebhookEndpoint(Command):
    endpoint_id: EndpointId
    url: Url | UnsetType = UNSET
    types: Types | UnsetType = UNSET
    ordered: Ordered | UnsetType = UNSET
    active: Annotated[bool, Meta(description="False pauses it: what happens meanwhile is not sent.")] | UnsetType = (
        UNSET
    )


class DeleteWebhookEndpoint(Command):
    endpoint_id: EndpointId


class RotateWebhookSecret(Command):
    endpoint_id: EndpointId


class PingWebhookEndpoint(Command):
    endpoint_id: EndpointId


class ListWebhookDeliveries(OffsetPage, kw_only=True):
    endpoint_id: EndpointId
    status: Annotated[DeliveryStatus, Meta(description="Only messages with this status.")] | None = None
    message_id: MessageId | None = None


class ListWebhookAttempts(Command):
    endpoint_id: EndpointId
    message_id: MessageId


class ResendWebhookMessages(Command):
    endpoint_id: EndpointId
    since: Annotated[Timestamp, Meta(description="Messages since this time.")]
    until: Annotated[Timestamp | None, Meta(description="Messages until this time.")] = None
    only_failed: Annotated[bool, Meta(description="Leaves out delivered messages.")] = True
    dry_run: Annotated[bool, Meta(description="Only counts the messages.")] = False
    after: Annotated[MessageId | None, Meta(description="The `next_after` of the answer before.")] = None


class ResendWebhookMessage(Command):
    endpoint_id: EndpointId
    message_id: MessageId


class ListWebhooks(Command):
    endpoint_id: Annotated[Id, Meta(description="Only this endpoint.")] | None = None


class SetWebhook(Command, kw_only=True):
    endpoint_id: Annotated[Id, Meta(description="Leave it out for a new endpoint.")] | None = None
    url: Annotated[Url, Meta(description="Begins with https://.")] | UnsetType = UNSET
    types: Types | UnsetType = UNSET
    active: Annotated[bool, Meta(description="False pauses the endpoint.")] | UnsetType = UNSET

    @rule("endpoint_id", "url")
    def _has_address(self) -> str | None:
        return "is required, or a url for a new endpoint" if self.endpoint_id is None and not self.url else None


class WebhookEndpoint(Struct):
    """An address at which a program is told what happened."""

    id: int
    url: str
    types: Annotated[list[str], Meta(description="Empty: all.")]
    ordered: bool
    status: Annotated[
        EndpointStatus,
        Meta(description="paused: it gets nothing. failing: nothing was delivered for days, and messages wait."),
    ]
    signature: SignatureScheme
    public_key: Annotated[str | None, Meta(description="For v1a: verify messages with it.")]
    created_at: Timestamp
    failing_since: Annotated[Timestamp | None, Meta(description="The first failure since the last delivery.")]
    waits_until: Annotated[
        Timestamp | None, Meta(description="The end of a pause after a failure, or that Retry-After asked for.")
    ]
    waiting: Annotated[int, Meta(description=f"Messages that wait. {MAX_COUNTED} means that many or more.")]
    failed: Annotated[int, Meta(description=f"Messages that failed. {MAX_COUNTED} means that many or more.")]
    secret: Annotated[str | UnsetType, Meta(description="For v1; shown on creation and on rotation only.")] = UNSET


class WebhookDelivery(Struct):
    """A message for an endpoint."""

    message_id: str
    type: str
    subject: str
    number: Annotated[int, Meta(description="Of its subject, at this endpoint: 1, 2, 3 ...")]
    status: DeliveryStatus
    attempts: int
    created_at: Timestamp
    next_attempt_at: Annotated[Timestamp | None, Meta(description="null: not while the one before it waits.")]
    ended_at: Timestamp | None
    data: Mapping[str, Any]


class WebhookAttempt(Struct):
    """A time at which a message was sent."""

    attempt: int
    attempted_at: Timestamp
    status: Annotated[int | None, Meta(description="The HTTP status of the answer; null: there was none.")]
    milliseconds: int
    reason: Annotated[FailureReason | None, Meta(description="Why it failed, in one word; null: it was delivered.")]
    error: Annotated[str | None, Meta(description="Why it failed, and what to do.")]


class WebhookFailure(Struct):
    """An attempt that failed, as the page of its endpoint shows it."""

    attempted_at: Timestamp
    status: int | None
    reason: FailureReason | None


class ResentMessages(Struct):
    """How many messages are sent again; of a dry run, how many would be."""

    count: int
    next_after: Annotated[
        str | UnsetType, Meta(description="More messages may follow: call again with it as `after`.")
    ] = UNSET


class SigningSecret(Struct):
    """A secret of an endpoint. `until`: until when it signs; None: no end is set."""

    value: str
    until: dt.datetime | None = None


class EndpointRow(Struct):
    """A stored endpoint."""

    id: int
    tenant_id: int
    url: str
    types: list[str]
    is_ordered: bool
    status: EndpointStatus
    sealed: bytes
    created_at: dt.datetime
    failing_since: dt.datetime | None
    waits_until: dt.datetime | None


class DueMessage(Struct):
    """A message that is due for an endpoint."""

    id: int
    type: str
    subject: str
    number: int
    data: Mapping[str, Any]
    created_at: dt.datetime
    attempts: int
    early_attempts: int


class MessageCounts(NamedTuple):
    """How many messages wait for an endpoint, and how many failed: at most `MAX_COUNTED` of both are counted."""

    waiting: int = 0
    failed: int = 0
