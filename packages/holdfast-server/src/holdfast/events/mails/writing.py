"""Writes mails: the text, the HTML and the attachments.

A mail takes milliseconds, so a subprocess writes it (`sending.py`). This file imports little, since the subprocess
starts when a mail is already due.
"""

from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from holdfast import accounts
from holdfast.accounts.agents import mail as request_mail
from holdfast.accounts.agents.mail import RequestMail
from holdfast.accounts.signin import mail as sign_in
from holdfast.accounts.signin.mail import SignInMail
from holdfast.accounts.webhooks import mail as webhook_mail
from holdfast.accounts.webhooks.mail import WebhookMail
from holdfast.events.mails import own_data_mail
from holdfast.events.mails.kinds import KINDS, Kind, sentences_of
from holdfast.events.mails.model import MailArguments, MailBatch, MailFacts, RegistrationMail
from holdfast.events.mails.own_data_mail import DataMail
from holdfast.events.organizers.accent import dark_accent
from holdfast.events.paths import organizer_path
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations.entrance_code import qr_png, short_code
from holdfast.events.texts.outbound_texts import without_web_addresses
from holdfast.kit.mail.message import Attachment, MailMessage, content_lines, header_text, joined_lines
from holdfast.kit.pages.language import Language, language_with_code
from holdfast.kit.pages.layout import Frame
from holdfast.kit.pages.link_mail import stop_text, url_in_language

FRAME = Frame("Holdfast Events", Path(__file__).parent, accounts.FOLDER)

CODE = "code"
"""The content id of the picture with the QR code."""


class Detail(Struct):
    """A line such as `Date: November 21, 2026`.

    is_foreign    whether the value was written by a stranger
    is_void       whether it no longer applies, such as the date of a cancelled event
    """

    label: str
    value: str
    is_foreign: bool = False
    is_void: bool = False


class RegistrationMailContent(Struct):
    """The content of a mail, for its text and its HTML.

    Strangers wrote `title`, `greeting`, `organizer`, `paragraph_lines` and details with `is_foreign`.

    is_request         whether the person has to do something: then the buttons come before all details
    paragraph_lines    the lines of the organizer's paragraph
    entrance_code      the short code for the entrance
    button_label       the label of the first button
    button_url         where it leads: to the page of the registration, or else to the next step
    cancel_question    the sentence before the way to cancel the registration; empty: it is too late for that
    cancel_label       what that way is called
    cancel_url         where the person can cancel the registration
    organizer_url      the page of the organizer; empty: it has none
    order_sentences    the sentences about its number in the public order of arrivals; empty: it has none
    proof_url          where the number can be checked
    calendar_url       the file for a calendar; empty: there is no seat to note
    log_head           the short form of the signed head of the log, as evidence of it; empty: there is none yet
    """

    language: Language
    is_request: bool
    opening: str
    further_sentences: str
    paragraph_lines: list[str]
    title: str
    greeting: str
    details: list[Detail]
    entrance_code: str
    button_label: str
    button_url: str
    cancel_url: str
    event_url: str
    organizer_url: str
    calendar_url: str
    cancel_question: str
    cancel_label: str
    organizer: str
    stop_url: str
    order_sentences: str
    proof_url: str
    log_head: str


def write(batch: MailBatch) -> list[bytes]:
    """The bytes of each mail."""
    return [message(mail, batch).encoded(batch.sender) for mail in batch.mails]


