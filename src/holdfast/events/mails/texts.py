"""What mails say, in each language."""

from babel.support import Translations
from msgspec import Struct

from holdfast.events.mails.model import Kind


class Said(Struct):
    """What a mail of one kind says. Its texts may have `%(title)s`, the title of the event.

    subject    says what has happened, then where
    first      the first sentence: what has happened
    rest       what follows from it
    """

    subject: str
    first: str
    rest: str = ""


def said(kind: Kind, reason: str | None, texts: Translations) -> Said:
    """The sentences of a mail."""
    _ = texts.gettext
    match kind:
        case "seat":
            return Said(_("You have a seat: %(title)s"), _("You have a seat at “%(title)s”."))
        case "promoted":
            return Said(
                _("You have a seat now: %(title)s"),
                _("A seat has become free for you: you have moved up from the waiting list of “%(title)s”."),
            )
        case "waitlisted":
            return Said(
                _("You are on the waiting list: %(title)s"),
                _("You are on the waiting list of “%(title)s”."),
                _("All seats are taken. When one becomes free for you, we tell you at once."),
            )
        case "seat_again":
            return Said(
                _("You have a seat: %(title)s"),
                _("You have a seat at “%(title)s”."),
                _("Nothing has changed. Somebody has typed your address into the form again."),
            )
        case "waitlisted_again":
            return Said(
                _("You are on the waiting list: %(title)s"),
                _("You are on the waiting list of “%(title)s”."),
                _("Nothing has changed. Somebody has typed your address into the form again."),
            )
        case "payment_due":
            return Said(
                _("Please pay for your seat: %(title)s"),
                _("A seat has become free for you at “%(title)s”, and is held for you for a while."),
                _("It is yours as soon as it is paid. If it is not paid in time, it goes to the next person."),
            )
        case "refund":
            return _refunded(reason, texts)
        case "refused":
            return _refused(reason, texts)
        case "removed":
            return Said(
                _("Your registration was cancelled: %(title)s"),
                _("Your registration for “%(title)s” was cancelled."),
                _("If you did not want that, register again, or ask the organizer."),
            )
        case "event_changed":
            return Said(
                _("Another date or place: %(title)s"),
                _("The date or the place of “%(title)s” has changed."),
                _("Your registration is still valid. If you cannot come any more, please cancel it."),
            )
        case "event_cancelled":
            return Said(
                _("Cancelled: %(title)s"),
                _("“%(title)s” is cancelled: it does not take place."),
                _("Your registration has ended with it."),
            )


def _refused(reason: str | None, texts: Translations) -> Said:
    """What a mail says to somebody who got no seat, or whose seat was held and not paid."""
    _ = texts.gettext
    subject = _("No seat: %(title)s")
    match reason:
        case "event_cancelled":
            return Said(subject, _("You have no seat at “%(title)s”: it was cancelled before your turn came."))
        case "payment_expired":
            return Said(
                subject,
                _("You have no seat at “%(title)s”: it was not paid in time."),
                _("Others can have it now. You can register again."),
            )
        case "payment_refused":
            return Said(
                subject,
                _("You have no seat at “%(title)s”: the payment could not be taken."),
                _("Please ask the organizer."),
            )
        case _:
            return Said(
                subject,
                _("You have no seat at “%(title)s”."),
                _("All seats were taken when your turn came, and the waiting list was full."),
            )


def _refunded(reason: str | None, texts: Translations) -> Said:
    """What a mail says to somebody who gets money back: for which reason, all of it or a part."""
    _ = texts.gettext
    subject, soon = _("You get money back: %(title)s"), _("Your bank may need some days.")
    match reason:
        case "by_organizer":
            return Said(
                subject,
                _("The organizer of “%(title)s” gives you money back."),
                _("Your registration stays as it is.") + f" {soon}",
            )
        case "no_seat":
            return Said(
                subject,
                _("When your payment for “%(title)s” arrived, there was no seat for you any more."),
                _("So everything goes back to you.") + f" {soon}",
            )
        case "event_cancelled":
            return Said(subject, _("“%(title)s” is cancelled, and your money goes back to you."), soon)
        case "seat_lost":
            return Said(subject, _("You have no seat at “%(title)s” any more, and your money goes back to you."), soon)
        case _:
            return Said(subject, _("Money that you paid for “%(title)s” goes back to you."), soon)
