"""The kinds of mails about registrations: what causes each one, with which statuses it is true, and what it says.

`events/schema/functions/mail_kind.sql` is made of the causes here (`python -m tests.programs.schema`), for the
triggers of registrations.
"""

from collections.abc import Mapping
from typing import Literal

from babel.support import Translations
from msgspec import Struct

from holdfast.kit.contract.messages import translatable

Kind = Literal[
    "confirm",
    "seat",
    "waitlisted",
    "promoted",
    "refused",
    "removed",
    "seat_again",
    "waitlisted_again",
    "event_changed",
    "event_cancelled",
    "payment_due",
    "refund",
]

ParagraphKind = Literal[
    "seat",
    "waitlisted",
    "promoted",
    "payment_due",
    "refused",
    "removed",
    "refund",
    "event_changed",
    "event_cancelled",
]
"""The kinds that can have a paragraph of the organizer."""

CalendarMethod = Literal["PUBLISH", "CANCEL"]

NextStep = Literal["form", "organizer"]


class MailSentences(Struct, frozen=True):
    """The sentences of a mail.

    They may contain `%(title)s`, the title of the event; `%(amount)s`, what is to be paid or goes back; and in `rest`
    `%(until)s`, when the time ends to do what the mail asks for.

    subject    the subject: what has happened or is to be done, then the event
    first      the first sentence: what has happened
    rest       the sentences after it: what to do, and the consequences
    """

    subject: str
    first: str
    rest: tuple[str, ...] = ()


class MailKind(Struct, frozen=True, kw_only=True):
    """A kind of mails. The person of the registration gets it, unless the mails about the registration are turned off.

    causes            the changes of a registration that cause it: the statuses before and after. `removed` is not a
                      status: the registration was deleted. `repeated`: the form was sent again for it.
    recipients        if a change of the event causes it: the statuses of the people who get it
    true_with         it is sent if the registration has one of these statuses at that time; empty: with any, or none
    paragraph         the kind whose paragraph of the organizer it has; None: it has none
    is_paid_only      whether it is sent only about events with a price
    has_registration  whether the person has a registration, to be opened and cancelled
    is_request        whether it asks the person to do something, so that its button comes before all details
    has_code          whether it has the code for the entrance
    is_numbered       whether it says the number of the registration in the public order of arrivals
    calendar          PUBLISH: it puts the event into the calendar of a person with a seat; CANCEL: it takes it out
    next_step         where its button leads if the person has no registration: to the form of the event, unless the
                      organizer has removed the person, or to the other events of the organizer
    sentences         by reason, in English; None: for all other reasons, and for none
    """

    causes: tuple[tuple[str, str], ...] = ()
    recipients: tuple[str, ...] = ()
    true_with: tuple[str, ...] = ()
    paragraph: ParagraphKind | None = None
    is_paid_only: bool = False
    has_registration: bool = False
    is_request: bool = False
    has_code: bool = False
    is_numbered: bool = False
    calendar: CalendarMethod | None = None
    next_step: NextStep = "organizer"
    sentences: Mapping[str | None, MailSentences]


_SEAT = translatable("You have a seat: %(title)s"), translatable("You have a seat at “%(title)s”.")
_WAITLISTED = (
    translatable("You are on the waiting list: %(title)s"),
    translatable("You are on the waiting list of “%(title)s”."),
)
_NO_SEAT = translatable("No seat: %(title)s")
_MONEY_BACK = translatable("You get %(amount)s back: %(title)s")
_SOON = translatable("It arrives within a few days, depending on your bank.")
_NOTHING_CHANGED = (translatable("Nothing has changed: your address was entered in the form again."),)
_BY_ORGANIZER = MailSentences(
    *_WAITLISTED, (translatable("The organizer has put you on the waiting list, and can give you a seat."),)
)

