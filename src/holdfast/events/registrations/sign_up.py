"""Signing up: people register themselves on a form that asks for no key.

Whoever types an address may not own it. So only somebody who registered a moment ago is told how it went; about an
older registration the page says nothing, and its details are sent to the address itself (`docs/decisions/0031-*.md`).
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Annotated

import msgspec
from linkify_it import LinkifyIt  # pyright: ignore[reportMissingTypeStubs]
from msgspec import Meta, Struct

from holdfast.accounts.signin.addresses import Email, canonical
from holdfast.events.problems import EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, PAYMENT_UNAVAILABLE
from holdfast.events.processor.currencies import is_payable
from holdfast.events.registrations import intake, settlement
from holdfast.events.registrations.links import Link
from holdfast.events.registrations.operations import refusal
from holdfast.events.resources import Reader, Tx
from holdfast.kit.batch import Locked
from holdfast.kit.command import Command, Id
from holdfast.kit.mail import NoAddress, envelope_address
from holdfast.kit.modes import Batch
from holdfast.kit.problems import NOT_FOUND, SERVICE_UNAVAILABLE, Problem, refuses

LONGEST_NAME = 100

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn"}
"""Kinds of characters that people do not see: control, format (such as bidi marks), and those that mean nothing."""

_LINKS = LinkifyIt()

_JOINERS = "\u200c\u200d"
"""Format characters that names of some languages are written with."""


class SignUp(Command):
    """Asks to register the person with an address.

    name        as `written` returns it
    language    the code of the language of the mails
    """

    event_id: Id
    email: Email
    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)] | None
    language: str


class SignedUp(Struct, frozen=True):
    """The registration that is stored.

    is_new    whether it was received in the last 15 minutes, so that its visitor may see how it went
    """

    link: Link
    is_new: bool


def written(name: str) -> str | None:
    """A name as it is stored: without characters that nobody sees and without needless spaces. None if none is left."""
    seen = "".join(
        "" if unicodedata.category(each) in _UNSEEN and each not in _JOINERS else each
        for each in unicodedata.normalize("NFC", re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", name))
    )
    return " ".join(seen.split()).strip(_JOINERS) or None


def is_address(email: str) -> bool:
    """Whether mail can be sent to a text, which has only characters that people see."""
    if any(unicodedata.category(each) in _UNSEEN for each in email):
        return False
    try:
        envelope_address(msgspec.convert(email, Email))
    except (msgspec.ValidationError, NoAddress):
        return False
    return True


def has_link(name: str) -> bool:
    """Whether a mail program would show a part of a name as a link. Mails greet people by their names, also at
    addresses that strangers have typed."""
    return _LINKS.test(name)  # pyright: ignore[reportUnknownMemberType] - not annotated


@refuses(NOT_FOUND, EVENT_CANCELLED, EVENT_EXPIRED, EVENT_FULL, PAYMENT_UNAVAILABLE)
async def sign_up(tx: Tx, batch: Batch[SignUp]) -> Sequence[SignedUp | Problem | Locked]:
    """Store the registrations of people who filled in a form. Registering somebody again changes nothing."""
    unpayable = await find_unpayable(tx, sorted({call.command.event_id for call in batch.calls}))
    wanted = [call.command for call in batch.calls if call.command.event_id not in unpayable]
    stored = iter(await _store(tx, wanted, waits=batch.waits) if wanted else ())
    return [
        PAYMENT_UNAVAILABLE(unpayable[call.command.event_id]) if call.command.event_id in unpayable else next(stored)
        for call in batch.calls
    ]


async def _store(tx: Tx, commands: Sequence[SignUp], *, waits: bool) -> list[SignedUp | Problem | Locked]:
    requests = [
        intake.Request(
            None,
            each.event_id,
            email=canonical(each.email),
            amount_paid=0,
            pays=True,
            name=each.name,
            language=each.language,
        )
        for each in commands
    ]
    outcomes = await intake.accept(tx, requests, waits=waits)
    if any(each.stored for each in outcomes):
        await tx.notify(settlement.CHANNEL)
    people = [(command.event_id, each.user_id) for command, each in zip(commands, outcomes, strict=True)]
    found = await find_arrivals(tx, people)
    return [
        refusal(command.event_id, outcome) or _signed_up(*person, *arrival)
        for command, outcome, person, arrival in zip(commands, outcomes, people, found, strict=True)
    ]


def _signed_up(event_id: int, user_id: str | None, arrival: int | None, is_new: bool | None) -> SignedUp | Problem:
    if user_id is None or arrival is None:  # somebody has just deleted it
        return SERVICE_UNAVAILABLE("The registration was removed at the same time.", retry_after=1)
    return SignedUp(Link(event_id, user_id, arrival), bool(is_new))


async def find_unpayable(reader: Reader, event_ids: Sequence[int]) -> dict[int, str]:
    """Those of the events that have a price which nobody can pay, with why: their organizer cannot be paid out, or the
    processor does not charge the price. So no seat is held that can never be paid."""
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


class Person(Struct):
    """One person at one event, as the statement reads them."""

    place: int
    event_id: int
    user_id: str | None


async def find_arrivals(
    reader: Reader, people: Sequence[tuple[int, str | None]]
) -> list[tuple[int | None, bool | None]]:
    """The arrival of each registration, and whether it was received in the last 15 minutes; both None without one."""
    rows = [Person(place, *each) for place, each in enumerate(people)]
    return await reader.tuples(
        """
        select registration.arrival, registration.received_at > now() - interval '15 minutes'
          from json_to_recordset(%(people)s::json) as person (place integer, event_id bigint, user_id text)
          left join lateral (select id from users where public_id = person.user_id limit 1) as users on true
          left join lateral (select arrival, received_at from registrations
                              where event_id = person.event_id and user_id = users.id limit 1) as registration on true
         order by person.place
        """,
        {"people": msgspec.json.encode(rows).decode()},
    )
