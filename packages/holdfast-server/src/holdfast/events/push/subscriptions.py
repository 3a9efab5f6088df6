"""Subscriptions: browsers that ask to be told when a registration moves up from the waiting list.

The holder of the link of a registration asks for it on the page where the person waits, and can take it back there. A
browser names the address of its push service, so the address may be anything: it is called through the outbound client,
which reaches public addresses only. Address and keys are stored sealed, and deleted with the registration.
"""

from hashlib import sha256
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from holdfast.events.push.encryption import read_browser_keys, sender_keys
from holdfast.events.registrations.links import OwnRegistrationCommand
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import rule
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, invalid, refuses

MAX_SUBSCRIPTIONS = 5
"""The most browsers of one registration: a further one takes the place of the oldest."""

MAX_ADDRESS_CHARACTERS = 1_000


class StoredSubscription(Struct):
    """What is sealed of a subscription.

    endpoint        the address of the browser at its push service
    p256dh, auth    the public key of the browser, and the secret that it shares, in base64 for URLs
    sender_key      the public key of the service to which the browser has subscribed
    """

    endpoint: str
    p256dh: str
    auth: str
    sender_key: str


class Subscribe(OwnRegistrationCommand):
    """Asks to tell a browser when the registration moves up from the waiting list. See `StoredSubscription`."""

    endpoint: Annotated[str, Meta(max_length=MAX_ADDRESS_CHARACTERS)]
    p256dh: Annotated[str, Meta(max_length=200)]
    auth: Annotated[str, Meta(max_length=100)]
    sender_key: Annotated[str, Meta(max_length=200)]
    language: Annotated[str, Meta(pattern="^[a-z]{2}$")]

    @rule("endpoint")
    def _is_web_address(self) -> str | None:
        try:
            address = urlsplit(self.endpoint)
        except ValueError:
            return "must be a web address"
        return None if address.scheme in {"http", "https"} and address.netloc else "must be a web address"

    @rule("p256dh")
    def _has_keys(self) -> str | None:
        try:
            read_browser_keys(self.p256dh, self.auth)
        except ValueError:
            return "must be the keys of a browser"
        return None


class Unsubscribe(OwnRegistrationCommand):
    """Asks to tell a browser nothing any more."""

    endpoint: Annotated[str, Meta(max_length=MAX_ADDRESS_CHARACTERS)]


@refuses(NOT_FOUND, VALIDATION_FAILED)
async def subscribe(tx: Tx, caller: Caller, command: Subscribe) -> None:
    """Store a browser that is told when a registration moves up. The registration must be on the waiting list."""
    if command.sender_key not in [key.public_key for key in sender_keys(tx.resources.secret)]:
        raise invalid({"sender_key": ["must be the present key of the service; load the page again"]})
    subscription = StoredSubscription(command.endpoint, command.p256dh, command.auth, command.sender_key)
    is_stored = await tx.value(
        """
        with waiting_registration as materialized (
            select registrations.event_id, registrations.user_id, events.organizer_id,
                   datetime + interval '1 day' as forget_at
              from registrations join users on users.id = user_id join events on events.id = event_id
             where event_id = %(event_id)s and public_id = %(public_id)s and arrival = %(arrival)s
               and status = 'waitlisted' and reason is null
               for no key update of registrations),
        stored_subscription as (
            insert into push_subscriptions (event_id, user_id, organizer_id, digest, sealed, language, forget_at)
            select event_id, user_id, organizer_id, %(digest)s, %(sealed)s, %(language)s, forget_at
              from waiting_registration
                on conflict (event_id, user_id, digest)
                do update set sealed = excluded.sealed, language = excluded.language, inserted_at = now()),
        surplus as (
            delete from push_subscriptions
             where id in (select id from push_subscriptions join waiting_registration using (event_id, user_id)
                           where digest <> %(digest)s order by inserted_at desc, id desc offset %(others)s))
        select true from waiting_registration
        """,
        {
            "event_id": command.event_id,
            "public_id": command.public_id,
            "arrival": command.arrival,
            "digest": _digest(command.endpoint),
            "sealed": tx.resources.secret.seal(msgspec.json.encode(subscription).decode()),
            "language": command.language,
            "others": MAX_SUBSCRIPTIONS - 1,
        },
    )
    if not is_stored:
        raise NOT_FOUND("This registration is not on the waiting list.")


async def unsubscribe(tx: Tx, caller: Caller, command: Unsubscribe) -> None:
    """Forget a browser. One that is not stored is forgotten already."""
    await tx.run(
        """
        delete from push_subscriptions
         where event_id = %(event_id)s and user_id = (select id from users where public_id = %(public_id)s)
           and digest = %(digest)s
        """,
        {"event_id": command.event_id, "public_id": command.public_id, "digest": _digest(command.endpoint)},
    )


def _digest(endpoint: str) -> bytes:
    return sha256(endpoint.encode()).digest()


async def forget_old(tx: Tx) -> int:
    """Delete a batch of the subscriptions for events that began a day ago. Returns the number looked at.

    Those of an event that was put off are looked at again then.
    """
    return await tx.value(
        """
        with old_subscription as (
            select id, event_id from push_subscriptions
             where forget_at < now() order by forget_at limit %(limit)s for update skip locked),
        checked_subscription as (
            select old_subscription.id, event.forget_at from old_subscription
             cross join lateral (select datetime + interval '1 day' as forget_at from events
                                  where id = old_subscription.event_id limit 1) as event),
        deleted_subscription as (
            delete from push_subscriptions using checked_subscription
             where push_subscriptions.id = checked_subscription.id and checked_subscription.forget_at < now()),
        delayed_subscription as (
            update push_subscriptions set forget_at = checked_subscription.forget_at from checked_subscription
             where push_subscriptions.id = checked_subscription.id and checked_subscription.forget_at >= now())
        select count(*) from old_subscription
        """,
        {"limit": 1_000},
    )
