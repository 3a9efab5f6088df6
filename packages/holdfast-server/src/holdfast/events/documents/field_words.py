"""What each field of a request or an answer means, as the reference for people says it.

`FIELD_WORDS` has a field by its name, or by the object or the operation that has it and its name. A field without words
here has those of its schema, which are brief: agents read them with every call.
"""

from collections.abc import Mapping
from typing import Any

MONEY = "in minor units of the currency: 1200 is €12.00"
"""What an amount of money is counted in."""

MONEY_FIELDS = frozenset(
    {"amount", "amount_paid", "current_price", "max_price", "min_price", "new_price", "original_price", "price"}
)
"""The fields that are amounts of money."""

PHOTO_KEY = "The key of the photo, one of the `image_keys` of the event."
DRAW = "The time at which the list of entries closes. The entries are then drawn by lot."

FIELD_WORDS: Mapping[str, str] = {
    "Idempotency-Key": "A text of your choice, best a random UUID. If the same request comes again within 24 hours "
    "with "
    "the same key, it is done only once and gets the same answer.",
    "AcceptedRegistration.status": "Always `accepted`: the registration is stored, and its result is not known yet.",
    "AcceptedVisitor.status": "Always `accepted`: the visitor has a place.",
    "ApiKey.key": "The whole key when it is created. Later only its first 8 characters, and then stars.",
    "Agent.hosted_registration_ready": "False while nobody can register: registration is closed, or the price cannot "
    "be paid.",
    "Error.error": "What went wrong, in a sentence.",
    "Error.errors": "With the status 422: what is wrong with each field.",
    "Error.retry_after": "How many seconds to wait before the next try.",
    "Onboarding.onboarding_complete": "Whether the events of the organizer can be paid for.",
    "Onboarding.onboarding_url": "A page of the console. The organizer opens it in a browser and signs in. It then "
    "leads to the "
    "payment processor.",
    "Organizer.email": "The e-mail address with which the organizer signs in.",
    "Receipt.nonce": "What opens the commitment `person` of the promise: 32 hexadecimal digits.",
    "Receipt.path": "The hashes from the promise to the signed root, in base64.",
    "Receipt.promise": "What is promised, as JSON: the log, the time, the person, and within how many seconds.",
    "Receipt.signed": "The signed root of all promises that were made together, as a signed note (C2SP).",
    "ResentMessages.next_after": "More messages may follow: send the same request with this value as `after`.",
    "Status.estimated_wait_seconds": "How long the visitor still waits, at the present rate. Missing while the room "
    "is paused.",
    "Status.position": "The place of the visitor: 1 is the first. Before a draw: how many take part.",
    "Status.token": "The token with which the visitor comes in, a JWT.",
    "Upload.expires_in": "For how many seconds `upload_url` can be used.",
    "Upload.key": "The name of the photo in other requests, once the file is uploaded.",
    "WebhookEndpoint.public_key": "The key with which your program verifies messages of the signature `v1a`.",
    "WebhookEndpoint.secret": "The secret with which your program verifies messages of the signature `v1`. It is "
    "shown only here.",
    "WebhookEndpoint.status": "`active`: messages are sent. `paused`: what happens is not sent. `failing`: nothing "
    "was delivered "
    "for days, and messages wait.",
    "create_queue.active": "False creates the waiting room paused.",
    "resend_webhook_messages.after": "Only messages after this one: the `next_after` of the answer before.",
    "resend_webhook_messages.only_failed": "True leaves out what was delivered.",
    "resend_webhook_messages.since": "The first moment whose messages are sent again.",
    "resend_webhook_messages.until": "The last moment whose messages are sent again; null: now.",
    "verify_queue_token.consume": "True uses the token up: it is not valid a second time.",
    "verify_queue_token.token": "The token that the visitor brought to your site.",
    "update_queue.active": "False pauses the waiting room: nobody joins, nobody is let in, and places are kept.",
    "email": "The e-mail address. When the data of a person was erased: `erased-<user_id>@erased.invalid`.",
    "name": "The name of the person; null: you do not know it.",
    "pricing_mode": "`free`: no price. `fixed`: one price. `dynamic`: the price moves with demand, between "
    "`min_price` and "
    "`max_price`.",
    "starts_at": "The time from which visitors are let in; null: at once.",
    "Agent.payment": "Whether people pay for the event, and whether they can pay now.",
    "ApiKey.active": "True until the key is revoked.",
    "ApiKey.name": "The name that you gave the key, such as the program that uses it.",
    "ApiKey.user_id": "The id of the organizer to whom the key belongs; null for an admin key.",
    "Error.code": "The problem, as a word of a closed list. Let your program branch on it.",
    "Error.hint": "What to do next, in a sentence.",
    "Event.status": "`active`: people can register. `full`: every seat is taken. `expired`: the start has passed. "
    "`cancelled`: it was cancelled.",
    "Organizer.name": "The name of the organizer, as the public sees it.",
    "Organizer.role": "Always `organizer`: the account publishes events.",
    "Organizer.slug": "The last part of the address of the organizer's page, such as `ada-events`.",
    "Organizer.public_path": "The address of the organizer's page without its host.",
    "Organizer.public_url": "The address of the organizer's page.",
    "Pagination.count": "How many items this page has.",
    "Payment.status": "`required`: people pay. `not_required`: the event is free. `unavailable`: the event has a "
    "price, "
    "but the organizer has not set up payouts.",
    "PriceChange.reason": "What changed the price. `registration`: a seat went or came back. `tick`: time passed. "
    "`manual_change`: a price was edited. `other`: the capacity or the start was edited. `init`: the first price.",
    "PriceChange.timestamp": "The time of the change.",
    "Queue.active": "False while the waiting room is paused: nobody joins, and nobody is let in.",
    "Queue.description": "What visitors read while they wait; plain text.",
    "Queue.ends_at": "The time from which nobody joins and nobody is let in; null: no end.",
    "Queue.max_queue_size": "How many visitors may wait at most; null: no limit.",
    "Queue.release_rate": "How many visitors are let in each minute.",
    "Receipt.index": "The place of the promise among those that were signed together, counted from 0.",
    "RegisteredOrganizer.api_key": "The first key of the organizer. The whole key is shown only here.",
    "RegisteredOrganizer.authentication": "How a program sends the key.",
    "RegisteredOrganizer.organizer": "The organizer that was registered, with an id and a page.",
    "Registration.id": "The id of the registration: `<event_id>-<user_id>`.",
    "Registration.received_at": "The time of arrival in UTC, exact to the microsecond. The order of these times "
    "decides.",
    "Registration.status": "`registered`: the person has a seat. `waitlisted`: the person has a place on the waiting "
    "list.",
    "ResentMessages.count": "How many messages are sent again.",
    "Status.reason": "Why no place is given: the visitor was let in already.",
    "Status.status": "`waiting`: the visitor has a place. `not_in_queue`: the visitor has none, or was let in.",
    "Status.token_expires_at": "The time until which the token is valid.",
    "TokenData.visitor_id": "The visitor, by the name that your program gave when the visitor joined.",
    "TokenVerification.data": "What the token says, and how often it was verified.",
    "UserPage.data": "The users on this page of the list.",
    "WebhookAttempt.attempt": "The number of the attempt: 1 for the first.",
    "WebhookAttempt.error": "Why the attempt failed; null: the message was delivered.",
    "WebhookAttempt.status": "The HTTP status with which your program answered; null: there was no answer.",
    "WebhookDelivery.data": "What happened. Its fields depend on the type of the message.",
    "WebhookDelivery.number": "The number of the message among all about this subject, at this endpoint: 1, 2, 3 …",
    "WebhookDelivery.status": "`waiting`: the message is sent as soon as possible. `delivered`: your program has "
    "taken it. "
    "`failed`: it was given up.",
    "WebhookEndpoint.types": "The types of messages that the endpoint gets; an empty list: all types.",
    "WebhookEndpoint.url": "The https address to which messages are sent.",
    "add_event_photo.key": "The key of an upload, from `presign_upload`. Send either `key` or `url`.",
    "add_event_photo.url": "The public address of a picture, which the service downloads. Send either `url` or `key`.",
    "create_api_key.name": "What the key is for, such as the name of the program.",
    "create_api_key.user_id": "The organizer for whom the key is made. Only an admin key needs this.",
    "create_event.body": "The text about the event, as Markdown. Each line stays a line.",
    "create_event.currency": "The currency as three letters (ISO 4217), such as EUR. It can never change.",
    "create_event.datetime": "The start of the event, such as 2031-05-01T18:00:00Z. Without an offset it is UTC.",
    "create_event.ends_at": "The end of the event, later than `datetime`; null: no end is set.",
    "create_event.image_keys": "Keys of uploaded photos, from `presign_upload`. The first becomes the main photo.",
    "create_event.opens_at": "Until this time, registrations count as entries, and seats are drawn by lot. After it, "
    "seats "
    "go in order of arrival.",
    "create_event.organizer_id": "The organizer of the event. Only an admin key sends this.",
    "create_event.price": f"What a seat costs, {MONEY}. 0 for `free`; for `dynamic`, the first price.",
    "create_event.recurrence_frequency": "The unit in which the event repeats; `none`: it does not repeat.",
    "create_event.recurrence_interval": "After how many units the event repeats, such as 2 for every second week.",
    "create_queue.event_id": "The event behind the waiting room. Only visitors who were let in can register. Send "
    "either "
    "`event_id` or `target_url`.",
    "create_queue.target_url": "The address to which visitors go when they are let in. Send either `target_url` or "
    "`event_id`.",
    "create_queue.title": "The title that visitors read.",
    "create_queue.token_ttl_minutes": "How many minutes a visitor has to come in, and then how long the token is "
    "valid.",
    "create_registration.amount_paid": f"What the person has paid you, {MONEY}. Without it, the current price.",
    "create_registration.email": "The address of the person. Send either `email` or `user_id`.",
    "create_registration.notify": "Whether the person gets e-mails about the registration. Without it, the operator "
    "decides.",
    "create_registration.queue_token": "The token of a visitor whom a waiting room has let in. It is used up.",
    "create_registration.user_id": "A person who has registered before. Send either `user_id` or `email`.",
    "create_webhook_endpoint.types": "The types of messages that the endpoint gets. Without it, all types.",
    "create_webhook_endpoint.language": "The language of e-mails about the endpoint, such as `de`; null: English.",
    "list_registrations.event_id": "Only registrations for this event.",
    "list_webhook_deliveries.message_id": "Only the message with this id.",
    "list_webhook_deliveries.status": "Only messages with this status.",
    "presign_upload.filename": "The name of the file, for your own records.",
    "register_organizer.email": "Your e-mail address. Links to sign in are sent there.",
    "register_organizer.name": "The name that the public sees.",
    "register_organizer.password": "A password for the console. Without it, you sign in by a link in an e-mail.",
    "register_organizer.slug": "The last part of the address of your page, such as `ada-events`: a-z, 0-9 and "
    "dashes. No other "
    "organizer may have it.",
    "remove_event_photo.key": PHOTO_KEY,
    "revoke_api_key.id": "The id of the key, from `list_api_keys`.",
    "set_primary_photo.key": PHOTO_KEY,
    "update_event.currency": "It cannot change. You may send the same value.",
    "update_event.pricing_mode": "It cannot change. You may send the same value.",
    "update_event.published": "True publishes a draft. False makes it a draft again, only before the first "
    "registration.",
    "update_event.ends_registration": "Only tools of agents use this: `datetime` may then be in the past.",
    "update_webhook_endpoint.active": "False pauses the endpoint: what happens meanwhile is not sent.",
    "action": "What your program does with `url`.",
    "address": "The street and the town.",
    "agent": "What an agent needs to publish the event.",
    "agent_payment_required": "Always false: an agent never pays.",
    "attempts": "How often the message was sent so far.",
    "attempted_at": "The time at which the message was sent.",
    "body": "The text about the event, as Markdown.",
    "cancellation_hours": "Until how many hours before the start people can cancel.",
    "cancelled_at": "The time at which the event was cancelled; null: it was not.",
    "capacity": "How many seats the event has.",
    "content_length": "The length of the file in bytes.",
    "content_type": "The media type of the file.",
    "created_at": "The time at which it was created.",
    "current_price": f"What a seat costs now, {MONEY}; null for a free event.",
    "amount_paid": f"What the person has paid, {MONEY}.",
    "data": "The items on this page of the list.",
    "datetime": "The start of the event.",
    "deliverables": "The addresses that an agent hands to its organizer.",
    "description": "A sentence for people. Programs need not read it.",
    "draw_at": f"{DRAW} Without it, order of arrival decides.",
    "embed_code": "HTML that shows the form for registration in your own page.",
    "embed_url": "The address of the page that fits into a frame.",
    "ended_at": "The time at which the message was delivered or given up; null: neither yet.",
    "ends_at": "The end of the event; null: no end is set.",
    "event_id": "The id of the event, from `list_events`.",
    "endpoint_id": "The id of the endpoint, from `list_webhook_endpoints`.",
    "event_is_paid": "Whether the event has a price.",
    "expires_at": "The time until which the token is valid.",
    "failing_since": "The time of the first failure since the last delivery; null: nothing fails.",
    "first_use": "Whether the token was verified for the first time.",
    "has_more": "True if more items follow on the next page.",
    "header": "The HTTP header in which a program sends the key.",
    "hosted_registration": "Always true: each event has a page with a form.",
    "id": "A number that names this object in other requests.",
    "image_keys": "The keys of the photos, in order. The first is the main photo.",
    "image_urls": "The addresses of the photos, in order. The first is the main photo.",
    "inserted_at": "The time at which it was created.",
    "issued_at": "The time at which the visitor was let in.",
    "latitude": "Degrees north of the equator, for the map.",
    "limit": "How many items a page has at most.",
    "location_name": "The name of the place, such as Studio 4.",
    "longitude": "Degrees east of Greenwich, for the map.",
    "max_price": f"The highest price of a dynamic price, {MONEY}.",
    "max_queue_size": "How many visitors may wait at most; null: no limit.",
    "message": "A sentence for people. Programs need not read it.",
    "message_id": "The id of the message: the header `webhook-id` when it is sent.",
    "milliseconds": "How long your program took to answer.",
    "min_price": f"The lowest price of a dynamic price, {MONEY}.",
    "new_price": f"The price after the change, {MONEY}.",
    "next": "The request that your program makes next.",
    "next_attempt_at": "The time of the next attempt; null: none is planned, or the message before this one still "
    "waits.",
    "note": "A sentence for people. Programs need not read it.",
    "offset": "How many items of the list are skipped.",
    "opens_at": "Until this time, registrations count as entries of a draw; null: there is no draw.",
    "ordered": "Whether a message waits until the one before it about the same subject is delivered.",
    "organizer_id": "The id of the organizer, from `list_organizers`.",
    "original_price": f"The price before the change, {MONEY}; null for the first price.",
    "pagination": "Which part of the whole list this page is.",
    "payment": "Whether people pay for the event, and whether they can pay now.",
    "platform_fee_collection": "How the operator of the service gets its fee.",
    "platform_fee_percent": "The fee of the operator, in percent of each payment.",
    "platform_fee_source": "From whose payment the fee is taken; null: there is no fee.",
    "price": f"What a seat costs, {MONEY}.",
    "primary_image_url": "The address of the main photo; null: there is none.",
    "public_id": "The id of the person, 8 characters: the `user_id` of requests about registrations.",
    "public_log": "Whether the order of registrations is published, so that anyone can check it.",
    "public_url": "The address of the page for the public.",
    "published": "False: a draft, which only you see.",
    "queue_id": "The id of the waiting room, from `list_queues`.",
    "queue_length": "How many visitors wait now.",
    "receipt": "A signed promise of the place, with which anyone can check the order later.",
    "recurrence_frequency": "The unit in which the event repeats; `none`: it does not repeat.",
    "recurrence_interval": "After how many units the event repeats, such as 2 for every second week.",
    "redirect_url": "The address to which the visitor goes now: `target_url` with the token.",
    "registration_count": "How many seats are taken now.",
    "registration_processing": "Always sorted: seats go in order of arrival.",
    "release_rate": "How many visitors are let in each minute.",
    "role": "What the account may do: `organizer` publishes events, `user` registers, `admin` does everything.",
    "signature": "How messages are signed. `v1`: HMAC with a shared secret. `v1a`: Ed25519 with a public key.",
    "slug": "The last part of the address of the organizer's page; null for other users.",
    "status_reason": "The cause of this status.",
    "stripe_account_id": "The account of the organizer at the payment processor.",
    "student_payment_processor": "How the payments of people are charged; null: people do not pay.",
    "student_payment_required": "Whether people pay for a seat.",
    "subject": "What the message is about, such as `event 7`.",
    "target_url": "The address to which visitors go when they are let in.",
    "timezone": "The time zone in which people read the date, such as Europe/Berlin; null: UTC.",
    "title": "The title of the event, as plain text.",
    "Queue.title": "The title of the waiting room, as visitors read it.",
    "update_queue.title": "The title that visitors read.",
    "update_queue.token_ttl_minutes": "How many minutes a visitor has to come in. It holds for new tokens.",
    "token_id": "A name for this token in your records: no other token has it.",
    "token_ttl_minutes": "How many minutes a visitor has to come in.",
    "type": "What happened, such as `registration.settled`.",
    "upload_url": "The address to which you PUT the file.",
    "url": "The address of the next request.",
    "AddedPhoto.url": "The address of the photo.",
    "AddedPhoto.key": "The key of the photo that was added.",
    "create_webhook_endpoint.url": "The https address to which messages are sent.",
    "user_id": "The id of the person, 8 characters.",
    "TokenData.use_count": "How often the token was verified here, this time included.",
    "valid": "Always true: a token that is not valid is refused with 401.",
    "visitor_id": "The name that your program gives the visitor: any text but `.` and `..`.",
    "waiting_room_url": "The address of the waiting room, to which you send visitors.",
    "Event.waiting_room_url": "The address of the waiting room before the event; null: there is none.",
    "waitinglist_capacity": "How many places the waiting list has.",
    "workflow": "Always the same: hand over `public_url` or `embed_code`.",
}


def words_of(name: str, schema: Mapping[str, Any], *owners: str) -> str:
    """What a field is. `owners`: the operation or the objects that have it; words for the first of them win."""
    words = (FIELD_WORDS.get(key) for key in (*(f"{owner}.{name}" for owner in owners), name))
    return next(filter(None, words), "") or schema.get("description", "")
