"""Mails: their contents, and their encoding as bytes.

Mails contain texts from unknown authors. In headers, such texts lose all characters that could end the header or change
the direction of the text.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
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
        name, address = parseaddr(sender)
        lines = [
            f"From: {headers.mailbox('From', header_text(name), _ascii_address(address))}",
            f"To: {headers.mailbox('To', '', _ascii_address(self.recipient))}",
            f"Subject: {headers.text('Subject', header_text(self.subject))}",
            f"Date: {format_datetime(self.date)}",
            f"Message-ID: <{_token(self.message_id)}>",
            "Auto-Submitted: auto-generated",
            "X-Auto-Response-Suppress: All",
        ]
        if self.unsubscribe:
            lines += [
                f"List-Unsubscribe: <{_token(self.unsubscribe)}>",
                "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
            ]
        lines.append("MIME-Version: 1.0\r\n")
        return "\r\n".join(lines).encode("ascii") + self._body()

    def _body(self) -> bytes:
        """The text, the HTML with its pictures, and the attached files, as one part."""
        pictures = [_file(file) for file in self.attachments if file.cid]
        files = [_file(file) for file in self.attachments if not file.cid]
        html = text_part(self.html, "html")
        if pictures:
            html = multipart("related", [html, *pictures], type="text/html")
        body = multipart("alternative", [text_part(self.text, "plain"), html])
        return multipart("mixed", [body, *files]) if files else body


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


def _file(file: Attachment) -> bytes:
    parameters = ['charset="utf-8"'] if file.type.startswith("text/") else []
    if file.method:
        parameters.append(f'method="{_token(file.method)}"')
    return file_part(
        file.content,
        "; ".join([file.type, *parameters]),
        headers.disposition("inline" if file.cid else "attachment", header_text(file.filename)),
        content_id=_token(file.cid) if file.cid else "",
    )


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
    if text.isascii() and text.isprintable():  # as most are: only spaces can be too many
        return (_SPACES.sub(" ", text) if "  " in text else text).strip()
    return _SPACES.sub(" ", _INVISIBLE.sub("", _LINES.sub(" ", text))).strip()


def _ascii_address(text: str) -> str:
    """An address for a header. Raises `NoAddress`."""
    local, _, domain = envelope_address(text).rpartition("@")
    # Dots at the ends or side by side need quotation marks (RFC 5322, section 3.4.1). No other character needs them.
    return f"{local}@{domain}" if all(local.split(".")) else f'"{local}"@{domain}'


def _token(text: str) -> str:
    """Check a text of our own that is a header value. Raises ValueError instead of correcting it."""
    if not text.isascii() or not text.isprintable() or {*"<> "} & {*text} or "=?" in text:
        raise ValueError("a header needs ASCII characters without spaces and angle brackets")
    return text


# The parts of mails, as bytes (RFC 2045, 2046 and 2387). The standard library builds a tree of headers, and parses and
# folds each of them again: that takes milliseconds a mail.
_LINE_ENDS = re.compile("\r\n|\r|\n")


def text_part(content: str, subtype: str) -> bytes:
    """A part with text, quoted-printable. Its last line has an end. `subtype`: `plain` or `html`."""
    lines = _LINE_ENDS.sub("\r\n", content).removesuffix("\r\n") + "\r\n"
    head = f'Content-Type: text/{subtype}; charset="utf-8"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n'
    return head.encode("ascii") + binascii.b2a_qp(lines.encode())


def file_part(content: bytes, content_type: str, disposition: str, *, content_id: str = "") -> bytes:
    """A part with a file, in Base64.

    content_type    its media type with the parameters
    disposition     the value of Content-Disposition
    content_id      the id by which the HTML refers to it, without angle brackets; empty: it has none
    """
    head = (
        f"Content-Type: {content_type}\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: {disposition}\r\n"
    )
    if content_id:
        head += f"Content-ID: <{content_id}>\r\n"
    return head.encode("ascii") + b"\r\n" + base64.encodebytes(content).replace(b"\n", b"\r\n")


def multipart(subtype: str, parts: Sequence[bytes], *, type: str = "") -> bytes:
    """Several parts as one. No part contains another one of the same subtype.

    type    the media type of the first part: `multipart/related` needs it

    No text can contain the boundary: `=` is never followed by another one in quoted-printable text, and Base64 has no
    hyphen. So it is the same in each mail, and a mail has the same bytes at each attempt.
    """
    boundary = f"=={subtype}=="
    parameter = f'; type="{type}"' if type else ""
    head = f'Content-Type: multipart/{subtype}; boundary="{boundary}"{parameter}\r\n\r\n'
    delimiter = f"--{boundary}\r\n".encode()
    return head.encode() + b"".join(delimiter + part + b"\r\n" for part in parts) + f"--{boundary}--\r\n".encode()
