"""The problem types that only the events service has; `docs/problems.md` lists all codes."""

from holdfast.kit.contract.messages import translatable
from holdfast.kit.contract.problems import IDEMPOTENCY_KEY_REUSED, ProblemType

UPLOAD_REFUSED = ProblemType(
    "upload_refused",
    403,
    "The upload is not what was presigned.",
    "PUT the file with the presigned Content-Type and Content-Length, or presign again.",
)
EVENT_CANCELLED = ProblemType(
    "event_cancelled",
    422,
    "The event has been cancelled.",
    "Choose another event; GET /api/events lists yours.",
    "event_id",
)
EVENT_EXPIRED = ProblemType(
    "event_expired",
    422,
    "The event has already taken place.",
    "Choose an event whose datetime lies ahead.",
    "event_id",
)
EVENT_FULL = ProblemType(
    "event_full",
    422,
    "Every seat is taken and the waiting list has no room.",
    "Raise `capacity` or `waitinglist_capacity` with PATCH /api/events/<event_id>, or free a place first.",
    "event_id",
)
EVENT_HAS_REGISTRATIONS = ProblemType(
    "event_has_registrations",
    422,
    "People have registered for the event, so it cannot become a draft again.",
    "Leave it published, or cancel it with DELETE /api/events/<event_id>.",
    "published",
)
PAYMENT_UNAVAILABLE = ProblemType(
    "payment_unavailable",
    422,
    "The event has a price, and the organizer cannot be paid by card yet.",
    "Ask the organizer for a place; its API keys register people without a payment.",
    "event_id",
)
PAYMENTS_NOT_CONFIGURED = ProblemType(
    "payments_not_configured",
    503,
    "This service takes no payments yet.",
    "Ask the operator to set STRIPE_SECRET_KEY; free events need no payments.",
)
SIGNATURE_REFUSED = ProblemType(
    "signature_refused",
    400,
    "The signature of the message is not valid.",
    "Set STRIPE_WEBHOOK_SECRET to the secret of this endpoint at the payment processor.",
)
REGISTRATION_PENDING = ProblemType(
    "registration_pending",
    404,
    "The registration is accepted and waits to be settled.",
    "Poll again after the number of seconds in Retry-After.",
)
REGISTRATION_REJECTED = ProblemType(
    "registration_rejected",
    404,
    "The event had no place for the registration.",
    "Register again when a place is free; `reason` says why there was none.",
)
QUEUE_FULL = ProblemType(
    "queue_full",
    503,
    "The queue is full.",
    "Join again after the number of seconds in Retry-After.",
)
QUEUE_INACTIVE = ProblemType(
    "queue_inactive",
    503,
    "The queue is paused.",
    "Join again after the number of seconds in Retry-After; visitors who wait keep their places.",
)
QUEUE_ENDED = ProblemType(
    "queue_ended",
    422,
    "The queue has ended.",
    "Join another queue; GET /api/queues lists yours.",
    "queue_id",
)
QUEUE_REQUIRED = ProblemType(
    "queue_required",
    403,
    "There is a waiting room before the event, and the visitor has not been released from it.",
    "Send the visitor to `waiting_room_url`; a release lets one person register, once.",
)
INVALID_TOKEN = ProblemType(
    "invalid_token",
    401,
    "The release token is not valid.",
    "Send the visitor to the queue's waiting_room_url; `reason` says what is wrong.",
)
QUOTA_EXCEEDED = ProblemType(
    "quota_exceeded",
    422,
    "The organizer has reached a quota.",
    "Remove what is not needed, or ask the operator for more; `quota` and `limit` say of what.",
    "organizer_id",
)
TOO_MANY_PHOTOS = ProblemType(
    "too_many_photos",
    422,
    "The event may have no more photos.",
    "Remove one first with DELETE /api/events/<event_id>/photos?key=<key>.",
    "event_id",
)
TOO_MANY_UPLOADS = ProblemType(
    "too_many_uploads",
    422,
    translatable("Too many photos and uploads of yours are shown by no event."),
    "Attach them with `image_keys`, or wait: they are deleted after a day.",
    "image_keys",
)

ALL: tuple[ProblemType, ...] = (
    EVENT_CANCELLED,
    EVENT_EXPIRED,
    EVENT_FULL,
    EVENT_HAS_REGISTRATIONS,
    IDEMPOTENCY_KEY_REUSED,
    INVALID_TOKEN,
    PAYMENT_UNAVAILABLE,
    PAYMENTS_NOT_CONFIGURED,
    QUEUE_ENDED,
    QUEUE_FULL,
    QUEUE_INACTIVE,
    QUEUE_REQUIRED,
    QUOTA_EXCEEDED,
    REGISTRATION_PENDING,
    REGISTRATION_REJECTED,
    SIGNATURE_REFUSED,
    TOO_MANY_PHOTOS,
    TOO_MANY_UPLOADS,
    UPLOAD_REFUSED,
)
