"""Drawing: the list of a queue or an event closes, is frozen, and gets the order that a round of the beacon gives it.

The round is named in advance. The server of its signature need not be trusted: the signature is verified.

Any number of processes may do this, and each may end at any moment. Every step is one transaction:

1. Confirm, when the list of an event has closed: the log tells which entries have a confirmed address.
2. Freeze, as soon as the log has been sealed and signed with all tickets from before `draw_at`: the row in
   `queue_freezes` or `event_freezes` names that head of the log, and an entry of the log tells it.
3. Keep the proof of when witnesses cosigned the freeze (`events/log/freeze_proofs.py`), until the round.
4. Void, if it is too late for that: no list is frozen less than `FREEZE_BEFORE` before its round, none is drawn whose
   freeze was not in the sealed log before the round, and no other round is ever taken.
5. Draw, once the beacon has signed the round: a place for each ticket, and an entry of the log.

Then a queue lets people in (`events/queues/release.py`), and an event gives out its seats (`events/seats/drawn.py`).
"""

import datetime as dt
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec
import structlog
from msgspec import Struct

from holdfast.events.draws import sql
from holdfast.events.draws.model import DRAW_IN_THE_PAST, DRAW_WITHOUT_LOG, DRAWS_CHANNEL, DrawSubject
from holdfast.events.draws.sql import FrozenList
from holdfast.events.log import freeze_proofs
from holdfast.events.log.sealing import wait_for_sealing
from holdfast.events.resources import Database, Tx
from holdfast.kit.background.loops import Loop, LoopStep, RowWaiters
from holdfast.kit.contract.problems import Problem, invalid
from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast.kit.outbound.requests import OutboundClient
from holdfast.kit.postgres.notifications import POLL_SECONDS
from holdfast_verify.formats import beacon
from holdfast_verify.formats.beacon import time_of
from holdfast_verify.formats.drawn_order import Freeze, freeze_details, freeze_until, round_of, seed_of

log = structlog.get_logger()

MAX_BYTES = 4_096
OWNER = ("draws",)
"""The owner of these requests: they are the operator's own."""


class PublicRound(Struct):
    """An answer of the HTTP interface of drand, as far as it is needed: the round, and its signature in hex."""

    round: int
    signature: str


async def fetch_signature(outbound: OutboundClient, address: str, round: int) -> bytes:
    """The verified signature of a round.

    address    the base address of a server of drand's HTTP interface, without a slash at the end

    Raises `FetchRefusal` if there is no answer with status 200, as before the time of the round, and `InvalidRound` if
    the answer is not that round.
    """
    answer = await outbound.get(f"{address}/{beacon.CHAIN}/public/{round}", owner=OWNER, limit=MAX_BYTES)
    try:
        public_round = msgspec.json.decode(answer.content, type=PublicRound)
        signature = bytes.fromhex(public_round.signature)
    except (msgspec.DecodeError, ValueError) as error:
        raise beacon.InvalidRound("The answer is not a round as the beacon writes it.") from error
    if public_round.round != round:
        raise beacon.InvalidRound(f"The answer is round {public_round.round}, and round {round} was asked for.")
    beacon.verify(beacon.CHAIN, round, signature)
    return signature


BUSY_SECONDS = 0.25
"""Seconds until the next look while a list waits to be frozen."""

MAX_PAUSE_SECONDS = 60.0
"""The most seconds between two attempts to fetch a round."""


class DrawRefusal(Exception):
    """A list cannot be drawn with this. The message is a sentence."""


def drawing_loop(name: str, subjects: Sequence[DrawSubject], after: Callable[[Database], Awaitable[object]]) -> Loop:
    """The loop that freezes and draws lists whenever they are due.

    after    does what follows from draws
    """

    @asynccontextmanager
    async def open_rounds(_: Database) -> AsyncGenerator[LoopStep]:
        rounds = RoundFetcher()

        async def freeze_and_draw(database: Database, _: RowWaiters) -> float:
            is_busy = False
            for subject in subjects:
                is_busy |= await freeze_due(database, subject)
                await keep_proofs(database, subject)
                await draw_due(database, subject, rounds)
            await after(database)
            due = [await database.read(partial(sql.seconds_until_due, subject=subject)) for subject in subjects]
            seconds = BUSY_SECONDS if is_busy else min(due)
            return min(max(seconds, BUSY_SECONDS), POLL_SECONDS)

        yield freeze_and_draw

    return Loop(name, channels=(DRAWS_CHANNEL,), open_step=open_rounds)


