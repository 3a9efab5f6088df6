"""The route to which the platform sends webhooks: `POST /webhooks/shopify`.

A delivery is answered with 200 after it was stored, and then handled. It is also answered so if there is nothing to
store: it came before, its shop no longer has the app, or its topic has no handler.
"""

import datetime as dt
import re
from collections.abc import Collection

import msgspec
import structlog

from holdfast.inventory.partner_webhooks.inbox import DELIVERIES, Inbox
from holdfast.inventory.partner_webhooks.model import ReceivedDelivery
from holdfast.inventory.partner_webhooks.payloads import stored_payload
from holdfast.inventory.problems import INVALID_SIGNATURE, error_body
from holdfast.inventory.resources import Database
from holdfast.inventory.shopify import signatures
from holdfast.inventory.shopify.domains import is_domain
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import BAD_REQUEST
from holdfast.kit.http.body import MAX_BODY, read_body
from holdfast.kit.http.handler import Access, Handler, Headers, Reply, Request, envelope
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.slots import Slots

SHOPIFY_WEBHOOKS_PATH = "/webhooks/shopify"

MAX_BODY_BYTES = 8 * 1_048_576
"""The most bytes of a body. Products with thousands of variants have more than five million."""

MAX_LARGE_BODIES, MAX_LARGE_BODIES_PER_ADDRESS = 16, 2
"""The most bodies above the usual size that are read at the same time, in all and from one address or network: callers
are not known before the body is read.
"""

LARGE_BODY_WAIT_SECONDS = 4.0
"""The most seconds that a large body waits for a slot. The platform waits for five."""

COMPLIANCE = frozenset({"customers/data_request", "customers/redact"})
"""Topics that every app must answer. There is nothing to do for them: no data of customers is stored."""

LARGE_BODIES = Bound(
    name="Partner webhooks above the usual size that are read",
    service="inventory",
    total=f"{MAX_LARGE_BODIES} of {MAX_BODY_BYTES // 1_048_576} MiB",
    tenant="none",
    address=f"{MAX_LARGE_BODIES_PER_ADDRESS}, also of a /48; in turns",
    reserved="-",
    stranger=f"It can use {MAX_LARGE_BODIES_PER_ADDRESS} of {MAX_LARGE_BODIES}, for as long as a slow body takes.",
)

ID = re.compile(r"[\x21-\x7e]{1,100}")

log = structlog.get_logger()


def routes(database: Database, limits: Limits, topics: Collection[str]) -> list[Route]:
    """The route for webhooks. `topics`: those that are handled."""
    inbox = Inbox(database)
    secrets = database.resources.client_secrets
    large = Slots(
        LARGE_BODIES, MAX_LARGE_BODIES, timeout=LARGE_BODY_WAIT_SECONDS, max_per_address=MAX_LARGE_BODIES_PER_ADDRESS
    )

    async def receive(caller: Caller, request: Request) -> Reply:
        length = request.headers.get(b"content-length", b"")
        if length.isdigit() and len(length) < 10 and MAX_BODY < int(length) <= MAX_BODY_BYTES:
            async with large.slot_of(caller.owner):
                body = await read_body(request, max_bytes=MAX_BODY_BYTES)
        else:
            body = await read_body(request)
        if not signatures.is_webhook_signed(body, request.headers.get(b"x-shopify-hmac-sha256", b""), secrets):
            raise INVALID_SIGNATURE(
                hint="Send a JSON object, and sign it as it is sent with the client secret of the app."
            )
        topic = _text(request.headers, b"x-shopify-topic")
        if topic in topics:
            await inbox.store(_received(request.headers, topic, body))
        else:
            DELIVERIES.labels(topic if topic in COMPLIANCE else "others", "not needed").inc()
        return Reply(200)

    handler = Handler(Access("receive_webhook"), limits, receive, envelope(error_body), methods=("POST",))
    return [Route(SHOPIFY_WEBHOOKS_PATH, handler)]


def _received(headers: Headers, topic: str, body: bytes) -> ReceivedDelivery:
    """The stored form of a delivery. Raises `bad_request`."""
    domain, webhook_id = _text(headers, b"x-shopify-shop-domain"), _text(headers, b"x-shopify-webhook-id")
    if not is_domain(domain) or not ID.fullmatch(webhook_id):
        raise BAD_REQUEST("X-Shopify-Shop-Domain or X-Shopify-Webhook-Id is missing or malformed.")
    try:
        payload = stored_payload(topic, body)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        # Not stored, because it may have data of customers. The platform sends it again for four hours.
        log.error("a webhook cannot be read", topic=topic, webhook_id=webhook_id, error=str(error))
        DELIVERIES.labels(topic, "unreadable").inc()
        raise BAD_REQUEST("The body is not one of its topic.") from error
    event_id = _text(headers, b"x-shopify-event-id")
    return ReceivedDelivery(
        domain,
        topic,
        webhook_id,
        event_id if ID.fullmatch(event_id) else None,
        _moment(_text(headers, b"x-shopify-triggered-at")),
        payload,
    )


def _text(headers: Headers, name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1")


def _moment(text: str) -> dt.datetime | None:
    """A moment with its time zone; None for any other text."""
    try:
        moment = msgspec.convert(text, dt.datetime)
    except msgspec.ValidationError:
        return None
    return moment if moment.tzinfo else None
