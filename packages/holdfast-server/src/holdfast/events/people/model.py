"""One person's data: its export, the result of erasing it, and the signed links to it.

A link is sent only to the address of the account. It names the time at which it was made, which the account has stored:
only the last link works, for an hour.
"""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from msgspec import Struct

from holdfast.accounts.signin.links import RequestedLink
from holdfast.events.registrations.model import RegistrationStatus
from holdfast.events.seats.held_seats import PaymentStatus
from holdfast.events.settings import Settings
from holdfast.events.users.model import Role
from holdfast.kit.contract.problems import FORBIDDEN, Problem
from holdfast.kit.security.service_secret import Secret


class AccountRow(Struct):
    """An account with an address."""

    id: int
    public_id: str
    email: str
    name: str | None
    role: Role
    slug: str | None
    inserted_at: dt.datetime
    proved_at: dt.datetime | None

    @property
    def is_owner(self) -> bool:
        """Whether it is the account of the person with the address: not an organizer who has not proved it."""
        return self.role != "organizer" or self.proved_at is not None

    @property
    def is_persons(self) -> bool:
        """Whether only the owner of the address depends on it: a person's account, or an unproved organizer."""
        return self.role == "user" or not self.is_owner


class AddressHolders(Struct):
    """The accounts with an address.

    organizer    an organizer that was registered with it, and that the owner has not confirmed
    """

    account: AccountRow | None
    organizer: AccountRow | None

    def __iter__(self) -> Iterator[AccountRow]:
        return (account for account in (self.account, self.organizer) if account)

    @property
    def is_unknown(self) -> bool:
        return self.account is None and self.organizer is None


class AccountSelector(Struct, frozen=True):
    """Names an account by its address in canonical form, its id, or its public id.

    issued    the time of the link that names it: it must be the last link, at most an hour old
    holder    the digest of the secret of the page that uses the link: no other page has used it
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


class ExportedEvent(Struct):
    """An event of an organizer."""

    id: int
    title: str
    datetime: dt.datetime
    cancelled_at: dt.datetime | None


class ExportedOrganizer(Struct):
    """An organizer that was registered with the address. The owner of the address has not confirmed it.

    keys    the names of its keys
    """

    name: str
    slug: str
    since: dt.datetime
    has_password: bool
    keys: list[str]
    events: Sequence[ExportedEvent] = ()


class ExportedSession(Struct):
    """A session of the account. `browser`: the name that the browser sends."""

    way: str
    browser: str
    began_at: dt.datetime
    seen_at: dt.datetime


class ExportedRegistration(Struct):
    """One registration, and the person's data in it. Amounts are in minor units of the currency.

    paid_by_card    the amount of the card payment for it; None: none was made
    noted_amount    the amount that the organizer has noted as paid
    push_browsers   how many browsers get a push message when it moves up from the waiting list
    log_number      its number in the public log of the event; `nonce` and `logged_as` open its commitment there
    """

    event_id: int
    event: str
    datetime: dt.datetime
    ends_at: dt.datetime | None
    timezone: str | None
    event_cancelled_at: dt.datetime | None
    organizer: str
    status: RegistrationStatus
    reason: str | None
    received_at: dt.datetime
    settled_at: dt.datetime | None
    promoted_at: dt.datetime | None
    entered_at: dt.datetime | None
    name: str | None
    language: str | None
    mails_wanted: bool
    paid_by_card: int | None
    noted_amount: int
    amount_due: int | None
    held_until: dt.datetime | None
    cancels_at: dt.datetime | None
    push_browsers: int
    currency: str
    details_sent_again_at: dt.datetime | None
    log_number: int | None
    nonce: UUID | None
    logged_as: str | None


class ExportedPayment(Struct):
    """A payment of the person, or an attempt to make one. Amounts are in minor units of the currency.

    reference    the id at the payment processor
    """

    event_id: int
    state: PaymentStatus
    amount: int
    refunded: int
    currency: str
    reference: str | None
    inserted_at: dt.datetime
    paid_at: dt.datetime | None


class ExportedMail(Struct):
    """A mail to the person. Sent mails are stored for 30 days."""

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
    unconfirmed_organizer: ExportedOrganizer | None
    registrations: list[ExportedRegistration]
    payments: list[ExportedPayment]
    mails: list[ExportedMail]
    mails_stopped_at: dt.datetime | None
    sessions: list[ExportedSession]
    sign_in_links: list[RequestedLink]


class AffectedRegistration(Struct):
    """A registration as erasing treats it.

    amount_paid    the amount paid by card, or else the amount that the organizer has noted
    is_to_come     whether its event has neither begun nor been cancelled
    """

    event_id: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    status: RegistrationStatus
    amount_paid: int
    currency: str
    is_to_come: bool

    @property
    def has_seat(self) -> bool:
        """Whether the person has a seat, also a held one."""
        return self.status in ("held", "registered")


class Erasure(Struct):
    """The result of erasing, before or after it.

    account_id    None: no account has the address any more, and only mails are left
    cancelled     registrations for events to come: they are removed, and their seats go to the next person
    remaining     the number of registrations that stay, without an address and a name
    mails         the number of mails that are deleted
    organizer     the slug of an unconfirmed organizer with the address, which ends with everything it has
    """

    account_id: int | None
    cancelled: list[AffectedRegistration]
    remaining: int
    mails: int
    organizer: str | None = None


def shared_account_refusal(account: AccountRow) -> Problem:
    """The problem for an account on which others depend: of an organizer or an administrator."""
    whose = f"the organizer {account.slug}" if account.slug else "an administrator"
    return FORBIDDEN(
        f"This account is that of {whose}: events, keys and registrations of others depend on it, so its data is not "
        "exported or erased as one person's. Instead, cancel its events (DELETE /api/events/<event_id>), revoke its "
        "keys (DELETE /api/keys/<id>), and cancel its own registrations by the links in their mails."
    )


PEOPLE_PATH = "/people"

SIGNATURE_DIGITS = 32
"""Hexadecimal digits of a signature: links stay short, and the signature has 128 bits."""

_LINK = re.compile(r"([a-z2-7]{8})-([1-9][0-9]{0,17})-([0-9a-f]{32})")


class DataLink(NamedTuple):
    """The content of a valid link.

    public_id    the public id of the person
    issued       the time at which it was made, in microseconds
    """

    public_id: str
    issued: int


def path(secret: Secret, link: DataLink) -> str:
    """The path of the page behind a link."""
    text = f"{link.public_id}-{link.issued}"
    return f"{PEOPLE_PATH}/{text}-{secret.signer('own data', SIGNATURE_DIGITS).sign(text)}"


def url(settings: Settings, secret: Secret, link: DataLink) -> str:
    """The address of the page behind a link."""
    return settings.base_url + path(secret, link)


def read(secret: Secret, text: str) -> DataLink | None:
    """The link in a text; None if this service did not write the text."""
    parts = _LINK.fullmatch(text)
    if parts is None:
        return None
    public_id, issued, signature = parts.groups()
    if not secret.signer("own data", SIGNATURE_DIGITS).accepts(f"{public_id}-{issued}", signature):
        return None
    return DataLink(public_id, int(issued))