async def freeze_due(database: Database, subject: DrawSubject, now: dt.datetime | None = None) -> bool:
    """Freeze the lists that have closed. Returns whether some still wait for their log.

    now    None: the clock of the database
    """
    waits = False
    for id in await database.read(partial(sql.list_closed, subject=subject, now=now)):
        waits |= await _wait_if_refused(subject, id, freeze(database, subject, id, now)) == "waits"
    return waits


async def freeze(
    database: Database, subject: DrawSubject, id: int, now: dt.datetime | None = None
) -> Literal["done", "waits"]:
    """Freeze a list, or make its draw void if it is too late."""
    is_stored = subject.wait is None or await subject.wait(database)

    async def work(tx: Tx) -> Literal["done", "waits"]:
        closed_list = await sql.lock_closed(tx, subject, id, now)
        if closed_list is None:
            return "done"
        if closed_list.now > freeze_until(closed_list.round):
            await sql.make_void(tx, subject, id, closed_list.now)
            log.error("a draw is void: its list was not frozen in time", drawn=f"{subject.noun} {id}")
            await _notify_of_draw(tx, subject, id)
            return "done"
        if not (is_stored and closed_list.is_complete):
            return "waits"
        if subject.confirm and not closed_list.is_confirmed:
            await subject.confirm(tx, id, closed_list.now)
        head = await sql.find_signed_head(tx, subject, id, closed_list.entries)
        if head is None:
            return "waits"
        details = freeze_details(closed_list.entries, head.size, head.root, closed_list.round)
        await sql.insert_freeze(tx, subject, id, head, closed_list, msgspec.json.encode(details).decode())
        await _notify_of_draw(tx, subject, id)
        return "done"

    return await database.transact(work)


async def keep_proofs(database: Database, subject: DrawSubject) -> None:
    """Keep the proofs of when witnesses cosigned the freezes of lists whose round has not come yet."""
    for frozen_log in await database.read(partial(sql.list_frozen_logs, subject=subject)):
        await freeze_proofs.store_proof(database, frozen_log)


async def draw_due(
    database: Database, subject: DrawSubject, rounds: "RoundFetcher", now: dt.datetime | None = None
) -> None:
    """Draw the frozen lists whose round the beacon has signed."""
    for id, round in await database.read(partial(sql.list_frozen, subject=subject, now=now)):
        signature = await rounds.fetch(database, round)
        if signature is not None:
            work = partial(draw, subject=subject, id=id, round=round, signature=signature, now=now)
            await _wait_if_refused(subject, id, database.transact(work))


async def draw(
    tx: Tx, subject: DrawSubject, id: int, round: int, signature: bytes, now: dt.datetime | None = None
) -> Literal["drawn", "void", "busy"]:
    """Draw a frozen list with the signature of its round. Returns "busy" if another process draws it now.

    Raises `InvalidRound` and `DrawRefusal`.
    """
    name = f"{subject.noun} {id}"
    frozen_list = await sql.find_frozen(tx, subject, id, now)
    if frozen_list is None:
        raise DrawRefusal(f"{name.capitalize()} has no frozen list.")
    if frozen_list.is_drawn:
        raise DrawRefusal(f"{name.capitalize()} was drawn already. A list is drawn once.")
    if frozen_list.is_void:
        raise DrawRefusal(f"The draw of {name} is void.")
    if frozen_list.round != round:
        raise DrawRefusal(f"The draw of {name} is by round {frozen_list.round}, and not by round {round}.")
    beacon.verify(beacon.CHAIN, round, signature)
    due_at = beacon.time_of(round)
    if frozen_list.now < due_at:
        raise DrawRefusal(
            f"Round {round} is due at {due_at:%Y-%m-%d %H:%M:%S} UTC. By the clock of the database, that is not yet."
        )
    if not await sql.lock_freeze(tx, subject, id):
        return "busy"
    await _notify_of_draw(tx, subject, id)
    is_published = await _is_published(tx, frozen_list)
    if not is_published:
        # A transaction that seals may have read its time before the round, and not have committed yet.
        await wait_for_sealing(tx)
        is_published = await _is_published(tx, frozen_list)
    if not is_published:
        await sql.make_void(tx, subject, id, frozen_list.now)
        log.error("a draw is void: its freeze was not in the sealed log in time", drawn=name)
        return "void"
    seed = seed_of(Freeze(frozen_list.origin, frozen_list.entries, frozen_list.root, beacon.CHAIN, round), signature)
    await sql.insert_draw(tx, subject, id, frozen_list, signature, seed)
    if not await sql.end_draw(tx, subject, id, now):
        raise DrawRefusal(f"{name.capitalize()} is gone.")
    return "drawn"


