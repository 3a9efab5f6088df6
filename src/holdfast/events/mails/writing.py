"""Writes mails: the text, the HTML, and the files that come with it.

That takes milliseconds each, so it is done in another process (`sending.py`). This file imports little, because that
process starts when somebody waits for a mail already.
"""

from io import BytesIO
from pathlib import Path

from markupsafe import Markup
from msgspec import Struct

from holdfast import accounts
from holdfast.accounts.signin import mail as sign_in
from holdfast.accounts.signin.mail import SignInMail
from holdfast.events.events.calendar import calendar
from holdfast.events.mails import own_data
from holdfast.events.mails.model import Arguments, DataMail, Kind, Known, Order, Portion
from holdfast.events.mails.texts import said
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations.code import code, spoken
from holdfast.kit.mail import Attachment, Message, lines, plain
from holdfast.kit.pages.frame import Frame
from holdfast.kit.pages.language import Language, named

FRAME = Frame("Holdfast Events", Path(__file__).parent, accounts.FOLDER)

CODE = "code"
"""The name of the picture with the code, inside the mail."""

WITH_CODE = {"seat", "promoted", "seat_again"}
WITH_CALENDAR = {"seat", "promoted", "seat_again", "event_changed"}
"""These mails put the event into the calendar of whoever has a seat."""

TAKES_OUT = {"removed", "event_cancelled"}
STANDS = {"seat", "promoted", "waitlisted", "seat_again", "waitlisted_again", "event_changed", "payment_due"}
"""After these mails there is a registration, which can be looked at and cancelled."""

UNASKED = {"waitlisted", "seat_again", "waitlisted_again", "event_changed"}
"""Whoever does not want such mails can stop them with one click in the mail program (RFC 8058)."""


class Fact(Struct):
    """A line such as `Date: November 21, 2026`. `is_foreign`: a stranger wrote the value."""

    label: str
    value: str
    is_foreign: bool = False


class Letter(Struct):
    """A mail as its text and its HTML say it.

    Texts of strangers are in `title`, `greeting`, `organizer`, `paragraph`, and in facts that say so.

    paragraph    what the organizer adds, line by line
    typed        the short code for the entrance
    action       what to do on the person's own page
    """

    language: Language
    first: str
    rest: str
    paragraph: list[str]
    title: str
    greeting: str
    facts: list[Fact]
    typed: str
    own: str
    action: str
    page: str
    until: str
    organizer: str


def write(portion: Portion) -> list[bytes]:
    """The content of each mail, as it is sent."""
    return [message(order, portion).encoded(portion.sender) for order in portion.orders]


def message(order: Order | SignInMail | DataMail, portion: Portion) -> Message:
    """A mail of the portion, as it is before it becomes bytes."""
    if isinstance(order, SignInMail):
        return sign_in.message(order, FRAME)
    if isinstance(order, DataMail):
        return own_data.message(order, FRAME)
    kind, caused, known = order.kind, order.caused, order.known
    language = named(caused.language)
    sentences = said(kind, caused.reason, FRAME.texts(language))
    title = plain(known.title)
    zone = known.timezone or "UTC"
    has_code = kind in WITH_CODE
    letter = Letter(
        language=language,
        first=sentences.first,
        rest=sentences.rest,
        paragraph=lines(known.paragraph or ""),
        title=title,
        greeting=plain(caused.name or ""),
        facts=_facts(kind, caused, known, language),
        typed=str(spoken(order.own.rpartition("/")[2])) if has_code else "",
        own=_in_language(order.own, language) if kind in STANDS else "",
        action=_action(kind, language),
        page=_in_language(order.page, language),
        until=language.moment(known.until, zone) if kind in STANDS and known.now < known.until else "",
        organizer=plain(known.organizer_name),
    )
    return Message(
        recipient=order.recipient,
        subject=sentences.subject % {"title": title},
        text=_text(letter),
        html=FRAME.render(
            "mail.html",
            language=language,
            letter=letter,
            first=_marked(letter.first, letter.title),
            code=CODE if has_code else "",
        ),
        message_id=order.message_id,
        date=order.caused_at,
        attachments=(*_code(order.own, has_code), *_calendar(order, portion, order.own if has_code else order.page)),
        unsubscribe=f"{order.own}/unsubscribe" if kind in UNASKED else "",
    )


