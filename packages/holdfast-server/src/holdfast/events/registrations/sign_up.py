"""Signing up: people register themselves on a form that needs no key.

A visitor may type an address of another person. So only the browser that registered the address sees the result, which
the secret of its form identifies. Another visitor learns only that the address is registered, and its details are sent
to the address itself (decision 31).
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from holdfast.accounts.addresses import Email, address_error, canonical
from holdfast.events.problems import EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, PAYMENT_UNAVAILABLE, QUEUE_REQUIRED
from holdfast.events.processor.currencies import is_payable
from holdfast.events.queues import event_releases
from holdfast.events.registrations.links import Link
from holdfast.events.registrations.model import MAX_NAME_CHARACTERS
from holdfast.events.registrations.refusals import REFUSALS, find_required_rooms, refusal
from holdfast.events.resources import Reader, Tx
from holdfast.events.seats import intake, settlement
from holdfast.kit.contract.command import Command, Id, rule
from holdfast.kit.contract.problems import NOT_FOUND, Problem, refuses
from holdfast.kit.operations.operation import Batch
from holdfast.kit.postgres.group_commit import LockedRow

_INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn"}
"""Unicode categories of invisible characters: control, format (such as bidi marks), and unassigned ones."""


_JOINERS = "\u200c\u200d"
"""Format characters that names in some languages need."""

DOUBLE_CLICK_SECONDS = 60


class SignUp(Command):
    """Asks to register the person with an address.

    name        as `clean_name` returns it
    language    the code of the language of the mails
    secret      the secret of the form: the same form that is sent again has the same
    queue_token the release token of the visitor; None: no waiting room has released the visitor
    """

    event_id: Id
    email: Email
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_CHARACTERS)] | None
    language: str
    secret: Annotated[str, Meta(min_length=32)]
    queue_token: str | None = None

    @rule("email")
    def _can_get_mails(self) -> str | None:
        return address_error(self.email)


class SignUpResult(Struct, frozen=True):
    """The registration that is stored.

    is_from_form  whether this form made it, so that the visitor may see its status
    is_repeated   whether it was received more than a minute ago: the form was sent again, and not by a double click
    is_stored     whether this request stored it
    """

    link: Link
    is_from_form: bool
    is_repeated: bool
    is_stored: bool = False


def clean_name(name: str) -> str | None:
    """A name as it is stored: without invisible characters and needless spaces. None if no character is left."""
    visible = "".join(
        "" if unicodedata.category(character) in _INVISIBLE_CATEGORIES and character not in _JOINERS else character
        for character in unicodedata.normalize("NFC", re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", name))
    )
    return " ".join(visible.split()).strip(_JOINERS) or None


@refuses(NOT_FOUND, EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, PAYMENT_UNAVAILABLE, QUEUE_REQUIRED)
async def sign_up(tx: Tx, batch: Batch[SignUp]) -> Sequence[SignUpResult | Problem | LockedRow]:
    """Store the registrations of people who filled in a form. A person who registers again keeps the place."""
    unpayable = await find_unpayable(tx, sorted({call.command.event_id for call in batch.calls}))
    commands = [call.command for call in batch.calls if call.command.event_id not in unpayable]
    stored_results = iter(await _store(tx, commands, waits=batch.waits) if commands else ())
    return [
        PAYMENT_UNAVAILABLE(unpayable[call.command.event_id])
        if call.command.event_id in unpayable
        else next(stored_results)
        for call in batch.calls
    ]


async def _store(tx: Tx, commands: Sequence[SignUp], *, waits: bool) -> list[SignUpResult | Problem | LockedRow]:
    requests = [
        intake.IntakeRequest(
            None,
            command.event_id,
            email=canonical(command.email),
            amount_paid=0,
            must_pay_online=True,
            name=command.name,
            language=command.language,
            form_digest=form_digest(command.secret),
            released_from=event_releases.NOT_RELEASED,
            release_token=command.queue_token,
        )
        for command in commands
    ]
    results = await event_releases.store_and_use_releases(tx, requests, waits=waits, can_commit_early=not waits)
    rooms = await find_required_rooms(tx, requests, results)
    if any(result.is_stored for result in results):
        await tx.notify(settlement.PENDING_CHANNEL)
    earlier = [
        (command.event_id, result.public_id)
        for command, result in zip(commands, results, strict=True)
        if result.code is None and result.arrival is None
    ]
    earlier_arrivals = iter(await find_arrivals(tx, earlier) if earlier else ())
    return [
        _refusal(command.event_id, result, rooms)
        or _new_result(command, result)
        or _earlier_result(command, result.public_id, *next(earlier_arrivals), is_stored=result.is_stored)
        for command, result in zip(commands, results, strict=True)
    ]


def _refusal(event_id: int, result: intake.IntakeResult, rooms: Mapping[int, str]) -> Problem | LockedRow | None:
    """The reason why a form was not accepted; None if it was. For visitors a draft does not exist."""
    return refusal(event_id, result._replace(code="not_found") if result.code == "event_draft" else result, rooms)


def _new_result(command: SignUp, result: intake.IntakeResult) -> SignUpResult | None:
    """The registration that this call has stored; None if it may be an earlier one."""
    if result.public_id is None or result.arrival is None:
        return None
    link = Link(command.event_id, result.public_id, result.arrival)
    return SignUpResult(link, is_from_form=True, is_repeated=False, is_stored=True)


def _earlier_result(
    command: SignUp,
    public_id: str | None,
    arrival: int | None,
    age: float | None,
    stored_digest: str | None,
    *,
    is_stored: bool,
) -> SignUpResult | Problem:
    if public_id is None or arrival is None or age is None:  # another transaction has just deleted it
        return REFUSALS["removed"](command.event_id)
    return SignUpResult(
        Link(command.event_id, public_id, arrival),
        is_from_form=stored_digest == form_digest(command.secret),
        is_repeated=age > DOUBLE_CLICK_SECONDS,
        is_stored=is_stored,
    )


def form_digest(secret: str) -> str:
    """The digest of the secret of a form, as it is stored with the registration that the form made."""
    return str(UUID(bytes=sha256(secret.encode()).digest()[:16]))


async def find_unpayable(reader: Reader, event_ids: Sequence[int]) -> dict[int, str]:
    """The events whose price cannot be paid, each with the reason: its organizer cannot be paid out, or the processor
    does not charge the price. So no seat is held that can never be paid."""
    rows = await reader.tuples(
        """
        select events.id, payouts_ready and %(takes_payments)s, current_price, currency
          from events join users as organizers on organizers.id = organizer_id
         where events.id = any(%(ids)s) and pricing_mode <> 'free'
        """,
        {"ids": event_ids, "takes_payments": reader.resources.settings.takes_payments},
    )
    return {
        id: f"Event {id} has a price, which cannot be paid yet."
        if not is_ready
        else f"Event {id} has a price, {price} {currency} in minor units, which cannot be paid by card."
        for id, is_ready, price, currency in rows
        if not (is_ready and is_payable(price, currency))
    }


class ArrivalKey(Struct):
    """One person and one event, as the statement reads them."""

    index: int
    event_id: int
    public_id: str | None


async def find_arrivals(
    reader: Reader, people: Sequence[tuple[int, str | None]]
) -> list[tuple[int | None, float | None, str | None]]:
    """The arrival number of each registration, its age in seconds, and the digest of the secret of its form.

    All are None if there is no registration.
    """
    rows = [ArrivalKey(index, *person) for index, person in enumerate(people)]
    return await reader.tuples(
        """
        select registration.arrival, extract(epoch from clock_timestamp() - registration.received_at)::float8,
               registration.form_digest::text
          from json_to_recordset(%(people)s::json) as person (index integer, event_id bigint, public_id text)
          left join lateral (select id from users where users.public_id = person.public_id limit 1) as users on true
          left join lateral (select arrival, received_at, form_digest from registrations
                              where event_id = person.event_id and user_id = users.id limit 1) as registration on true
         order by person.index
        """,
        {"people": msgspec.json.encode(rows).decode()},
    )
