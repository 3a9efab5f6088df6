"""Mails about registrations: their stored arguments, the facts they need, and the check whether they are still true."""

import datetime as dt
from typing import ClassVar

from msgspec import Struct, field

from holdfast.accounts.agents.mail import RequestMail
from holdfast.accounts.signin.mail import SignInMail
from holdfast.accounts.webhooks.mail import WebhookMail
from holdfast.events.mails.kinds import KINDS, Kind
from holdfast.events.mails.own_data_mail import DataMail
from holdfast.events.registrations.model import cancellation_deadline, refund_deadline


class MailArguments(Struct):
    """The arguments that are stored with a mail when it is caused.

    public_id  of the person; in the stored arguments it is called `user_id`
    arrival    the arrival number of the registration: a new registration has another one
    amount     the amount of the refund, in minor units
    currency   the currency of the refund; None: that of the event
    """

    event_id: int
    public_id: str = field(name="user_id")
    arrival: int
    name: str | None = None
    language: str | None = None
    reason: str | None = None
    amount: int | None = None
    currency: str | None = None


class MailFacts(Struct):
    """The facts about the event and the registration of a mail, read when it is written.

    status            the status of the registration; None: there is no registration
    is_newest         whether no later mail of its kind waits in its thread
    now               the time of the database
    refund_days       a cancellation at least this many days before the event is refunded in full, a later one not at
                      all; None: nothing is paid by card
    paragraph         the paragraph of the organizer, as it was typed
    proved_at         when the organizer proved its address, or ended because a stranger had made it; None: neither
    accent            the accent of the organizer; None: ours
    logo              the file of the logo of the organizer
    log_number        the number of the registration in the order of arrivals; None: no public log has it
    arrivals          how many registrations of the event are numbered; None: it has no log
    moved, removed    how many registrations the organizer has moved and removed since the log began
    draw_entries      how many entries the draw of the event had; None: there was none
    drawn_place       the place of the registration in the drawn order; None: it was not drawn
    draw_at           when the list of the draw closes; None: there is no draw
    is_proved         whether the person has shown that the address is theirs
    head_size         the number of entries in the last signed head of the log; None: there is none
    head_root         the first 8 hexadecimal digits of the root of that head
    is_logged         whether that head has the arrival, and all else that the log is to tell of the registration now
    """

    id: int
    title: str
    datetime: dt.datetime
    ends_at: dt.datetime | None
    timezone: str | None
    location_name: str | None
    address: str | None
    latitude: float | None
    longitude: float | None
    currency: str
    cancellation_hours: int
    calendar_sequence: int
    cancelled_at: dt.datetime | None
    organizer_name: str | None
    organizer_slug: str
    status: str | None
    arrival: int | None
    notify: bool | None
    amount_paid: int | None
    amount_due: int | None
    refund_days: int | None
    held_until: dt.datetime | None
    promoted_at: dt.datetime | None
    is_newest: bool
    now: dt.datetime
    paragraph: str | None
    organizer_id: int
    proved_at: dt.datetime | None
    accent: str | None
    logo: str | None
    log_number: int | None
    arrivals: int | None
    moved: int | None
    removed: int | None
    draw_entries: int | None
    drawn_place: int | None
    draw_at: dt.datetime | None
    is_proved: bool
    head_size: int | None
    head_root: str | None
    is_logged: bool

    @property
    def cancellable_until(self) -> dt.datetime:
        """The time until which the person can cancel."""
        return cancellation_deadline(self.status, self.datetime, self.cancellation_hours, self.promoted_at)

    @property
    def refund_until(self) -> dt.datetime:
        """The time until which a cancellation is refunded in full."""
        seat_until = cancellation_deadline("registered", self.datetime, self.cancellation_hours, self.promoted_at)
        return refund_deadline(self.datetime, self.refund_days or 0, seat_until)


class RegistrationMail(Struct, tag="registration"):
    """A mail about a registration to be written, with all of its data.

    recipient           the address in the envelope
    message_id          the header `Message-ID`
    caused_at           when the transaction that caused the mail began
    registration_url    the address of the page of the registration
    event_url           the address of the page of the event
    logo_url            the address of the logo of the organizer; empty: it has none
    waitlist_place      the place on the waiting list; None: the person does not wait there for a free seat
    stop_url            the address that stops all mails to the recipient, without a language
    """

    is_requested: ClassVar[bool] = False

    recipient: str
    message_id: str
    caused_at: dt.datetime
    kind: Kind
    arguments: MailArguments
    facts: MailFacts
    registration_url: str
    event_url: str
    logo_url: str = ""
    waitlist_place: int | None = None
    stop_url: str = ""


class MailBatch(Struct):
    """A batch of mails to be written, with the data of the service in them.

    sender       the sender of the mails
    mail_from    the sender in the settings; empty: mails are only written to files
    """

    base_url: str
    sender: str
    mail_from: str
    mails: list[RegistrationMail | SignInMail | DataMail | RequestMail | WebhookMail]


def is_true(kind: Kind, arguments: MailArguments, facts: MailFacts) -> bool:
    """Whether a mail is still true, and the person still gets mails."""
    if kind == "refund":
        return True
    if kind == "removed":
        return facts.status is None and facts.cancelled_at is None
    if (facts.arrival, facts.notify) != (arguments.arrival, True) or facts.status not in KINDS[kind].true_with:
        return False
    if kind == "event_cancelled":
        return facts.cancelled_at is not None
    if kind == "refused":
        return True
    if kind == "confirm" and (facts.is_proved or facts.draw_at is None or facts.now >= facts.draw_at):
        return False
    if kind == "event_changed" and not (facts.is_newest and facts.now < facts.datetime):
        return False
    return facts.cancelled_at is None
