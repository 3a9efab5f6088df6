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
        case "refused" if reason == "event_cancelled":
            return Said(
                _("No seat: %(title)s"),
                _("You have no seat at “%(title)s”: it was cancelled before your turn came."),
            )
        case "refused":
            return Said(
                _("No seat: %(title)s"),
                _("You have no seat at “%(title)s”."),
                _("All seats were taken when your turn came, and the waiting list was full."),
            )
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
