"""People, their registrations, and the mails that they get."""

import re
from email.message import EmailMessage
from functools import partial
from typing import Any

from icalendar import Calendar

from holdfast.events.mails import sending
from holdfast.events.mails.model import MailBatch
from holdfast.events.seats import intake
from holdfast.kit.mail import sender
from holdfast.kit.mail.rendering import ContentRenderer
from tests.events.log.log_scene import seal_logs
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Client, Service, eventually
from tests.helpers.smtp import MailServer, ReceivedMail

ANN, BOB, CY = "ann@example.com", "bob@example.com", "cy@example.com"


class Post:
    """A service with an organizer, whose mails arrive when the test says so."""

    def __init__(
        self, service: Service, server: MailServer, organizer: Client, writer: ContentRenderer[MailBatch]
    ) -> None:
        self.service = service
        self.server = server
        self.organizer = organizer
        self.writer = writer

    async def register(self, event_id: int, *people: str, **fields: Any) -> None:
        """Register people one after the other, and settle."""
        for email in people:
            await self.organizer.register(event_id, email=email, **fields)
        await self.service.settle()

    async def sign_up(self, event_id: int, email: str, name: str | None = None, language: str | None = None) -> None:
        """Register a guest as the form of the page does, and settle."""
        request = intake.IntakeRequest(None, event_id, email=email, name=name, language=language)
        await self.service.database.transact(lambda tx: intake.store_pending(tx, [request]))
        await self.service.settle()

    async def path(self, event_id: int, email: str) -> str:
        """The path of the registration of a guest."""
        [(id,)] = await self.service.run_sql("select public_id from users where email = %(email)s", email=email)
        return f"/api/registrations/{event_id}/{id}"

    async def deliver(self) -> list[ReceivedMail]:
        """Let ten minutes go by, in which the logs are sealed, and every mail leave that waits and is not held.

        Returns those that have arrived since the last time, in the order in which they were stored: mails to different
        mailboxes arrive in any order.
        """
        known = len(self.server.received)
        await tell_changes(self.service)
        await seal_logs(self.service)

        async def empty() -> bool:
            return not await self.service.run_sql(
                """
                select from mails where ended_at is null and (hold is null or due_at <= now())
                union all select from mail_releases limit 1
                """
            )

        async with run_in_background(sender.run(self.service.database, partial(sending.render, self.writer))):
            await eventually(empty)
        return sorted(self.server.received[known:], key=lambda received: int(received.message_id.partition(".")[0]))

    async def sent_kinds(self) -> list[tuple[str, str]]:
        """The addresses and kinds of the mails that arrive now."""
        arrived = {received.message_id.partition(".")[0]: received.recipient for received in await self.deliver()}
        rows = await self.service.run_sql("select id::text, kind from mails order by id")
        return [(arrived[id], kind) for id, kind in rows if id in arrived]


async def let_time_pass(post: Post, interval: str) -> None:
    """Let time pass for all mails."""
    await post.service.run_sql(
        f"""
        update mails set inserted_at = inserted_at - interval '{interval}', due_at = due_at - interval '{interval}',
                         counted_at = counted_at - interval '{interval}'
        """
    )


async def tell_changes(service: Service) -> None:
    """Let ten minutes go by, after which the changes of events become mails."""
    await service.run_sql("update mail_announcements set due_at = now()")
    await sending.process_due_announcements(service.database)


def body(mail: EmailMessage, kind: str = "plain") -> str:
    part = mail.get_body((kind,))
    assert part
    return str(part.get_content()).replace("\r\n", "\n")


def entry(mail: EmailMessage) -> dict[str, Any]:
    """What the calendar file of a mail says, with its method."""
    [file] = [attachment for attachment in mail.iter_attachments() if attachment.get_content_type() == "text/calendar"]
    calendar: Any = Calendar.from_ical(str(file.get_content()))
    assert file["Content-Type"].params["method"] == calendar["method"]
    [event] = calendar.walk("VEVENT")
    return {"METHOD": str(calendar["method"]), **{name: event.decoded(name) for name in event}}


def links(text: str) -> list[str]:
    return re.findall(r"https?://[^\s\"<>]+", text)
