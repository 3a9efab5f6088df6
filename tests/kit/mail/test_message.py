"""A mail has the given contents, and no text of a stranger changes anything else of it."""

from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest

from holdfast.kit.contract.addresses import NoAddress, envelope_address, mailbox
from holdfast.kit.mail.message import Attachment, MailMessage, header_text

SENDER = "Holdfast <tickets@events.example>"
HOSTILE = [
    "Hello\r\nBcc: eve@example.com",
    "Hello\nBcc: eve@example.com",
    "Hello\rBcc: eve@example.com",
    "Hello\r\n\r\n<script>",
    "Hello\x00\x0b\x0c\x1c\x85 Bcc: eve@example.com",
    "Hello\u2028Bcc: eve@example.com\u2029",
    "\u202eelpmaxe\u2066 Hello\u200f\ufeff",
    "=?utf-8?q?=0D=0ABcc=3A_eve=40example=2Ecom?=",
    "x" * 10_000,
    "\ud800 half a character",
]
EXPECTED = {
    "From",
    "To",
    "Subject",
    "Date",
    "Message-ID",
    "Auto-Submitted",
    "X-Auto-Response-Suppress",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "MIME-Version",
    "Content-Type",
}


def message(**fields: Any) -> MailMessage:
    ours: dict[str, Any] = {
        "recipient": "ann@example.com",
        "subject": "Your seat",
        "text": "You have a seat.",
        "html": "<p>You have a seat.</p>",
        "message_id": "12.34@events.example",
        "date": datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC),
        "unsubscribe": "https://events.example/registrations/1-abcdefgh-1-" + "0" * 32 + "/unsubscribe",
    }
    return MailMessage(**{**ours, **fields})


def sent(**fields: Any) -> EmailMessage:
    """The mail as its recipient reads it."""
    mail = message_from_bytes(message(**fields).encoded(SENDER), policy=policy.default)
    assert isinstance(mail, EmailMessage)
    assert not mail.defects
    return mail


def test_a_mail_has_a_text_an_html_and_says_that_a_machine_wrote_it() -> None:
    mail = sent(text="Schön.\n.\n", html="<p>Schön.</p>")

    assert {*mail.keys()} == EXPECTED
    assert mail["From"] == SENDER
    assert mail["To"] == "ann@example.com"
    assert mail["Message-ID"] == "<12.34@events.example>"
    assert mail["Date"] == "Sat, 02 Jan 2027 03:04:05 +0000"
    assert mail["Auto-Submitted"] == "auto-generated"
    for kind, text in (("plain", "Schön.\n.\n"), ("html", "<p>Schön.</p>\n")):
        body = mail.get_body((kind,))
        assert isinstance(body, EmailMessage)
        assert body.get_content().replace("\r\n", "\n") == text


