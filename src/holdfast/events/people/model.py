"""One person's data: what is exported, and what erasing it does."""

import datetime as dt
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.accounts.signin.links import Asked
from holdfast.events.users.model import Role
from holdfast.kit.problems import FORBIDDEN, Problem


class Account(Struct):
    """An account with an address."""

    id: int
    public_id: str
    email: str
    name: str | None
    role: Role
    slug: str | None
    inserted_at: dt.datetime
    proved_at: dt.datetime | None


class Named(Struct, frozen=True):
    """Names an account by one of three: its address in canonical form, its id, its public id.

    issued    of the link that names it: it must be the last one, at most an hour old
    holder    the digest of what the page holds that uses the link: nobody else has used it
    """

    email: str | None = None
    id: int | None = None
    public_id: str | None = None
    issued: int | None = None
    holder: bytes | None = None


class ExportedAccount(Struct):
    """The account itself. `user_id` is the handle by which organizers know it."""

    user_id: str
    email: str
    name: str | None
    since: dt.datetime
    proved_at: dt.datetime | None


class ExportedSession(Struct):
    """Somebody who is signed in with the account. `browser`: what the browser calls itself."""

    way: str
    browser: str
    began_at: dt.datetime
    seen_at: dt.datetime


class ExportedRegistration(Struct):
    """One registration, and what the person told the organizer with it."""

    event_id: int
    event: str
    datetime: dt.datetime
    timezone: str | None
    event_cancelled_at: dt.datetime | None
    organizer: str
    status: Literal["pending", "held", "registered", "waitlisted", "rejected"]
    reason: str | None
    received_at: dt.datetime
    settled_at: dt.datetime | None
    promoted_at: dt.datetime | None
    entered_at: dt.datetime | None
    name: str | None
    language: str | None
    mails_wanted: bool
    amount_paid: Annotated[int, Meta(description="In minor units of the currency.")]
    amount_due: int | None
    held_until: dt.datetime | None
    currency: str
    details_sent_again_at: dt.datetime | None


class ExportedPayment(Struct):
    """A payment of the person, or a try to make one. Amounts are in minor units of the currency.

    reference    what the payment processor calls it
    """

    event_id: int
    state: Literal["opening", "open", "paid", "ended", "refused"]
    amount: int
    refunded: int
    currency: str
    reference: str | None
    inserted_at: dt.datetime
    paid_at: dt.datetime | None


class ExportedMail(Struct):
    """A mail to the person. Those that were sent are kept for 30 days."""

    kind: str
    event_id: int | None
    caused_at: dt.datetime
    outcome: Literal["waiting", "sent", "superseded", "failed"]
    ended_at: dt.datetime | None
    attempts: int
    error: str | None


class Export(Struct):
    """Everything that is stored about one person. Without an account there may still be mails."""

    exported_at: dt.datetime
    account: ExportedAccount | None
    registrations: list[ExportedRegistration]
    payments: list[ExportedPayment]
    mails: list[ExportedMail]
    sessions: list[ExportedSession]
    sign_in_links: list[Asked]


class Given(Struct):
    """A registration as erasing treats it. `is_to_come`: it is for an event that neither began nor was cancelled."""

    event_id: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    status: Literal["pending", "held", "registered", "waitlisted", "rejected"]
    amount_paid: int
    currency: str
    is_to_come: bool


class Erasure(Struct):
    """What erasing does, or has done.

    account_id    None: nobody has the address any more, and only mails are left
    cancelled     registrations for events to come: they are removed, and their seats go to the next in line
    kept          how many registrations stay, without an address and a name
    mails         how many mails are deleted
    """

    account_id: int | None
    cancelled: list[Given]
    kept: int
    mails: int


def refused(account: Account) -> Problem:
    """The problem for an account that is not a person's alone."""
    whose = f"the organizer {account.slug}" if account.slug else "an administrator"
    return FORBIDDEN(
        f"This account is that of {whose}: events, keys and registrations of others depend on it, so its data is not "
        "exported or erased as one person's. Instead, cancel its events (DELETE /api/events/<event_id>), revoke its "
        "keys (DELETE /api/keys/<id>), and cancel its own registrations by the links in their mails."
    )