def _facts(kind: Kind, caused: Arguments, known: Known, language: Language) -> list[Fact]:
    _ = FRAME.texts(language).gettext
    zone = known.timezone or "UTC"
    when = f"{language.date(known.datetime, zone)}, {language.time(known.datetime, zone)}"
    facts = [Fact(_("Date"), when if zone == "UTC" else f"{when} ({zone})")]
    if place := ", ".join(plain(each) for each in (known.location_name, known.address) if each):
        facts.append(Fact(_("Place"), place, is_foreign=True))
    in_minor_units = {"payment_due": known.amount_due, "refund": caused.amount}.get(kind, known.amount_paid)
    if (kind in STANDS or kind == "refund") and in_minor_units:
        name = _("Amount") if kind == "refund" else _("Price")
        currency = caused.currency or known.currency
        facts.append(Fact(name, language.money(in_minor_units, currency, digits(currency))))
    if kind == "payment_due" and known.held_until:
        facts.append(Fact(_("To be paid until"), language.moment(known.held_until, zone)))
    return facts


def _action(kind: Kind, language: Language) -> str:
    _ = FRAME.texts(language).gettext
    return _("Pay for your seat") if kind == "payment_due" else _("Look at your registration")


def _text(letter: Letter) -> str:
    """The mail for those who read no HTML."""
    _ = FRAME.texts(letter.language).gettext
    parts = [letter.first % {"title": letter.title}, letter.rest]
    if letter.greeting:
        parts.insert(0, _("Hello %(name)s,") % {"name": letter.greeting})
    if letter.paragraph:
        # Marked like a quotation, no line of it can pass for one of ours.
        quoted = "\n".join(f"> {each}".rstrip() for each in letter.paragraph)
        parts.append(_("%(organizer)s writes:") % {"organizer": letter.organizer} + f"\n{quoted}")
    parts.append("\n".join(f"{each.label}: {each.value}" for each in letter.facts))
    if letter.typed:
        parts.append(_("Your code for the entrance:") + f"\n{letter.typed}")
    if letter.own:
        parts.append(f"{letter.action}:\n{letter.own}")
    if letter.until:
        parts.append(_("To cancel, open this link. You can do so until %(until)s.") % {"until": letter.until})
    parts.append(_("About the event:") + f"\n{letter.page}")
    parts.append(
        _("You get this mail because this address was registered for an event of %(organizer)s.")
        % {"organizer": letter.organizer}
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _marked(sentence: str, title: str) -> Markup:
    """A sentence of ours with the title of a stranger in it, for HTML."""
    return Markup.escape(sentence) % {"title": Markup("<bdi>{}</bdi>").format(title)}


def _in_language(url: str, language: Language) -> str:
    return f"{url}?lang={language.code}"


def _code(own: str, wanted: bool) -> list[Attachment]:
    """The address of the person's own page as a picture, for the entrance."""
    if not wanted:
        return []
    picture = BytesIO()
    code(own).save(picture, kind="png", scale=5, border=4)
    return [Attachment(picture.getvalue(), "image/png", "code.png", cid=CODE)]


def _calendar(order: Order, portion: Portion, url: str) -> list[Attachment]:
    kind, caused, known = order.kind, order.caused, order.known
    has_entry = kind in WITH_CALENDAR and known.standing == "registered"
    if not has_entry and kind not in TAKES_OUT:
        return []
    method = "PUBLISH" if has_entry else "CANCEL"
    content = calendar(
        known,
        portion,
        url=url,
        stamp=order.caused_at,
        of=f"{caused.event_id}-{caused.user_id}",
        method=method,
        organizer=known.organizer_name,
    )
    return [Attachment(content, "text/calendar", "event.ics", method=method)]
