"""Partner webhooks of the payment processor. One only names a payment, refund, dispute or account to read.

A message is stored once, in the transaction that marks the rows it names as due. So it is answered quickly, and a
message that comes again, late, or in another order does no harm. Its signature, `Stripe-Signature:
t=<seconds>,v1=<hexadecimal>[,v1=…]`, covers the time and the exact bytes, so that neither can be changed, and no old
message can be sent again.

The former addresses to which the processor sent organizers back are here too.
"""

import hmac
import re
import time
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from holdfast.events.payments import payout_accounts, refunds
from holdfast.events.problems import PAYMENTS_NOT_CONFIGURED, SIGNATURE_REFUSED
from holdfast.events.resources import Database, Tx
from holdfast.events.seats.held_seats import PAYMENTS_CHANNEL
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller, partner
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import BAD_REQUEST, Problem, refuses
from holdfast.kit.http.body import read_body
from holdfast.kit.http.handler import Access, Handler, Reply, Request, envelope
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, single
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.site import redirect

TOLERANCE_SECONDS = 300
"""The largest difference between the time of a message and ours."""

MAX_HEADER_CHARACTERS = 1_000
"""The most characters that the header may have."""

SignatureStatus = Literal["good", "missing", "malformed", "stale", "forged"]


def check(header: str, body: bytes, secrets: Sequence[str], now: float) -> SignatureStatus:
    """Whether one of the secrets signed a message, and at an acceptable time.

    secrets    the secret of the endpoint; two while it is being replaced
    now        seconds since 1970
    """
    if not header:
        return "missing"
    parts = [tuple(part.strip().partition("=")[::2]) for part in header[:MAX_HEADER_CHARACTERS].split(",")]
    times = [value for name, value in parts if name == "t"]
    signatures = [value for name, value in parts if name == "v1"]
    if len(times) != 1 or not times[0].isascii() or not times[0].isdigit() or len(times[0]) > 12 or not signatures:
        return "malformed"
    expected = [sign(secret, int(times[0]), body) for secret in secrets]
    if not any(
        hmac.compare_digest(own_signature.encode(), signature.encode())
        for own_signature in expected
        for signature in signatures
    ):
        return "forged"
    return "good" if abs(now - int(times[0])) <= TOLERANCE_SECONDS else "stale"


def sign(secret: str, time: int, body: bytes) -> str:
    """The signature of a message, in hexadecimal."""
    return hmac.digest(secret.encode(), b"%d." % time + body, sha256).hex()


class ReceiveMessage(Command):
    """A message that the processor signed."""

    body: bytes


class _Object(Struct):
    id: str = ""
    object: str = ""
    payment_intent: str | None = None
    client_reference_id: str | None = None
    success_url: str | None = None


class _Data(Struct):
    object: _Object = msgspec.field(default_factory=_Object)


class _RelatedObject(Struct):
    id: str = ""
    type: str = ""


class _Message(Struct):
    """The fields of a message that are read. Messages of the newer API have `related_object` instead of `data`."""

    id: str
    type: str
    data: _Data = msgspec.field(default_factory=_Data)
    related_object: _RelatedObject | None = None


PAYMENT_ID = re.compile(r"[1-9][0-9]{0,17}")
"""The ids of our payments, as the processor's books have them."""

REASONS = {
    "missing": "The header Stripe-Signature is missing.",
    "malformed": "The header Stripe-Signature cannot be read.",
    "forged": "The signature is not that of this endpoint.",
    "stale": "The message was signed more than five minutes ago, or the clock of this machine is wrong.",
}


def require_signature(settings: Settings, header: bytes, body: bytes) -> None:
    """Raise `signature_refused` unless the processor signed a body. `header`: the value of Stripe-Signature."""
    secrets = settings.stripe_webhook_secrets
    if not secrets:
        raise PAYMENTS_NOT_CONFIGURED("STRIPE_WEBHOOK_SECRET is not set.")
    status = check(header.decode("latin-1"), body, secrets, time.time())
    if status != "good":
        raise SIGNATURE_REFUSED(REASONS[status])


