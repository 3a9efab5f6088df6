"""A mail has the given contents, and no text of a stranger changes anything else of it."""

import re
from email import message_from_bytes, policy
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kit.contract.addresses import NoAddress, envelope_address, mailbox
from holdfast.kit.mail.message import Attachment, header_text
from tests.kit.mail.posting import SENDER, mail_message, parsed_mail

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


def test_a_mail_has_a_text_an_html_and_says_that_a_machine_wrote_it() -> None:
    mail = parsed_mail(text="Schön.\n.\n", html="<p>Schön.</p>")

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
    assert b"\r\nList-Unsubscribe: <https://events.example/registrations/1-" in mail_message().encoded(SENDER)
    assert parsed_mail()["List-Unsubscribe"] == f"<{mail_message().unsubscribe}>"
    assert parsed_mail()["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "List-Unsubscribe" not in parsed_mail(unsubscribe="")


def test_a_mail_has_attached_files_and_an_inline_picture() -> None:
    calendar = Attachment(b"BEGIN:VCALENDAR\r\n", "text/calendar", "event.ics", method="PUBLISH")
    picture = Attachment(b"\x89PNG", "image/png", "code.png", cid="code")

    mail = parsed_mail(attachments=(picture, calendar))

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
    mail = parsed_mail(subject=text)

    assert {*mail.keys()} == EXPECTED
    assert not {*"\r\n\x00\u2028\u202e\u2066\u200f"} & {*mail["Subject"]}
    body = mail.get_body(("plain",))
    assert isinstance(body, EmailMessage)
    assert body.get_content().rstrip() == "You have a seat."


@pytest.mark.parametrize("character", [chr(code) for code in range(128)])
@pytest.mark.parametrize("end", ["b", "é"])
def test_a_line_has_single_spaces_and_all_printable_characters_and_no_others(character: str, end: str) -> None:
    is_word = character.isprintable() and character != " "

    assert header_text(f" a  {character}  {end} ").split(" ") == ["a", *([character] if is_word else []), end]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_file_name_adds_no_header(text: str) -> None:
    mail = parsed_mail(attachments=(Attachment(b"x", "application/pdf", text),))

    assert {*mail.keys()} == EXPECTED
    [attached] = mail.iter_attachments()
    assert {*attached.keys()} <= {"Content-Type", "Content-Transfer-Encoding", "Content-Disposition", "MIME-Version"}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_of_the_sender_adds_no_header(text: str) -> None:
    encoded = mail_message().encoded(f'"{header_text(text)}" <tickets@events.example>')

    assert {*message_from_bytes(encoded, policy=policy.default).keys()} == EXPECTED


@pytest.mark.parametrize("text", [*HOSTILE, "a b", "<a>", "ä"])
def test_an_invalid_header_value_of_our_own_raises_value_error(text: str) -> None:
    if text == "x" * 10_000:
        return
    for field in ("message_id", "unsubscribe"):
        with pytest.raises(ValueError, match="a header needs ASCII"):
            mail_message(**{field: text}).encoded(SENDER)


@pytest.mark.parametrize("text", HOSTILE)
def test_bodies_of_strangers_stay_in_the_body(text: str) -> None:
    text = text.replace("\ud800", "")
    mail = parsed_mail(text=text, html=text)

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
        mail_message(recipient=address).encoded(SENDER)


@pytest.mark.parametrize(
    ("domain", "ascii_form"),
    [
        ("straße.example", "xn--strae-oqa.example"),  # and not strasse.example, which is another company's
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
    assert parsed_mail(recipient="ann@müller.example")["To"] == "ann@xn--mller-kva.example"


@settings(max_examples=60)
@given(text=st.text(st.characters(codec="utf-8")), html=st.text("=\n\r .-aä\t"), picture=st.binary(), file=st.binary())
def test_any_contents_come_back_as_they_were_in_lines_of_76_characters(
    text: str, html: str, picture: bytes, file: bytes
) -> None:
    attachments = (
        Attachment(picture, "image/png", "code.png", cid="code"),
        Attachment(file, "application/pdf", "ä.pdf"),
    )
    encoded = mail_message(text=text, html=html, attachments=attachments).encoded(SENDER)

    mail = message_from_bytes(encoded, policy=policy.default)
    assert [part.get_content_type() for part in mail.walk()] == [
        *("multipart/mixed", "multipart/alternative", "text/plain", "multipart/related", "text/html"),
        *("image/png", "application/pdf"),
    ]
    contents = [part.get_payload(decode=True) for part in mail.walk() if not part.is_multipart()]
    lines = [re.sub("\r\n|\r|\n", "\r\n", part).removesuffix("\r\n") + "\r\n" for part in (text, html)]
    assert contents == [*(line.encode() for line in lines), picture, file]
    body = encoded.partition(b"\r\n\r\n")[2]
    assert all(len(line) <= 76 for line in body.split(b"\r\n") if not line.startswith(b"Content-"))
    assert b"\n" not in encoded.replace(b"\r\n", b"")


def test_a_mail_has_the_same_bytes_at_each_attempt() -> None:
    assert mail_message().encoded(SENDER) == mail_message().encoded(SENDER)


def test_dots_side_by_side_before_the_at_sign_are_quoted() -> None:
    assert parsed_mail(recipient="ann..b.@example.com")["To"].addresses[0].username == "ann..b."
