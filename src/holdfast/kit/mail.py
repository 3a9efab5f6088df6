"""Mails: what one says, and the bytes that are sent for it.

Texts of strangers end up in mails. In a header they lose everything that could end the header, or turn the text around.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime, parseaddr

_LINES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_TURNS = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]")
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")
_DOMAIN = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")

NO_ADDRESS = "Mail cannot be sent to this address: it needs a name of ASCII characters, @, and a domain."


class NoAddress(ValueError):
    """Mail cannot be sent to this text."""


@dataclass(frozen=True)
class Attachment:
    """A file of a mail.

    type    its media type, such as `image/png`
    cid     the name by which the HTML refers to it, `cid:<cid>`; empty: it is attached
    method  what a calendar is to do with it; empty: it is no calendar
    """

    content: bytes
    type: str
    filename: str
    cid: str = ""
    method: str = ""


@dataclass(frozen=True)
class Message:
    """One mail to one person.

    message_id      without angle brackets; the same whenever this mail is sent
    unsubscribe     an address to which a POST ends mails like this one; empty: there is none
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
        """The mail as it is sent, from a sender. Raises `NoAddress`."""
        mail = EmailMessage(policy=_POLICY)
        name, address = parseaddr(sender)
        mail["From"] = _address(address, plain(name))
        mail["To"] = _address(self.recipient)
        mail["Subject"] = plain(self.subject)
        mail["Date"] = format_datetime(self.date)
        mail["Message-ID"] = f"<{_token(self.message_id)}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-Auto-Response-Suppress"] = "All"
        if self.unsubscribe:
            mail["List-Unsubscribe"] = f"<{_token(self.unsubscribe)}>"
            mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        mail.set_content(self.text, cte="quoted-printable")
        mail.add_alternative(self.html, subtype="html", cte="quoted-printable")
        for each in self.attachments:
            _attach(mail, each)
        return mail.as_bytes()


@dataclass(frozen=True)
class Envelope:
    """A mail as it is sent.

    recipient     as mail servers are told it
    message_id    without angle brackets
    content       its lines end with CR LF, also the last one
    """

    recipient: str
    message_id: str
    content: bytes


@dataclass(frozen=True)
class Unwritable:
    """A mail that cannot be sent to anybody, and why, for operators."""

    why: str


def _attach(mail: EmailMessage, file: Attachment) -> None:
    main, sub = file.type.split("/")
    if file.cid:
        html = mail.get_body(("html",))
        assert isinstance(html, EmailMessage)
        cid = f"<{_token(file.cid)}>"
        html.add_related(file.content, main, sub, cid=cid, filename=plain(file.filename), disposition="inline")
        return
    if main == "text":
        text = file.content.decode()
        parameters = {"method": _token(file.method)} if file.method else {}
        mail.add_attachment(text, sub, filename=plain(file.filename), cte="base64", params=parameters)
    else:
        mail.add_attachment(file.content, main, sub, filename=plain(file.filename))


class _Policy(EmailPolicy):
    """The library folds a long address inside a header, and thereby breaks it."""

    def fold(self, name: str, value: str) -> str:
        return _whole(name, value) or super().fold(name, value)

    def fold_binary(self, name: str, value: str) -> bytes:
        return _whole(name, value).encode() or super().fold_binary(name, value)


def _whole(name: str, value: str) -> str:
    """The line of a header that must not be folded; empty for others."""
    return f"{name}: {value}\r\n" if name.lower() in {"message-id", "list-unsubscribe", "content-id"} else ""


_POLICY = _Policy(linesep="\r\n")


def plain(text: str) -> str:
    """A text for a header: on one line, without control characters and marks that change the direction of writing.

    The library would decode `=?…?=`, and so find line ends that were hidden in it.
    """
    return _on_one_line(text).replace("=?", "= ?")


def lines(text: str) -> list[str]:
    """A text for the content of a mail, line by line, without what `plain` leaves out. Empty if nothing is left."""
    return "\n".join(_on_one_line(each) for each in text.splitlines()).strip().splitlines()


def _on_one_line(text: str) -> str:
    return " ".join(_TURNS.sub("", _LINES.sub(" ", text)).split())


def envelope_address(text: str) -> str:
    """An address as mail servers are told it; a domain that is not ASCII is written in its ASCII form.

    Raises `NoAddress`.
    """
    local, _, domain = text.rpartition("@")
    try:
        ascii_domain = domain.encode("idna").decode()
    except UnicodeError:
        ascii_domain = ""
    if not _LOCAL.fullmatch(local) or not _DOMAIN.fullmatch(ascii_domain):
        raise NoAddress(NO_ADDRESS)
    return f"{local}@{ascii_domain}"


def sender_address(text: str) -> str:
    """The address in `Name <address>`, or in a bare address. Raises `NoAddress`."""
    if _LINES.search(text):
        raise NoAddress("An address is on one line.")
    return envelope_address(parseaddr(text)[1])


def _address(text: str, name: str = "") -> Address:
    local, _, domain = envelope_address(text).rpartition("@")
    return Address(name, local, domain)


def _token(text: str) -> str:
    """A text that may stand in a header by itself. It is ours, and refused rather than mended."""
    if not text.isascii() or not text.isprintable() or {*"<> "} & {*text} or "=?" in text:
        raise ValueError("a header needs ASCII characters without spaces and angle brackets")
    return text
