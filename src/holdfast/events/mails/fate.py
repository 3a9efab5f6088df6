"""What came of the mails about the events of an organizer."""

import datetime as dt
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.events.mails import sql
from holdfast.events.resources import Reader
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command, Id
from holdfast.kit.outbox import Outcome


class ListMails(Command):
    limit: Annotated[int, Meta(ge=1, le=100, description="How many mails are listed.")] = 50
    before: Annotated[Id | None, Meta(description="Only mails that were caused before the one with this id.")] = None


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


async def list(reader: Reader, caller: Caller, command: ListMails) -> Sequence[Fate]:
    """List the mails about events of an organizer, the newest first. Those that ended 30 days ago are forgotten."""
    return await reader.rows(
        Fate, sql.FATES, {"organizer_id": caller.tenant, "before": command.before, "limit": command.limit}
    )
