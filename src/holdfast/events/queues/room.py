"""The waiting room: a place for a browser, which keeps a secret of its own and is called by the digest of it.

Nobody can take the place of somebody else by name, since the room never reads a name: whoever knows how a visitor is
called, from a token or a log, still does not know the secret.
"""

import random
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from holdfast.events.queues import operations, passes, sql
from holdfast.events.queues.model import Joined, JoinQueue, QueueRow, Standing
from holdfast.events.settings import Database, Tx
from holdfast.kit.batch import Batcher
from holdfast.kit.operation import ADMIN, Call
from holdfast.kit.problems import NOT_FOUND, Problem

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


class Seen(NamedTuple):
    """What a visitor of a room is shown."""

    queue: QueueRow
    standing: Standing
    its_pass: passes.Pass | None
    now: datetime


class Rooms:
    """Where browsers wait. All that look or join at the same time share a statement."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._looks = Batcher[tuple[int, str], Seen]("look_into_room", self._look)
        self._joins = Batcher[JoinQueue, Joined]("join_from_room", self._join)

    async def look(self, queue_id: int, visitor_id: str) -> Seen:
        """Where a visitor stands. Raises `not_found` where there is no such queue."""
        return await self._looks.submit((queue_id, visitor_id))

    async def join(self, queue_id: int, visitor_id: str) -> None:
        """Take a place. Raises what speaks against it."""
        await self._joins.submit(JoinQueue(queue_id=queue_id, visitor_id=visitor_id))

    async def _look(self, asked: Sequence[tuple[int, str]]) -> Sequence[Seen | Problem]:
        async def look(tx: Tx) -> Sequence[Seen | Problem]:
            standings = await sql.find_standings(tx, asked)
            queues = await sql.find_queues(tx, sorted({queue_id for queue_id, _ in asked}))
            now = datetime.now(UTC)
            issued = await passes.issue(tx, [each for each in standings if each])
            return [
                Seen(queues[each[0]], standing, issued.get(each), now)
                if standing and each[0] in queues
                else NOT_FOUND(f"No queue has the id {each[0]}.")
                for each, standing in zip(asked, standings, strict=True)
            ]

        return await self._database.transact(look)

    async def _join(self, commands: Sequence[JoinQueue]) -> Sequence[Joined | Problem]:
        calls = [Call(ADMIN, each) for each in commands]
        return await self._database.transact(lambda tx: operations.join(tx, calls))


def fresh_secret() -> str:
    """A secret for a browser to keep."""
    return secrets.token_urlsafe(32)


def is_secret(text: str | None) -> bool:
    return bool(text and _SECRET.fullmatch(text))


def visitor_of(secret: str) -> str:
    """What the visitor who keeps a secret is called."""
    return f"room_{urlsafe_b64encode(sha256(secret.encode()).digest()).decode().rstrip('=')}"


def seconds_to_look_again(wait: int) -> int:
    """How long a page may rest: the longer the wait, the longer, and not all pages at once."""
    ladder = next((rest for limit, rest in ((900, 60), (300, 30), (60, 15)) if wait >= limit), 5)
    return max(2, min(wait, round(ladder * random.uniform(0.85, 1.15))))  # noqa: S311 - no secret


def in_words(seconds: int) -> str:
    """A wait as people say it, rounded up."""
    minutes = -(-seconds // 60)
    if minutes <= 1:
        return "a minute"
    if minutes < 60:
        return f"{minutes} minutes"
    hours, minutes = divmod(-(-minutes // 5) * 5, 60)
    said = "an hour" if hours == 1 else f"{hours} hours"
    return f"{said} and {minutes} minutes" if minutes else said