def message(
    mail: RegistrationMail | SignInMail | DataMail | RequestMail | WebhookMail, batch: MailBatch
) -> MailMessage:
    """A mail of the batch before it is encoded."""
    if isinstance(mail, SignInMail):
        return sign_in.message(mail, FRAME)
    if isinstance(mail, RequestMail):
        return request_mail.message(mail, FRAME)
    if isinstance(mail, WebhookMail):
        return webhook_mail.message(mail, FRAME)
    if isinstance(mail, DataMail):
        return own_data_mail.message(mail, FRAME)
    language = language_with_code(mail.arguments.language)
    mail = _without_links(mail, language)
    kind, arguments, facts = mail.kind, mail.arguments, mail.facts
    has_registration, has_code = KINDS[kind].has_registration, KINDS[kind].has_code
    sentences = sentences_of(kind, arguments.reason, FRAME.texts(language))
    title = header_text(facts.title)
    values = {"amount": _amount(kind, arguments, facts, language), "until": _deadline(kind, facts, language)}
    content = RegistrationMailContent(
        language=language,
        is_request=KINDS[kind].is_request,
        opening=sentences.first % (values | {"title": title}),
        further_sentences=" ".join((*_waitlist_sentences(mail, language), *sentences.rest)) % values,
        paragraph_lines=content_lines(facts.paragraph or ""),
        title=title,
        greeting=header_text(arguments.name or ""),
        details=_details(kind, facts, language, values["amount"]),
        entrance_code=str(short_code(mail.registration_url.rpartition("/")[2])) if has_code else "",
        button_label=_button_label(mail, values["amount"], language),
        button_url=url_in_language(_button_url(mail, batch), language),
        cancel_url=url_in_language(f"{mail.registration_url}/cancel", language),
        event_url=url_in_language(mail.event_url, language),
        organizer_url=url_in_language(_organizer_url(mail, batch), language) if facts.organizer_name else "",
        calendar_url=_calendar_url(mail, batch, language),
        cancel_question=_cancel_question(facts, language)
        if has_registration and facts.now < facts.cancellable_until
        else "",
        cancel_label=_cancel_label(facts, language),
        organizer=header_text(facts.organizer_name or FRAME.texts(language).gettext("Unconfirmed organizer")),
        stop_url=url_in_language(mail.stop_url, language),
        order_sentences=_order_sentences(facts, language) if KINDS[kind].is_numbered else "",
        proof_url=url_in_language(f"{batch.base_url}/verify", language)
        + f"#/log/events/{facts.id}/proofs/{facts.log_number}",
        log_head=_log_head_line(facts, language),
    )
    return MailMessage(
        recipient=mail.recipient,
        subject=sentences.subject % (values | {"title": title}),
        text=_text(content) + stop_text(FRAME, language, mail.stop_url),
        html=FRAME.render(
            "mail.html",
            language=language,
            content=content,
            first=_marked(sentences.first, values, title),
            logo=mail.logo_url,
            accent=facts.accent,
            dark_accent=dark_accent(facts.accent) if facts.accent else None,
            code=CODE if has_code else "",
            stop_url=content.stop_url,
        ),
        message_id=mail.message_id,
        date=mail.caused_at,
        attachments=(
            *_code_attachments(mail.registration_url, has_code),
            *_calendar_attachments(mail, batch, mail.registration_url if has_code else mail.event_url),
        ),
        unsubscribe=mail.stop_url,
    )


def _without_links(mail: RegistrationMail, language: Language) -> RegistrationMail:
    """The mail without web addresses in the texts of strangers.

    The organizer's paragraph keeps its addresses, since it is marked as the words of the organizer.
    """
    _ = FRAME.texts(language).gettext
    replacement = _("(see the event's page)")
    return replace(
        mail,
        arguments=without_web_addresses(mail.arguments, replacement),
        facts=without_web_addresses(mail.facts, replacement),
    )


def _amount(kind: Kind, arguments: MailArguments, facts: MailFacts, language: Language) -> str:
    """What is to be paid, goes back, or was paid; empty: nothing."""
    in_minor_units = {"payment_due": facts.amount_due, "refund": arguments.amount}.get(kind, facts.amount_paid)
    if not in_minor_units:
        return ""
    currency = arguments.currency or facts.currency
    return language.money(in_minor_units, currency, digits(currency))


def _deadline(kind: Kind, facts: MailFacts, language: Language) -> str:
    """When the time to pay or to confirm ends; empty: nothing is to be done."""
    end = {"payment_due": facts.held_until, "confirm": facts.draw_at}.get(kind)
    return language.moment(end, facts.timezone or "UTC") if end else ""


def _details(kind: Kind, facts: MailFacts, language: Language, amount: str) -> list[Detail]:
    _ = FRAME.texts(language).gettext
    zone = facts.timezone or "UTC"
    has_registration = KINDS[kind].has_registration
    details: list[Detail] = []
    # Sentences of mails that ask for something name the amount already.
    if has_registration and amount and not KINDS[kind].is_request:
        details.append(Detail(_("Paid"), amount))
    when = f"{language.date(facts.datetime, zone)}, {language.times(facts.datetime, facts.ends_at, zone)}"
    details.append(Detail(_("Date"), when, is_void=kind == "event_cancelled"))
    if venue := ", ".join(joined_lines(part) for part in (facts.location_name, facts.address) if part):
        details.append(Detail(_("Place"), venue, is_foreign=True))
    if has_registration and facts.amount_due and amount and facts.refund_days is not None:
        details.append(Detail(_("Refunds"), _money_back(facts, language)))
    return details