async def _notify_of_draw(tx: Tx, subject: DrawSubject, id: int) -> None:
    await tx.notify(DRAWS_CHANNEL)
    if subject.channel:
        await tx.notify(subject.channel, str(id))


async def _is_published(tx: Tx, frozen_list: FrozenList) -> bool:
    """Whether the freeze was in the sealed log before the time of its round, by the log itself."""
    is_frozen = False
    async for entry in sql.entries_since(tx, frozen_list):
        is_frozen |= entry["kind"] == "freeze"
        if is_frozen and entry["kind"] == "seal":
            return dt.datetime.fromisoformat(entry["at"]) < beacon.time_of(frozen_list.round)
    return False


class FetchAttempt(NamedTuple):
    """The next attempt to fetch a round: when, by the monotonic clock, and the pause after it, in seconds."""

    at: float
    pause: float


class RoundFetcher:
    """Fetches rounds, after growing pauses where that fails."""

    def __init__(self) -> None:
        self._attempts: dict[int, FetchAttempt] = {}

    async def fetch(self, database: Database, round: int) -> bytes | None:
        """The signature of a round; None: not now."""
        resources = database.resources
        attempt = self._attempts.get(round, FetchAttempt(0, 1))
        if not resources.settings.beacon_url or time.monotonic() < attempt.at:
            return None
        try:
            signature = await fetch_signature(resources.beacon, resources.settings.beacon_url, round)
        except (FetchRefusal, beacon.InvalidRound, Problem) as error:
            self._attempts[round] = FetchAttempt(
                time.monotonic() + attempt.pause, min(2 * attempt.pause, MAX_PAUSE_SECONDS)
            )
            log.warning("a round of the beacon was not fetched; it is tried again", round=round, error=str(error))
            return None
        self._attempts.pop(round, None)
        return signature


async def _wait_if_refused(subject: DrawSubject, id: int, work: Awaitable[str]) -> str:
    """Do this for a list. A list that fails is tried again later, and the others do not wait for it."""
    try:
        return await work
    except (DrawRefusal, Problem) as error:
        log.warning("a draw has to wait", error=str(error), drawn=f"{subject.noun} {id}")
        return "waits"


async def name_draw(tx: Tx, field: str, draw_at: dt.datetime | None, *, is_logged: bool) -> dict[str, Any]:
    """The columns for a draw, with the round of the beacon. Wakes the loop of draws after the commit.

    Raises `validation_failed` if there can be no draw.

    field        the name of the field that has `draw_at`, for the refusal
    is_logged    whether there is a public log, without which a draw cannot be checked
    """
    if draw_at is None:
        return {"draw_at": None, "draw_round": None, "draw_round_at": None}
    if draw_at <= await sql.read_clock(tx):
        raise invalid({field: [DRAW_IN_THE_PAST]})
    if not is_logged:
        raise invalid({field: [DRAW_WITHOUT_LOG]})
    await tx.notify(DRAWS_CHANNEL)
    round = round_of(draw_at)
    return {"draw_at": draw_at, "draw_round": round, "draw_round_at": time_of(round)}
