"""Mails in the outbox of a service that sends by a mail server of the test's own."""

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from holdfast.kit.mail import sender, turns
from holdfast.kit.mail.message import Envelope, MailMessage, UnwritableMail
from holdfast.kit.mail.outbox import Mail
from holdfast.kit.postgres.database import Database
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually
from tests.helpers.smtp import MailServer

SENDER = "Holdfast <tickets@events.example>"

PEOPLE = [f"{number}@example.com" for number in range(40)]


async def post_mails(service: Service, *recipients: str, kind: str = "hello", **fields: Any) -> list[int]:
    """Mails to people, each in a thread of its own and of no organizer unless told otherwise."""
    rows = [{"kind": kind, "thread": to, "recipient": to, **fields} for to in recipients]
    inserted = await service.run_sql(
        """
        insert into mails (kind, thread, bulk, recipient, arguments)
        select kind, thread, coalesce(bulk, false), recipient, coalesce(arguments, '{}')
          from json_to_recordset(%(rows)s::json)
               as row (kind text, thread text, recipient text, bulk boolean, arguments jsonb)
        returning id
        """,
        rows=json.dumps(rows),
    )
    return [id for (id,) in inserted]


async def render(_: Database[Any], mails: Sequence[Mail]) -> list[Envelope | UnwritableMail | None]:
    """What a service does: `stale` mails are no longer true, and `bad` and `hopeless` ones cannot be written."""
    if any(mail.kind == "bad" for mail in mails):
        raise KeyError("arguments")
    return list(map(_render_mail, mails))


def _render_mail(mail: Mail) -> Envelope | UnwritableMail | None:
    if mail.kind == "stale":
        return None
    if mail.kind == "hopeless":
        return UnwritableMail("There is nothing to say.")
    id = mail.message_id("events.example")
    message = MailMessage(mail.recipient, f"{mail.kind} {mail.id}", "Hello.", "<p>Hello.</p>", id, mail.inserted_at)
    return Envelope(mail.recipient, id, message.encoded("Holdfast <tickets@events.example>"))


def text_of(envelope: Envelope) -> str:
    """The recipient, the subject and the text of a mail, without the marks around what people wrote."""
    mail = message_from_bytes(envelope.content, policy=policy.default)
    body = mail.get_body(["plain"])
    assert body
    return f"{mail['to']}: {mail['subject']}\n{body.get_content()}".replace("\u2068", "").replace("\u2069", "")


def run_senders(*services: Service, render: sender.Render = render) -> AbstractAsyncContextManager[None]:
    """The loop of each service runs."""
    return run_in_background(*(sender.run(service.database, render) for service in services))


async def all_due(database: Database[Any]) -> list[Mail]:
    """The mails that could be sent now, of all shards."""
    mails = [
        mail
        for share in range(64)
        for mail in await database.read(lambda reader, share=share: turns.due_mails(reader, [(share, "")], 100))
    ]
    return sorted(mails, key=lambda mail: mail.id)


async def mail_states(service: Service) -> dict[str, tuple[str | None, int]]:
    rows = await service.run_sql("select recipient, outcome, attempts from mails order by id")
    return {recipient: (outcome, attempts) for recipient, outcome, attempts in rows}


async def wait_until_all_ended(service: Service, seconds: float = 10) -> None:
    async def ended() -> bool:
        return not await service.run_sql("select from mails where ended_at is null limit 1")

    await eventually(ended, seconds)


async def has_received(server: MailServer, count: int) -> bool:
    """Whether the mail server has got this many mails."""
    return len(server.received) >= count


def mail_message(**fields: Any) -> MailMessage:
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


def parsed_mail(**fields: Any) -> EmailMessage:
    """The mail as its recipient reads it."""
    mail = message_from_bytes(mail_message(**fields).encoded(SENDER), policy=policy.default)
    assert isinstance(mail, EmailMessage)
    assert not mail.defects
    return mail


def envelope(recipient: str, number: int = 1) -> Envelope:
    """A mail that is written now, for a recipient."""
    id, now = f"{number}.5@events.example", datetime.now(UTC)
    written = MailMessage("ann@example.com", "Seat", "A seat.\n.\nEnd", "<p>A seat.</p>", id, now)
    return Envelope(recipient, id, written.encoded("tickets@events.example"))


async def confirm_at_once() -> None:
    """What a carrier awaits before it sends the content: nothing here."""
