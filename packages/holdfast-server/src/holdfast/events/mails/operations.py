"""The operations on mails about an organizer's events: list them with their delivery status, and retry failed ones."""

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from holdfast.events.mails import sql
from holdfast.events.mails.failure_reasons import FailureReason, failure_reason
from holdfast.events.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, Id
from holdfast.kit.contract.problems import NOT_FOUND, refuses
from holdfast.kit.mail import outbox
from holdfast.kit.mail.outbox import MailOutcome

MailStatusFilter = Literal["waiting", "sent", "failed"]
MAIL_STATUSES: tuple[MailStatusFilter, ...] = get_args(MailStatusFilter)
"""The statuses that mails can be filtered by. A superseded mail, outdated before it was sent, has none of them."""


class ListMails(Command):
    limit: Annotated[int, Meta(ge=1, le=100, description="How many mails are listed.")] = 50
    before: Annotated[Id | None, Meta(description="Only mails that were caused before the one with this id.")] = None
    status: Annotated[MailStatusFilter | None, Meta(description="None: all mails.")] = None
    recipient: Annotated[str | None, Meta(description="Only mails to this address.")] = None


class RetryMail(Command):
    mail_id: Id


class MailStatus(Struct):
    """A mail about an event with its delivery status.

    status     None while it waits: before the first attempt, or after the mail server has deferred it
    error      the answer of the mail server to the last attempt
    hold       why it must not be sent yet: the organizer has not proved its address, or the recipient has too many
               mails from new organizers; None: it may be sent
    """

    id: int
    event_id: int
    title: str
    kind: str
    recipient: str
    inserted_at: dt.datetime
    ended_at: dt.datetime | None
    due_at: dt.datetime
    status: MailOutcome | None
    attempts: int
    error: str | None
    hold: Literal["organizer", "recipient"] | None

    @property
    def failure_reason(self) -> FailureReason | None:
        """The reason of the failure; None if the mail has not failed."""
        return failure_reason(self.error or "") if self.status == "failed" else None


async def list(reader: Reader, caller: Caller, command: ListMails) -> Sequence[MailStatus]:
    """List the mails about events of an organizer, newest first. Mails are deleted 30 days after they ended."""
    statuses = [command.status] if command.status else [*MAIL_STATUSES, "superseded"]
    values = {"seen_by": caller.tenant, "statuses": statuses, "before": command.before, "limit": command.limit}
    if command.recipient is None:
        return await reader.rows(MailStatus, sql.LIST_MAILS, values)
    return await reader.rows(MailStatus, sql.LIST_MAILS_TO, {**values, "recipient": command.recipient})


@refuses(NOT_FOUND)
async def retry(tx: Tx, caller: Caller, command: RetryMail) -> None:
    """Retry a failed or deferred mail now. Raises `not_found` for a mail about another organizer's event."""
    values = {"mail_id": command.mail_id, "organizer_id": caller.tenant}
    if not await tx.value(sql.IS_ABOUT_OWN_EVENT, values):
        raise NOT_FOUND(f"No mail with the id {command.mail_id} waits or has failed.")
    await outbox.retry_mail(tx, command.mail_id)
