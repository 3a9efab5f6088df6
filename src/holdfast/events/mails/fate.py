"""What came of the mails about the events of an organizer, and another try for those that failed."""

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from holdfast.events.mails import sql
from holdfast.events.mails.failures import Why, why
from holdfast.events.resources import Reader, Tx
from holdfast.kit import outbox
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command, Id
from holdfast.kit.outbox import Outcome
from holdfast.kit.problems import NOT_FOUND, refuses

Wanted = Literal["waiting", "sent", "failed"]
FATES: tuple[Wanted, ...] = get_args(Wanted)
"""The fates by which mails are looked for. Those that were no longer true when their turn came have none of them."""


class ListMails(Command):
    limit: Annotated[int, Meta(ge=1, le=100, description="How many mails are listed.")] = 50
    before: Annotated[Id | None, Meta(description="Only mails that were caused before the one with this id.")] = None
    fate: Annotated[Wanted | None, Meta(description="None: all mails.")] = None


class RetryMail(Command):
    mail_id: Id


class Fate(Struct):
    """A mail about an event, and what came of it.

    outcome    None while it waits: at first, or after the mail server has put it off
    error      what the mail server said to the last attempt
    """

    id: int
    event_id: int
    title: str
    kind: str
    recipient: str
    inserted_at: dt.datetime
    ended_at: dt.datetime | None
    due_at: dt.datetime
    outcome: Outcome | None
    attempts: int
    error: str | None

    @property
    def why(self) -> Why | None:
        """Why it has failed; None if it has not."""
        return why(self.error or "") if self.outcome == "failed" else None


async def list(reader: Reader, caller: Caller, command: ListMails) -> Sequence[Fate]:
    """List the mails about events of an organizer, the newest first. Those that ended 30 days ago are forgotten."""
    fates = [command.fate] if command.fate else [*FATES, "superseded"]
    return await reader.rows(
        Fate,
        sql.FATES,
        {"organizer_id": caller.tenant, "fates": fates, "before": command.before, "limit": command.limit},
    )


@refuses(NOT_FOUND)
async def retry(tx: Tx, caller: Caller, command: RetryMail) -> None:
    """Try a mail again now that failed, or that was put off. A mail about somebody else's event is not found."""
    of = {"mail_id": command.mail_id, "organizer_id": caller.tenant}
    if not await tx.value(sql.IS_ABOUT_OWN_EVENT, of):
        raise NOT_FOUND(f"No mail with the id {command.mail_id} waits or has failed.")
    await outbox.retry(tx, command.mail_id)
