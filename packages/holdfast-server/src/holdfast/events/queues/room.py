"""The waiting room: each browser has a random secret in a cookie, and the digest of the secret is its visitor id.

A visitor id, for example from a token or a log, does not reveal the secret. So a stranger cannot take over the place of
a visitor with it.

The progress of a queue is the same for all who wait in it, and a page that knows its ticket needs no more. So the pages
of a waiting room read one row a second, not one row each.
"""

import datetime as dt
import random
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from holdfast.events.draws.model import CHECK_COLUMNS
from holdfast.events.paths import QueueId
from holdfast.events.problems import QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE
from holdfast.events.queues import joining, release_tokens, sql
from holdfast.events.queues.joining import JoinRequest
from holdfast.events.queues.model import QUEUES_CHANNEL, QueueRow, RoomRow, RoomVisitor, VisitorStatus, status_path
from holdfast.events.queues.places import OPENS_AT, QUEUE_DRAWS
from holdfast.events.queues.sql import QUEUE, SEATS
from holdfast.events.resources import Database, Reader, Tx
from holdfast.events.site import SITE
from holdfast.events.users.model import PUBLIC_NAME
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import ADMIN, Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import NOT_FOUND, Problem, refuses
from holdfast.kit.operations.operation import Batch, Operation, read_batched
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.language import Language
from holdfast.kit.postgres.group_commit import LockedRow
from holdfast.kit.postgres.lookup_cache import MAX_RESULTS, LookupCache
from holdfast_verify.formats.receipts import ReceiptFile, later_receipt, receipt_of
from holdfast_verify.formats.signed_note import LogName

QUEUES_LOOKED_UP = cache_bound("Queues that waiting rooms show", "events", f"{MAX_RESULTS}, for a second")


class RoomSnapshot(NamedTuple):
    """The data on the page of a visitor."""

    queue: RoomRow
    visitor: VisitorStatus
    release_token: release_tokens.ReleaseToken | None
    now: datetime


@refuses(NOT_FOUND)
async def read_room_and_issue_token(tx: Tx, batch: Batch[RoomVisitor]) -> Sequence[RoomSnapshot | Problem | LockedRow]:
    """Read the status of visitors of waiting rooms. A released visitor gets a release token."""
    visits = [(call.command.queue_id, call.command.visitor_id) for call in batch.calls]
    queues = await sql.find_rooms(tx, sorted({queue_id for queue_id, _ in visits}))
    visitors = await sql.find_visitor_statuses(tx, visits, can_commit_early=not batch.waits)
    now = datetime.now(UTC)
    issued = await release_tokens.issue(tx, [visitor for visitor in visitors if visitor], waits=batch.waits)

    def snapshot_of(visitor: VisitorStatus | None, queue_id: int) -> RoomSnapshot | Problem | LockedRow:
        if visitor is None or queue_id not in queues:
            return NOT_FOUND(f"No queue has the id {queue_id}.")
        token = issued.get(visitor.key)
        return token if isinstance(token, LockedRow) else RoomSnapshot(queues[queue_id], visitor, token, now)

    return [snapshot_of(visitor, queue_id) for visitor, (queue_id, _) in zip(visitors, visits, strict=True)]


@refuses(NOT_FOUND, QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE)
async def join_from_page(tx: Tx, batch: Batch[RoomVisitor]) -> Sequence[joining.JoinResult | Problem | LockedRow]:
    """Give visitors of waiting rooms a place. Every visitor may join every queue from its page."""
    requests = [
        JoinRequest(index, None, call.command.queue_id, call.command.visitor_id)
        for index, call in enumerate(batch.calls)
    ]
    results = await joining.give_tickets(tx, requests, waits=batch.waits, can_commit_early=not batch.waits)
    return [
        joining.refusal(result, request, tx.resources.settings) or result
        for request, result in zip(requests, results, strict=True)
    ]


@refuses(NOT_FOUND)
async def get_receipt(tx: Tx, caller: Caller, command: RoomVisitor) -> ReceiptFile:
    """The receipt of a visitor with a place, not signed yet. There is none if the place is in no log."""
    place = await sql.find_logged_place(tx, command.queue_id, command.visitor_id)
    if place is None:
        raise NOT_FOUND("There is no receipt for this place.")
    await tx.wait_for_earlier_commits()  # only what is as durable as configured is promised
    name, base_url = LogName("queues", command.queue_id), tx.resources.settings.base_url
    receipt = receipt_of(name, base_url, place.joined_at, command.visitor_id, place.nonce, place.ticket)
    return later_receipt(receipt, name.subject, base_url, status_path(command.queue_id, command.visitor_id))


