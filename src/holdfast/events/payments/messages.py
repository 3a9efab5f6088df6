"""Messages of the payment processor (webhooks). Each only says what to look at; it is looked at afterwards.

A message is stored once, in the transaction that marks what it is about as due. So it is answered quickly, and it does
no harm if it comes again, late, or in another order.
"""

import re
import time
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from holdfast.events.payments import disputes, signature
from holdfast.events.problems import PAYMENTS_NOT_CONFIGURED, SIGNATURE_REFUSED
from holdfast.events.registrations.opening import CHANNEL
from holdfast.events.resources import Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.problems import BAD_REQUEST, refuses


class Receive(Command):
    """A message as it came: its body, and its header `Stripe-Signature`."""

    body: bytes
    signature: str


class _Object(Struct):
    id: str = ""
    object: str = ""
    payment_intent: str | None = None
    client_reference_id: str | None = None


class _Data(Struct):
    object: _Object = msgspec.field(default_factory=_Object)


class _Related(Struct):
    id: str = ""
    type: str = ""


class _Message(Struct):
    """What is read of a message. `related_object` is what messages of the newer interface have instead of `data`."""

    id: str
    type: str
    data: _Data = msgspec.field(default_factory=_Data)
    related_object: _Related | None = None


ID = re.compile(r"[1-9][0-9]{0,17}")
"""What our payments are called in the processor's books."""

REASONS = {
    "missing": "The header Stripe-Signature is missing.",
    "malformed": "The header Stripe-Signature cannot be read.",
    "forged": "The signature is not that of this endpoint.",
    "stale": "The message was signed more than five minutes ago, or the clock of this machine is wrong.",
}


@refuses(SIGNATURE_REFUSED, PAYMENTS_NOT_CONFIGURED, BAD_REQUEST)
async def receive(tx: Tx, caller: Caller, command: Receive) -> None:
    """Take a message, if the processor signed it."""
    secrets = tx.resources.settings.stripe_webhook_secrets
    if not secrets:
        raise PAYMENTS_NOT_CONFIGURED("STRIPE_WEBHOOK_SECRET is not set.")
    found = signature.check(command.signature, command.body, secrets, time.time())
    if found != "good":
        raise SIGNATURE_REFUSED(REASONS[found])
    try:
        message = msgspec.json.decode(command.body, type=_Message)
    except msgspec.DecodeError as error:
        raise BAD_REQUEST("The message is no event of the payment processor.") from error
    about = _about(message)
    is_new = await tx.value(
        """
        insert into processor_events (id, kind, object_id) values (%(id)s, %(kind)s, %(object)s)
            on conflict do nothing returning true
        """,
        {"id": message.id[:255], "kind": message.type[:255], "object": about[0][:255] if about else None},
    )
    if is_new and about:
        await _know_session(tx, message.data.object)
        await look_at(tx, about)
        thing = message.data.object
        if thing.object == "dispute" and thing.payment_intent:
            await disputes.hear(tx, thing.id[:255], thing.payment_intent[:255])


async def look_at(tx: Tx, ids: Sequence[str]) -> None:
    """Mark what has one of the ids at the processor as due: payments, and accounts of organizers."""
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
    await tx.notify(CHANNEL)


async def _know_session(tx: Tx, session: _Object) -> None:
    """Store the session of a payment whose opening was not answered."""
    if session.object == "checkout.session" and ID.fullmatch(session.client_reference_id or ""):
        await tx.run(
            """
            update payments set state = 'open', session_id = %(session_id)s, checkout = null
             where id = %(id)s::bigint and state = 'opening' and session_id is null
            """,
            {"id": session.client_reference_id, "session_id": session.id},
        )


def _about(message: _Message) -> list[str]:
    """The ids of what a message is about."""
    if message.related_object:
        return [message.related_object.id]
    thing = message.data.object
    return [id for id in (thing.id, thing.payment_intent) if id]


async def forget(tx: Tx) -> int:
    """Delete a portion of the messages of 40 days ago: the processor sends none again after 30. Returns how many."""
    return await tx.value(
        """
        with old as (
            select id from processor_events where received_at < now() - interval '40 days'
             order by received_at limit 5000 for update skip locked),
        deleted as (delete from processor_events using old where processor_events.id = old.id returning 1)
        select count(*) from deleted
        """
    )
