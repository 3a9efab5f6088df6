"""Releases that let visitors register for the event behind a waiting room: each of them once.

The page of the event and its form check the token of a visitor with the public keys alone (`ReleaseTokenReader`). The
transaction that stores a registration also checks in the database that the release is unused, and uses it up. So a
waiting room bounds how many people register (decision 105).
"""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import msgspec

from holdfast.events.queues.model import QUEUES_CHANNEL
from holdfast.events.queues.release_tokens import RELEASE, RELEASE_SIGNING_KEYS, Claims
from holdfast.events.resources import Database, Tx
from holdfast.events.seats import intake
from holdfast.events.seats.intake import IntakeRequest, IntakeResult
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.postgres.lookup_cache import LookupCache
from holdfast.kit.security.signed_tokens import InvalidToken, SigningKeySet

QUEUE_REQUIRED_CODE = "queue_required"
"""The code of a result without a release, when there is a waiting room before the event."""

NOT_RELEASED = 0
"""The value of `IntakeRequest.released_from` for a visitor whom no waiting room has released. No queue has this id."""

RELEASE_LOCKED_CODE = "release_locked"
"""The code of a result whose release another transaction is using."""


class Release(NamedTuple):
    """The release of one visitor, as its token names it."""

    queue_id: int
    visitor_id: str
    token_id: str


RELEASE_KEYS = cache_bound("Keys of release tokens", "events", "1, for a second")


class ReleaseTokenReader:
    """Reads release tokens with the keys of the database, which are read once a second."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_issuer = database.resources.settings.is_issuer
        self._keys: LookupCache[int, tuple[SigningKeySet, float]] = LookupCache(
            RELEASE_KEYS, database, QUEUES_CHANNEL, int, self._read_keys
        )
        self.forgetting: Callable[[], AbstractContextManager[None]] = self._keys.forgetting

    async def read(self, token: str, queue_id: int) -> Claims | None:
        """The claims of a valid token of a queue. None for any other text."""
        keys, read_at = await self._keys.get(0)
        try:
            _, claims = keys.verify(token, [RELEASE], self._is_issuer)
            # The time of the database, as it was read with the keys, plus the time since then.
            RELEASE.require_current(claims, keys.now + time.monotonic() - read_at)
        except InvalidToken:
            return None
        return claims if claims.qid == queue_id else None

    async def _read_keys(self, _: int) -> tuple[SigningKeySet, float]:
        """The keys, and the time of this process at which they were read."""
        return await self._database.transact(RELEASE_SIGNING_KEYS.read_or_create), time.monotonic()


async def store_and_use_releases(
    tx: Tx, requests: Sequence[IntakeRequest], *, waits: bool, can_commit_early: bool
) -> list[IntakeResult]:
    """Store registrations as `intake.store_pending` does, and use up the releases of those that are stored.

    A request without a valid release token is stored only if there is no waiting room before the event, or if the
    organizer itself asks (`IntakeRequest.released_from`).
    """
    tokens = [request.release_token for request in requests]
    if not any(tokens):
        return await intake.store_pending(tx, requests, waits=waits, can_commit_early=can_commit_early)
    releases = await _read_releases(tx, tokens)
    unused, locked = await _lock_releases(tx, {release for release in releases if release}, waits=waits)
    first_people: dict[Release, tuple[int, str | None, str | None]] = {}
    for request, release in zip(requests, releases, strict=True):
        request.release_token = None
        if release is not None and release in unused:
            person = request.event_id, request.email, request.public_id
            # The same form may come twice at once. Another person needs a release of its own.
            if first_people.setdefault(release, person) == person:
                request.released_from = release.queue_id
    # Statements follow, so `intake` cannot commit with its own.
    results = await intake.store_pending(tx, requests, waits=waits)
    used_releases = {
        release
        for request, release, result in zip(requests, releases, results, strict=True)
        if result.is_stored and release and request.released_from == release.queue_id
    }
    if used_releases:
        await _use_up(tx, used_releases)
    return [
        result._replace(code=RELEASE_LOCKED_CODE)
        if result.code == QUEUE_REQUIRED_CODE and release in locked
        else result
        for result, release in zip(results, releases, strict=True)
    ]


async def find_waiting_rooms(tx: Tx, event_ids: Collection[int]) -> dict[int, str]:
    """The addresses of the waiting rooms before events, by the ids of the events."""
    rows = await tx.tuples(
        "select id, queue_id from events where id = any(%(ids)s) and queue_id is not null", {"ids": list(event_ids)}
    )
    return {event_id: f"{tx.resources.settings.base_url}/queues/{queue_id}" for event_id, queue_id in rows}


async def _read_releases(tx: Tx, tokens: Sequence[str | None]) -> list[Release | None]:
    """The release in each valid token; None for other texts."""
    keys = await RELEASE_SIGNING_KEYS.find_usable(tx)
    is_issuer = tx.resources.settings.is_issuer

    def read(token: str | None) -> Release | None:
        try:
            claims = keys.verify(token, [RELEASE], is_issuer)[1] if token else None
        except InvalidToken:
            return None
        return Release(claims.qid, claims.sub, claims.jti) if claims else None

    # A signature takes longer to check than the rest of a registration, so that is done in a thread.
    return await asyncio.to_thread(lambda: [read(token) for token in tokens])


async def _lock_releases(
    tx: Tx, releases: Collection[Release], *, waits: bool
) -> tuple[Collection[Release], Collection[Release]]:
    """Lock the unused releases. Returns them, and those that other transactions have locked."""
    skip_locked = "" if waits else "skip locked"
    rows = await tx.tuples(
        f"""
        with request as materialized (
            select * from json_to_recordset(%(releases)s::json)
                          as request (queue_id bigint, visitor_id text, token_id text)
             order by queue_id, visitor_id),
        usable_release as materialized (
            select visitor.* from request
             cross join lateral (select queue_id, visitor_id, token_id from queue_visitors
                                  where queue_id = request.queue_id and visitor_id = request.visitor_id
                                    and token_id = request.token_id and consumed_at is null and expires_at > now()
                                  limit 1 for no key update {skip_locked}) as visitor)
        select queue_id, visitor_id, token_id, true from usable_release
         union all
        select queue_id, visitor_id, token_id, false from request
         where (queue_id, visitor_id) not in (select queue_id, visitor_id from usable_release)
           and exists (select from queue_visitors as visitor
                        where visitor.queue_id = request.queue_id and visitor.visitor_id = request.visitor_id
                          and visitor.token_id = request.token_id and consumed_at is null and expires_at > now())
        """,
        {"releases": _as_json(releases)},
    )
    unused = {Release(*row) for *row, is_free in rows if is_free}
    return unused, {Release(*row) for *row, is_free in rows if not is_free}


async def _use_up(tx: Tx, releases: Collection[Release]) -> None:
    await tx.run(
        """
        update queue_visitors as visitor set use_count = use_count + 1, consumed_at = now()
          from json_to_recordset(%(releases)s::json) as release (queue_id bigint, visitor_id text, token_id text)
         where visitor.queue_id = release.queue_id and visitor.visitor_id = release.visitor_id
           and visitor.token_id = release.token_id
        """,
        {"releases": _as_json(releases)},
    )


def _as_json(releases: Collection[Release]) -> str:
    rows: list[dict[str, Any]] = [release._asdict() for release in sorted(releases)]
    return msgspec.json.encode(rows).decode()
