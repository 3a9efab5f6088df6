"""Stores the new organizer in all rows about an event, after the event was handed over to another organizer.

A hand-over changes only the event itself. Lists are right from then on (`events/hand_over_conditions.py`); this job
makes them fast again. It goes through the registrations and the mails a batch at a time. Each batch is a separate
transaction, so a process that is killed loses at most one batch, and any process continues from there. Several
processes may do it at once.
"""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from psycopg.errors import ForeignKeyViolation

from holdfast.events.resources import Reader, Steps, Tx
from holdfast.kit.background.request_priority import yield_to_requests
from holdfast.kit.mail import outbox

FILING_BATCH_SIZE = 2_000
"""Registrations or mails that one transaction looks at. No other transaction settles the event meanwhile."""

MAIL_STATUSES = ("waiting", "failed", "sent", "superseded")
"""The index of an organizer's mails has each of them in order."""


class HandOver(Struct, frozen=True):
    """An event that was handed over, and its former organizer, under which some of its rows may still be filed."""

    event_id: int
    organizer_id: int


async def file_again(steps: Steps) -> int:
    """File everything of events that were handed over under their organizers. Returns how many rows that were."""
    count = 0
    for hand_over in await steps.read(list_hand_overs):
        is_done = False
        while not is_done:
            count += await _file_all_registrations(steps, hand_over)
            while mails := await _file_all_mails(steps, hand_over):
                count += mails
            is_done = await _end(steps, hand_over)
    return count


async def list_hand_overs(reader: Reader) -> Sequence[HandOver]:
    return await reader.rows(
        HandOver,
        "select event_id, organizer_id from event_hand_overs order by event_id, organizer_id",
    )


async def _file_all_registrations(steps: Steps, hand_over: HandOver) -> int:
    total = 0
    while (count := await steps.transact(partial(file_registrations, hand_over=hand_over))) is not None:
        total += count
        await yield_to_requests()
    return total


async def file_registrations(tx: Tx, *, hand_over: HandOver) -> int | None:
    """File the next registrations of an event again. Returns how many; None: there are no more."""
    # Transactions that settle the event, or hand it over again, change the same rows: they wait for each other here.
    await tx.run("select from events where id = %(event_id)s for no key update", _rows(hand_over))
    return await tx.value(
        """
        with hand_over as (
            select handed_to, last_user_id from event_hand_overs
             where event_id = %(event_id)s and organizer_id = %(organizer_id)s for update),
        batch as materialized (
            select user_id, organizer_id from registrations
             where event_id = %(event_id)s and user_id > (select last_user_id from hand_over)
             order by user_id limit %(limit)s),
        filed_registration as (
            update registrations set organizer_id = (select handed_to from hand_over)
             where event_id = %(event_id)s
               and user_id = any(array(select user_id from batch where organizer_id = %(organizer_id)s))
            returning 1),
        hand_over_progress as (
            update event_hand_overs set last_user_id = last.user_id
              from (select max(user_id) as user_id from batch) as last
             where event_id = %(event_id)s and organizer_id = %(organizer_id)s and last.user_id is not null)
        select (select count(*) from filed_registration) where exists (select from batch)
        """,
        _rows(hand_over),
    )


async def _file_all_mails(steps: Steps, hand_over: HandOver) -> int:
    """File the mails of an event again. Those that change meanwhile may be left out."""
    total = 0
    for status in MAIL_STATUSES:
        last: int | None = 0
        while last is not None:
            batch = partial(file_mails, hand_over=hand_over, status=status, after=last)
            last, count = await steps.transact(batch)
            total += count
            await yield_to_requests()
    return total


async def file_mails(tx: Tx, *, hand_over: HandOver, status: str, after: int) -> tuple[int | None, int]:
    """File again those of the next mails of an organizer that are about the event.

    Whether a mail that is held may be sent is decided again, by the new organizer. Returns the last mail that was
    looked at, None without one; and how many were filed.
    """
    [(last, count, was_held)] = await tx.tuples(
        """
        with hand_over as (
            select handed_to from event_hand_overs
             where event_id = %(event_id)s and organizer_id = %(organizer_id)s),
        batch as materialized (
            select id, (arguments ->> 'event_id')::bigint as event_id, hold from mails
             where arguments ? 'organizer_id' and (arguments ->> 'organizer_id')::bigint = %(organizer_id)s
               and coalesce(outcome, 'waiting') = %(status)s and id > %(after)s
               and exists (select from hand_over)
             order by id limit %(limit)s),
        filed_mail as (
            update mails set arguments = arguments || jsonb_build_object('organizer_id', handed_to),
                             due_at = case when mails.hold is null then due_at else now() end,
                             released_at = case when mails.hold is null then released_at else now() end, hold = null
              from hand_over, batch
             where mails.id = batch.id and batch.event_id = %(event_id)s
            returning batch.hold is not null as was_held)
        select (select max(id) from batch), (select count(*) from filed_mail),
               (select bool_or(was_held) from filed_mail)
        """,
        _rows(hand_over) | {"status": status, "after": after},
    )
    if was_held:
        await tx.notify(outbox.CHANNEL)
    return last, count


async def _end(steps: Steps, hand_over: HandOver) -> bool:
    """Forget a hand-over. False: something is filed there still, and the registrations are gone through once more."""
    try:
        await steps.transact(partial(_forget, hand_over=hand_over))
    except ForeignKeyViolation:
        # A person was given the registrations of another account meanwhile, and they moved behind the batches.
        await steps.transact(partial(_begin_again, hand_over=hand_over))
        return False
    return True


async def _forget(tx: Tx, *, hand_over: HandOver) -> None:
    await tx.run(
        """
        with hand_over as (
            select event_id, organizer_id from event_hand_overs
             where event_id = %(event_id)s and organizer_id = %(organizer_id)s for update)
        delete from event_owners using hand_over
         where event_owners.event_id = hand_over.event_id and event_owners.organizer_id = hand_over.organizer_id
        """,
        _rows(hand_over),
    )


async def _begin_again(tx: Tx, *, hand_over: HandOver) -> None:
    await tx.run(
        """
        update event_hand_overs set last_user_id = 0
         where event_id = %(event_id)s and organizer_id = %(organizer_id)s
        """,
        _rows(hand_over),
    )


def _rows(hand_over: HandOver) -> dict[str, int | str]:
    return {"event_id": hand_over.event_id, "organizer_id": hand_over.organizer_id, "limit": FILING_BATCH_SIZE}