def _money_back(facts: MailFacts, language: Language) -> str:
    """What goes back after a cancellation, and until when."""
    texts = FRAME.texts(language)
    if facts.refund_until <= facts.now:
        if not (days := facts.refund_days):
            return texts.gettext("You get nothing back any more.")
        text = texts.ngettext(
            "You get nothing back: the organizer gives money back only until %(number)s day before the event.",
            "You get nothing back: the organizer gives money back only until %(number)s days before the event.",
            days,
        )
        return text % {"number": language.number(days)}
    until = language.moment(facts.refund_until, facts.timezone or "UTC")
    text = texts.gettext("If you cancel by %(until)s, you get all of it back. After that, you get nothing back.")
    return text % {"until": until}


def _cancel_question(facts: MailFacts, language: Language) -> str:
    """The sentence before the way to cancel. It names a deadline only to a person who has a seat."""
    _ = FRAME.texts(language).gettext
    if facts.status == "in_draw":
        return _("You do not want to take part any more?")
    if facts.status != "registered":
        return _("You do not want a seat any more?")
    until = language.moment(facts.cancellable_until, facts.timezone or "UTC")
    return _("Can't come? Please cancel by %(until)s.") % {"until": until}


def _cancel_label(facts: MailFacts, language: Language) -> str:
    """The text of the link to the page on which the person cancels."""
    _ = FRAME.texts(language).gettext
    if facts.status == "in_draw":
        return _("Withdraw from the draw")
    return _("Leave the waiting list") if facts.status == "waitlisted" else _("Cancel your registration")


def _order_sentences(facts: MailFacts, language: Language) -> str:
    """The sentences about the number of a registration in the public order; empty if it has none."""
    if facts.log_number is None or facts.arrivals is None:
        return ""
    _, number = FRAME.texts(language).gettext, language.number
    numbers = {"number": number(facts.log_number), "total": number(facts.arrivals)}
    if facts.drawn_place is None or facts.draw_entries is None:
        sentences = [_("You registered as number %(number)s of %(total)s.") % numbers]
    else:
        drawn = {"entries": number(facts.draw_entries), "place": number(facts.drawn_place)}
        sentence = _("Your entry was number %(number)s of %(entries)s. In the draw it came to rank %(place)s.")
        sentences = [sentence % (numbers | drawn)]
    if facts.moved:
        sentences.append(_("The organizer has moved %(number)s of them.") % {"number": number(facts.moved)})
    if facts.removed:
        sentences.append(_("The organizer has removed %(number)s of them.") % {"number": number(facts.removed)})
    if not facts.moved and not facts.removed:
        sentences.append(_("The organizer has moved nobody."))
    return " ".join(sentences)


def _log_head_line(facts: MailFacts, language: Language) -> str:
    """The signed head of the log, such as "18,912 entries, 3f2a 9c1d"; empty if it lacks the registration.

    A person who has it can see whether the log was rewritten later.
    """
    if not facts.is_logged or facts.head_size is None or facts.head_root is None:
        return ""
    sentence = FRAME.texts(language).ngettext(
        "Keep this line to prove the order later: %(number)s entry, %(root)s",
        "Keep this line to prove the order later: %(number)s entries, %(root)s",
        facts.head_size,
    )
    root = f"{facts.head_root[:4]} {facts.head_root[4:]}"
    return sentence % {"number": language.number(facts.head_size), "root": root}


def _button_label(mail: RegistrationMail, amount: str, language: Language) -> str:
    _ = FRAME.texts(language).gettext
    kind = mail.kind
    if not KINDS[kind].has_registration:
        if _leads_to_form(mail):
            return _("Register again")
        return _("To the organizer") if kind == "removed" else _("Other events of the organizer")
    if kind == "confirm":
        return _("Confirm your entry")
    if kind == "payment_due":
        return _("Pay %(amount)s") % {"amount": amount}
    return _("View your place") if mail.facts.status == "waitlisted" else _("View your registration")


def _button_url(mail: RegistrationMail, batch: MailBatch) -> str:
    if KINDS[mail.kind].has_registration:
        return mail.registration_url
    return mail.event_url if _leads_to_form(mail) else _organizer_url(mail, batch)