def test_an_address_for_unsubscribing_stays_whole_however_long_it_is() -> None:
    assert b"\r\nList-Unsubscribe: <https://events.example/registrations/1-" in message().encoded(SENDER)
    assert sent()["List-Unsubscribe"] == f"<{message().unsubscribe}>"
    assert sent()["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "List-Unsubscribe" not in sent(unsubscribe="")


def test_a_mail_has_attached_files_and_an_inline_picture() -> None:
    calendar = Attachment(b"BEGIN:VCALENDAR\r\n", "text/calendar", "event.ics", method="PUBLISH")
    picture = Attachment(b"\x89PNG", "image/png", "code.png", cid="code")

    mail = sent(attachments=(picture, calendar))

    [attached] = mail.iter_attachments()
    assert isinstance(attached, EmailMessage)
    assert attached.get_content_type() == "text/calendar"
    assert attached["Content-Type"].params["method"] == "PUBLISH"
    assert attached.get_filename() == "event.ics"
    [inline] = [part for part in mail.walk() if part.get_content_type() == "image/png"]
    assert inline["Content-ID"] == "<code>"
    assert inline.get_content_disposition() == "inline"


@pytest.mark.parametrize("text", HOSTILE)
def test_a_subject_adds_no_header_and_does_not_turn_the_text_around(text: str) -> None:
    mail = sent(subject=text)

    assert {*mail.keys()} == EXPECTED
    assert not {*"\r\n\x00\u2028\u202e\u2066\u200f"} & {*mail["Subject"]}
    body = mail.get_body(("plain",))
    assert isinstance(body, EmailMessage)
    assert body.get_content().rstrip() == "You have a seat."


@pytest.mark.parametrize("text", HOSTILE)
def test_a_file_name_adds_no_header(text: str) -> None:
    mail = sent(attachments=(Attachment(b"x", "application/pdf", text),))

    assert {*mail.keys()} == EXPECTED
    [attached] = mail.iter_attachments()
    assert {*attached.keys()} <= {"Content-Type", "Content-Transfer-Encoding", "Content-Disposition", "MIME-Version"}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_of_the_sender_adds_no_header(text: str) -> None:
    encoded = message().encoded(f'"{header_text(text)}" <tickets@events.example>')

    assert {*message_from_bytes(encoded, policy=policy.default).keys()} == EXPECTED


@pytest.mark.parametrize("text", [*HOSTILE, "a b", "<a>", "ä"])
def test_an_invalid_header_value_of_our_own_raises_value_error(text: str) -> None:
    if text == "x" * 10_000:
        return
    for field in ("message_id", "unsubscribe"):
        with pytest.raises(ValueError, match="a header needs ASCII"):
            message(**{field: text}).encoded(SENDER)


@pytest.mark.parametrize("text", HOSTILE)
def test_bodies_of_strangers_stay_in_the_body(text: str) -> None:
    text = text.replace("\ud800", "")
    mail = sent(text=text, html=text)

    assert {*mail.keys()} == EXPECTED
    assert [part.get_content_type() for part in mail.walk()] == ["multipart/alternative", "text/plain", "text/html"]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ann",
        "@example.com",
        "ann@",
        "ann@example.com\r\nBcc: eve@example.com",
        "ann@example.com\nRCPT TO:<eve@example.com>",
        "ann@example.com>, eve@example.com",
        "ann@example.com> SIZE=1",
        '"ann\r\n"@example.com',
        "ann@@example.com",
        "ann@exa mple.com",
        "ann@example..com",
        "ann@-example.com",
        "änn@example.com",
        "ann@exam\u200dple.com",
        "ann@exam\u200cple.com",
        "a" * 65 + "@example.com",
        "ann@" + "a" * 70 + ".com",
        "ann@" + "a." * 130 + "com",
    ],
)
def test_mail_is_sent_to_addresses_only(address: str) -> None:
    with pytest.raises(NoAddress):
        envelope_address(address)
    with pytest.raises(NoAddress):
        message(recipient=address).encoded(SENDER)


@pytest.mark.parametrize(
    ("domain", "ascii_form"),
    [
        ("straße.example", "xn--strae-oqa.example"),  # and not strasse.example, which is somebody else's
        ("STRAẞE.example", "xn--strae-oqa.example"),
        ("βόλος.example", "xn--nxasmm1c.example"),  # and not xn--nxasmq6b.example
        ("\uff45xample.com", "example.com"),
    ],
)
def test_an_international_domain_is_encoded_as_registries_do(domain: str, ascii_form: str) -> None:
    assert envelope_address(f"ann@{domain}") == f"ann@{ascii_form}"
    assert mailbox(f"ann@{domain}") == f"ann@{ascii_form}"


def test_a_domain_in_another_script_is_sent_to_in_ascii() -> None:
    assert envelope_address("ann@müller.example") == "ann@xn--mller-kva.example"
    assert sent(recipient="ann@müller.example")["To"] == "ann@xn--mller-kva.example"