KINDS: Mapping[Kind, MailKind] = {
    # Only people whose address is not confirmed get it (`mail_registrations` in `schema/triggers/`).
    "confirm": MailKind(
        causes=(("pending", "in_draw"), ("in_draw", "repeated")),
        true_with=("in_draw",),
        has_registration=True,
        is_request=True,
        sentences={
            None: MailSentences(
                translatable("Please confirm your entry: %(title)s"),
                translatable("Please confirm your entry in the draw for “%(title)s”."),
                (
                    translatable("Confirm by %(until)s that this address is yours."),
                    translatable("Without that, your entry comes last in the draw."),
                ),
            )
        },
    ),
    "seat": MailKind(
        causes=(
            ("pending", "registered"),
            ("in_draw", "registered"),
            ("held", "registered"),
            ("rejected", "registered"),
        ),
        true_with=("registered",),
        paragraph="seat",
        has_registration=True,
        has_code=True,
        is_numbered=True,
        calendar="PUBLISH",
        sentences={None: MailSentences(*_SEAT)},
    ),
    "seat_again": MailKind(
        causes=(("registered", "repeated"),),
        true_with=("registered",),
        paragraph="seat",
        has_registration=True,
        has_code=True,
        is_numbered=True,
        calendar="PUBLISH",
        sentences={None: MailSentences(*_SEAT, _NOTHING_CHANGED)},
    ),
    "promoted": MailKind(
        causes=(("waitlisted", "registered"),),
        true_with=("registered",),
        paragraph="promoted",
        has_registration=True,
        has_code=True,
        is_numbered=True,
        calendar="PUBLISH",
        sentences={
            None: MailSentences(
                translatable("You have a seat now: %(title)s"),
                translatable("You have a seat at “%(title)s” now."),
                (translatable("You have moved up from the waiting list."),),
            )
        },
    ),
    "waitlisted": MailKind(
        causes=(("pending", "waitlisted"), ("in_draw", "waitlisted"), ("registered", "waitlisted")),
        true_with=("waitlisted",),
        paragraph="waitlisted",
        has_registration=True,
        is_numbered=True,
        sentences={
            None: MailSentences(
                *_WAITLISTED,
                (
                    translatable(
                        "All seats are taken. Each time a seat becomes free, you move up. When it is yours, you get an"
                        " e-mail at once."
                    ),
                ),
            ),
            "by_organizer": _BY_ORGANIZER,
        },
    ),
    "waitlisted_again": MailKind(
        causes=(("waitlisted", "repeated"),),
        true_with=("waitlisted",),
        paragraph="waitlisted",
        has_registration=True,
        is_numbered=True,
        sentences={None: MailSentences(*_WAITLISTED, _NOTHING_CHANGED), "by_organizer": _BY_ORGANIZER},
    ),
    "payment_due": MailKind(
        causes=(("waitlisted", "held"), ("in_draw", "held")),
        true_with=("held",),
        paragraph="payment_due",
        is_paid_only=True,
        has_registration=True,
        is_request=True,
        is_numbered=True,
        sentences={
            None: MailSentences(
                translatable("Please pay %(amount)s for your seat: %(title)s"),
                translatable("A seat is held for you at “%(title)s”."),
                (
                    translatable("Pay %(amount)s before %(until)s, and the seat is yours."),
                    translatable("After that, the next person gets the seat."),
                ),
            )
        },
    ),
    "refused": MailKind(
        causes=(("pending", "rejected"), ("in_draw", "rejected"), ("held", "rejected")),
        true_with=("rejected",),
        paragraph="refused",
        is_numbered=True,
        sentences={
            None: MailSentences(
                _NO_SEAT,
                translatable("You have no seat at “%(title)s”."),
                (translatable("All seats were taken when your turn came, and the waiting list was full."),),
            ),
            "event_cancelled": MailSentences(
                _NO_SEAT,
                translatable("You have no seat at “%(title)s”: it was cancelled before your turn came."),
            ),
            "payment_expired": MailSentences(
                _NO_SEAT,
                translatable("You have no seat at “%(title)s”: it was not paid in time."),
                (translatable("The seat is free for others now. You can register again."),),
            ),
            "payment_refused": MailSentences(
                _NO_SEAT,
                translatable("You have no seat at “%(title)s”: the payment could not be taken."),
                (translatable("Please ask the organizer."),),
            ),
        },
    ),
    "removed": MailKind(
        causes=(("in_draw", "removed"), ("registered", "removed"), ("held", "removed"), ("waitlisted", "removed")),
        paragraph="removed",
        calendar="CANCEL",
        next_step="form",
        sentences={
            None: MailSentences(
                translatable("Your registration was cancelled: %(title)s"),
                translatable("Your registration for “%(title)s” was cancelled."),
                (translatable("You did not want that? You can register again."),),
            ),
            "by_organizer": MailSentences(
                translatable("Your registration was cancelled: %(title)s"),
                translatable("The organizer has cancelled your registration for “%(title)s”."),
                (
                    translatable("You no longer have a seat or a place on the waiting list."),
                    translatable("If you do not know why, please ask the organizer."),
                ),
            ),
        },
    ),
    # Caused by `announce` in `events/schema/triggers/events.sql`.
    "event_changed": MailKind(
        recipients=("registered", "waitlisted"),
        true_with=("registered", "waitlisted"),
        paragraph="event_changed",
        has_registration=True,
        calendar="PUBLISH",
        sentences={
            None: MailSentences(
                translatable("Another date or place: %(title)s"),
                translatable("The date or the place of “%(title)s” has changed."),
                (translatable("Your registration is still valid. If you can no longer come, please cancel it."),),
            )
        },
    ),
    "event_cancelled": MailKind(
        recipients=("registered", "waitlisted"),
        true_with=("registered", "waitlisted", "held"),
        paragraph="event_cancelled",
        calendar="CANCEL",
        sentences={
            None: MailSentences(
                translatable("Cancelled: %(title)s"),
                translatable("“%(title)s” is cancelled."),
                (
                    translatable(
                        "We are sorry: the event does not take place. Your registration has ended, and you need not do"
                        " anything."
                    ),
                ),
            )
        },
    ),
    # Caused by `mail_refund` in `events/schema/triggers/refunds.sql`.
    "refund": MailKind(
        paragraph="refund",
        is_paid_only=True,
        sentences={
            None: MailSentences(
                _MONEY_BACK, translatable("You get %(amount)s back that you paid for “%(title)s”."), (_SOON,)
            ),
            "by_organizer": MailSentences(
                _MONEY_BACK,
                translatable("The organizer of “%(title)s” gives you %(amount)s back."),
                (translatable("Your registration stays as it is."), _SOON),
            ),
            "no_seat": MailSentences(
                _MONEY_BACK,
                translatable(
                    "You get %(amount)s back: when your payment for “%(title)s” arrived, all seats were taken."
                ),
                (_SOON,),
            ),
            "event_cancelled": MailSentences(
                _MONEY_BACK, translatable("“%(title)s” is cancelled, and you get %(amount)s back."), (_SOON,)
            ),
            "seat_lost": MailSentences(
                _MONEY_BACK,
                translatable("You get %(amount)s back, because you no longer have a seat at “%(title)s”."),
                (_SOON,),
            ),
            "dispute_open": MailSentences(
                translatable("Your money waits for the bank: %(title)s"),
                translatable("You are to get %(amount)s back for “%(title)s”, but the bank has to decide first."),
                (
                    translatable(
                        "The payment is disputed at the bank of the card. When it has decided, we write again."
                    ),
                ),
            ),
            "dispute_won": MailSentences(
                _MONEY_BACK,
                translatable("The dispute about the payment for “%(title)s” has ended, and you get %(amount)s back."),
                (_SOON,),
            ),
            "dispute_lost": MailSentences(
                translatable("The bank has given the money back: %(title)s"),
                translatable("The bank of the card has decided the dispute about the payment for “%(title)s”."),
                (translatable("It has given the money back itself. So we give nothing back."),),
            ),
        },
    ),
}


def sentences_of(kind: Kind, reason: str | None, texts: Translations) -> MailSentences:
    """The sentences of a mail in a language."""
    sentences = KINDS[kind].sentences
    english = sentences.get(reason, sentences[None])
    translate = texts.gettext
    return MailSentences(
        translate(english.subject), translate(english.first), tuple(translate(sentence) for sentence in english.rest)
    )