def log_path(queue: QueueRow) -> str:
    """The path of the public log of a queue; empty if it has none."""
    return f"/log/queues/{queue.id}" if queue.public_log else ""


def visitor_of(secret: str) -> str:
    """The visitor id of the browser with this secret."""
    return f"room_{urlsafe_b64encode(sha256(secret.encode()).digest()).decode().rstrip('=')}"


def refresh_seconds(wait: int) -> int:
    """Seconds after which a page reloads: more for a longer wait, and varied so that pages do not reload together."""
    ladder = next((rest for limit, rest in ((900, 60), (300, 30), (60, 15)) if wait >= limit), 5)
    return max(2, min(wait, round(ladder * random.uniform(0.85, 1.15))))  # noqa: S311 - no secret


def wait_in_words(seconds: int, language: Language) -> str:
    """A wait in words, rounded up. The words follow "within"; in German they follow "in", in the dative."""
    texts = SITE.texts(language)

    def minutes(number: int) -> str:
        return texts.ngettext("a minute", "%(number)s minutes", number) % {"number": number}

    def hours(number: int) -> str:
        return texts.ngettext("an hour", "%(number)s hours", number) % {"number": number}

    def days(number: int) -> str:
        return texts.ngettext("a day", "%(number)s days", number) % {"number": language.number(number)}

    def joined(first: str, second: str) -> str:
        return texts.gettext("%(first)s and %(second)s") % {"first": first, "second": second}

    rest = max(1, -(-seconds // 60))
    if rest < 60:
        return minutes(rest)
    hour, rest = divmod(-(-rest // 5) * 5, 60)
    if hour < 24:
        return joined(hours(hour), minutes(rest)) if rest else hours(hour)
    day, rest = divmod(-(-seconds // 3600), 24)
    return joined(days(day), hours(rest)) if rest else days(day)


class GetProgress(Command):
    queue_id: QueueId


class QueueProgress(RoomRow):
    """A stored queue, and how far it has come.

    serving      the place of the last released visitor
    until_start  seconds until visitors can be released, 0 after that
    is_over      whether the queue has ended
    read_at      the time of the database
    """

    serving: int
    until_start: int
    is_over: bool
    read_at: dt.datetime


@refuses(NOT_FOUND)
async def read(reader: Reader, batch: Batch[GetProgress]) -> Sequence[QueueProgress | Problem]:
    """Read how far queues have come."""
    queue_ids = [call.command.queue_id for call in batch.calls]
    rows = {row.id: row for row in await find_progress(reader, [*{*queue_ids}])}
    return [rows.get(id) or NOT_FOUND(f"No queue has the id {id}.") for id in queue_ids]


READ_PROGRESS = Operation("read_queue_progress", None, read_batched(read))
"""An operation of pages alone: it has no route of the API and no tool."""


def progress_cache(database: Database, runner: Runner) -> LookupCache[int, QueueProgress]:
    """The progress of queues by id, at most a second old. `get` raises `not_found`."""

    async def look_up(queue_id: int) -> QueueProgress:
        return await runner.run_of(READ_PROGRESS)(ADMIN, GetProgress(queue_id=queue_id))

    return LookupCache(QUEUES_LOOKED_UP, database, QUEUES_CHANNEL, int, look_up)


async def find_progress(reader: Reader, ids: Sequence[int]) -> list[QueueProgress]:
    return await reader.rows(
        QueueProgress,
        f"""
        select queue.*, {PUBLIC_NAME} as organizer_name, organizers.slug as organizer_slug,
               event_left, event_waitlist_left, event_closed, {CHECK_COLUMNS}, progress.serving,
               greatest(0, ceil(extract(epoch from progress.opens_at - now())))::bigint as until_start,
               coalesce(queue.ends_at <= now(), false) as is_over, now() as read_at
          from ({QUEUE} where id = any(%(ids)s) and deleted_at is null) as queue
         cross join lateral (select serving, {OPENS_AT} as opens_at from queues where id = queue.id limit 1) as progress
         cross join lateral (
            select proved_at, name, slug from users where id = queue.organizer_id limit 1) as organizers
        {QUEUE_DRAWS.check_of("queue")}
        {SEATS}
        """,
        {"ids": list(ids)},
    )