def _organizer_url(mail: RegistrationMail, batch: MailBatch) -> str:
    return batch.base_url + organizer_path(mail.facts.organizer_slug)


def _leads_to_form(mail: RegistrationMail) -> bool:
    """Whether the next step of a person without a registration is the form of the same event.

    An organizer without a name has no page with other events.
    """
    reason = mail.arguments.reason
    can_try_again = KINDS[mail.kind].next_step == "form" and reason != "by_organizer"
    return can_try_again or reason == "payment_expired" or mail.facts.organizer_name is None


def _waitlist_sentences(mail: RegistrationMail, language: Language) -> tuple[str, ...]:
    """The sentence about the place on the waiting list; empty if the person has none."""
    if mail.waitlist_place is None:
        return ()
    sentence = FRAME.texts(language).gettext("At the moment you are number %(place)s in line.")
    return (sentence % {"place": language.number(mail.waitlist_place)},)


def _text(content: RegistrationMailContent) -> str:
    """The plain text of a mail, for mail programs that show no HTML."""
    _ = FRAME.texts(content.language).gettext
    action = f"{content.button_label}:\n{content.button_url}"
    parts = [
        _("Hello %(name)s,") % {"name": content.greeting} if content.greeting else _("Hello,"),
        content.opening,
        content.further_sentences,
        action if content.is_request else "",
        _("Your code for the entrance:") + f"\n{content.entrance_code}" if content.entrance_code else "",
        "\n".join(f"{detail.label}: {detail.value}" for detail in content.details),
        "" if content.is_request else action,
    ]
    if content.paragraph_lines:
        # The paragraph is marked like a quotation, so that no line of it looks like ours.
        quoted = "\n".join(f"> {line}".rstrip() for line in content.paragraph_lines)
        parts.append(_("%(organizer)s writes:") % {"organizer": content.organizer} + f"\n{quoted}")
    if content.cancel_question:
        parts.append(f"{content.cancel_question} {content.cancel_label}:\n{content.cancel_url}")
    if content.button_url != content.event_url:
        parts.append(_("About the event:") + f"\n{content.event_url}")
    elif content.organizer_url:
        parts.append(_("To the organizer:") + f"\n{content.organizer_url}")
    parts.append(
        _("You get this e-mail because this address was registered for an event of %(organizer)s.")
        % {"organizer": content.organizer}
    )
    if content.order_sentences:
        check = _("Check it yourself:")
        order = f"{content.order_sentences} {check}\n{content.proof_url}\n{content.log_head}".rstrip()
        parts.append(f"{_('How is this fair?')} {order}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _marked(sentence: str, values: Mapping[str, str], title: str) -> Markup:
    """A sentence of the service as HTML, with values and the title that a stranger wrote in it."""
    return Markup.escape(sentence) % {**values, "title": Markup("<bdi>{}</bdi>").format(title)}


def _code_attachments(address: str, has_code: bool) -> list[Attachment]:
    """The address of the registration's page as a QR code, for the entrance."""
    if not has_code:
        return []
    return [Attachment(qr_png(address), "image/png", "code.png", cid=CODE)]


def _has_seat(mail: RegistrationMail) -> bool:
    """Whether the person has a seat now, which belongs in a calendar."""
    return KINDS[mail.kind].calendar == "PUBLISH" and mail.facts.status == "registered"


def _calendar_url(mail: RegistrationMail, batch: MailBatch, language: Language) -> str:
    return url_in_language(f"{batch.base_url}/events/{mail.facts.id}/calendar.ics", language) if _has_seat(mail) else ""


def _calendar_attachments(mail: RegistrationMail, batch: MailBatch, url: str) -> list[Attachment]:
    arguments, facts = mail.arguments, mail.facts
    method = KINDS[mail.kind].calendar
    if not method or (method == "PUBLISH" and not _has_seat(mail)):
        return []
    from holdfast.events.events.calendar_file import calendar_file  # icalendar takes 3 MB

    content = calendar_file(
        facts,
        batch,
        url=url,
        stamp=mail.caused_at,
        registration=f"{arguments.event_id}-{arguments.public_id}",
        method=method,
        organizer=facts.organizer_name,
    )
    return [Attachment(content, "text/calendar", "event.ics", method=method)]