@refuses(BAD_REQUEST)
async def receive(tx: Tx, caller: Caller, command: ReceiveMessage) -> None:
    """Store a message that the processor signed, and mark the rows it names as due."""
    try:
        message = msgspec.json.decode(command.body, type=_Message)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise BAD_REQUEST("The message is no event of the payment processor.") from error
    object_ids = _object_ids(message)
    is_new = await tx.value(
        """
        insert into processor_events (id, kind, object_id) values (%(id)s, %(kind)s, %(object)s)
            on conflict do nothing returning true
        """,
        {"id": message.id[:255], "kind": message.type[:255], "object": object_ids[0][:255] if object_ids else None},
    )
    if is_new and object_ids:
        await _record_session(tx, message.data.object)
        await mark_due(tx, object_ids)
        object = message.data.object
        if object.object == "dispute" and object.payment_intent:
            await refunds.record_dispute(tx, object.id[:255], object.payment_intent[:255])


async def mark_due(tx: Tx, ids: Sequence[str]) -> None:
    """Mark payments, refunds and accounts of organizers that have one of these ids at the processor as due."""
    await tx.run(
        """
        with payment as (
            update payments set due_at = now()
             where session_id = any(%(ids)s) or intent_id = any(%(ids)s)),
        refund as (update refunds set due_at = now() where refund_id = any(%(ids)s)),
        account as (
            update payout_accounts set due_at = now() where account_id = any(%(ids)s))
        select
        """,
        {"ids": [*ids]},
    )
    await tx.notify(PAYMENTS_CHANNEL)


async def _record_session(tx: Tx, session: _Object) -> None:
    """Store the session of a payment whose opening call got no answer.

    The payment id in it proves nothing: other users of the same account, and visitors of a payment link there, can
    choose it too. The address to which payers return has a link that we signed, and is the one we sent with this
    payment.
    """
    if session.object == "checkout.session" and PAYMENT_ID.fullmatch(session.client_reference_id or ""):
        await tx.run(
            """
            update payments set state = 'open', session_id = %(session_id)s, checkout = null
             where id = %(id)s::bigint and state = 'opening' and session_id is null
               and checkout ->> 'done_url' = %(done_url)s
            """,
            {"id": session.client_reference_id, "session_id": session.id, "done_url": session.success_url},
        )


def _object_ids(message: _Message) -> list[str]:
    """The ids that a message names."""
    if message.related_object:
        return [message.related_object.id]
    object = message.data.object
    return [id for id in (object.id, object.payment_intent) if id]


async def forget(tx: Tx) -> int:
    """Delete a batch of messages older than 40 days: the processor resends none after 30. Returns their number."""
    return await tx.value(
        """
        with old_event as (
            select id from processor_events where received_at < now() - interval '40 days'
             order by received_at limit 5000 for update skip locked),
        deleted_event as (
            delete from processor_events using old_event where processor_events.id = old_event.id returning 1)
        select count(*) from deleted_event
        """
    )


RECEIVE = Operation("receive_payment_message", None, single(receive))
OPERATIONS = (RECEIVE,)
"""An operation of pages alone: it has no route of the API and no tool."""

PROCESSOR = partner("payment processor")
"""The caller of messages whose signature was checked. Its work does not wait behind that of strangers."""


def routes(database: Database, runner: Runner, limits: Limits) -> list[Route]:
    """The routes for the payment processor."""
    receive = runner.run_of(RECEIVE)

    async def take(_: Caller, request: Request) -> Reply:
        body = await read_body(request)
        signed = request.headers.get(b"stripe-signature", b"")
        require_signature(database.resources.settings, signed, body)
        await receive(PROCESSOR, ReceiveMessage(body=body))
        return Reply(204)

    async def again(caller: Caller, request: Request) -> Reply:
        return redirect(payout_accounts.PAYOUTS)

    async def done(caller: Caller, request: Request) -> Reply:
        return redirect(payout_accounts.RETURN)

    return [
        Route(
            "/stripe/webhook",
            Handler(Access("payment_messages"), limits, take, envelope(Problem.body), methods=("POST",)),
        ),
        # Onboarding that began before an upgrade ends here: only a session of the console continues.
        Route("/payouts/again/{link}", Handler(Access("payouts_again"), limits, again, SITE.refuse)),
        Route("/payouts/done", Handler(Access("payouts_done"), limits, done, SITE.refuse)),
    ]
