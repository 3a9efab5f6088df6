"""Mails: their contents, and their encoding as bytes.

Mails contain texts from unknown authors. In headers, such texts lose all characters that could end the header or change
the direction of the text.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime, parseaddr

from holdfast.kit.contract.addresses import envelope_address
from holdfast.kit.mail import headers

_SPACES = re.compile("[ \t]+")
_LINES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
    # Joiners change the shape of Arabic and Indic letters, join emoji, and break links behind dots. They do nothing in
    # Latin words.
    "|(?<=[0-9A-Za-z\u00c0-\u024f])[\u200c\u200d]+(?=[0-9A-Za-z\u00c0-\u024f])"
)


@dataclass(frozen=True)
class Attachment:
    """A file of a mail.

    type    its media type, such as `image/png`
    cid     the id by which the HTML refers to it, `cid:<cid>`; empty: it is an ordinary attachment
    method  the method of an iCalendar file; empty: it is no calendar
    """

    content: bytes
    type: str
    filename: str
    cid: str = ""
    method: str = ""


@dataclass(frozen=True)
class MailMessage:
    """One mail to one person.

    message_id      without angle brackets; the same at each attempt
    unsubscribe     the URL at which a POST stops mails like this one; empty: there is none
    """

    recipient: str
    subject: str
    text: str
    html: str
    message_id: str
    date: datetime
    attachments: tuple[Attachment, ...] = field(default=())
    unsubscribe: str = ""

    def encoded(self, sender: str) -> bytes:
        """The bytes of the mail, from a sender. Raises `NoAddress`."""
        mail = EmailMessage(policy=_POLICY)
        name, address = parseaddr(sender)
        mail["From"] = headers.mailbox("From", header_text(name), _ascii_address(address))
        mail["To"] = headers.mailbox("To", "", _ascii_address(self.recipient))
        mail["Subject"] = headers.text("Subject", header_text(self.subject))
        mail["Date"] = format_datetime(self.date)
        mail["Message-ID"] = f"<{_token(self.message_id)}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-Auto-Response-Suppress"] = "All"
        if self.unsubscribe:
            mail["List-Unsubscribe"] = f"<{_token(self.unsubscribe)}>"
            mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        mail.set_content(self.text, cte="quoted-printable")
        mail.add_alternative(self.html, subtype="html", cte="quoted-printable")
        for attachment in self.attachments:
            _attach(mail, attachment)
        return mail.as_bytes()


@dataclass(frozen=True)
class Envelope:
    """A mail that is ready to be sent.

    recipient     the address for SMTP
    message_id    without angle brackets
    content       the bytes of the mail; all lines end with CR LF
    """

    recipient: str
    message_id: str
    content: bytes


@dataclass(frozen=True)
class UnwritableMail:
    """A mail that cannot be sent, with the reason for operators."""

    why: str


def _attach(mail: EmailMessage, file: Attachment) -> None:
    main, sub = file.type.split("/")
    if file.cid:
        html = mail.get_body(("html",))
        assert isinstance(html, EmailMessage)
        html.add_related(file.content, main, sub, cid=f"<{_token(file.cid)}>")
        _name_last_part(html, "inline", file.filename)
        return
    if main == "text":
        text = file.content.decode()
        parameters = {"method": _token(file.method)} if file.method else {}
        mail.add_attachment(text, sub, cte="base64", params=parameters)
    else:
        mail.add_attachment(file.content, main, sub)
    _name_last_part(mail, "attachment", file.filename)


def _name_last_part(mail: EmailMessage, kind: str, filename: str) -> None:
    """Set Content-Disposition of the part that was added last."""
    *_, part = mail.iter_parts()
    del part["Content-Disposition"]
    part["Content-Disposition"] = headers.disposition(kind, header_text(filename))


class _Policy(EmailPolicy):
    """Writes headers that are encoded already as they are. The library would parse, change and fold them."""

    def header_store_parse(self, name: str, value: str) -> tuple[str, str]:
        return (name, value) if name.lower() in _ENCODED else super().header_store_parse(name, value)

    def header_fetch_parse(self, name: str, value: str) -> str:
        return value if name.lower() in _ENCODED else super().header_fetch_parse(name, value)

    def fold(self, name: str, value: str) -> str:
        return f"{name}: {value}\r\n" if name.lower() in _ENCODED else super().fold(name, value)

    def fold_binary(self, name: str, value: str) -> bytes:
        return self.fold(name, value).encode("ascii") if name.lower() in _ENCODED else super().fold_binary(name, value)


_ENCODED = {"from", "to", "subject", "content-disposition", "message-id", "list-unsubscribe", "content-id"}


_POLICY = _Policy(linesep="\r\n")


def header_text(text: str) -> str:
    """A text for a header: on one line, without control characters and marks that change the direction of the text.

    Invisible marks inside a word leave no space behind.
    """
    return _on_one_line(text)


def joined_lines(text: str) -> str:
    """A text for a header, such as a postal address, with commas between its lines."""
    lines = content_lines(text)
    if len(lines) < 2:
        return "".join(lines)
    return ", ".join(line for line in (line.strip(" ,") for line in lines) if line)


def content_lines(text: str) -> list[str]:
    """The lines of a text for the content of a mail, without what `header_text` removes. There may be none."""
    return "\n".join(_on_one_line(line) for line in text.splitlines()).strip().splitlines()


def _on_one_line(text: str) -> str:
    return _SPACES.sub(" ", _INVISIBLE.sub("", _LINES.sub(" ", text))).strip()


def _ascii_address(text: str) -> str:
    """An address for a header. Raises `NoAddress`."""
    return str(Address(addr_spec=envelope_address(text)))


def _token(text: str) -> str:
    """Check a text of our own that is a header value. Raises ValueError instead of correcting it."""
    if not text.isascii() or not text.isprintable() or {*"<> "} & {*text} or "=?" in text:
        raise ValueError("a header needs ASCII characters without spaces and angle brackets")
    return text
