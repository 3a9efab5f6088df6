"""The cache of what the pages of organizers show first: for a second, or until a notification of a change.

So a crowd at one organizer costs no database query, and its page is rendered once in each language.
"""

import contextlib
from collections.abc import Generator, Sequence
from functools import partial
from hashlib import sha256

import msgspec
from msgspec import Struct

from holdfast.events.events.model import CHANGE_CHANNEL
from holdfast.events.pages.model import OrganizerContent, ReadOrganizer
from holdfast.events.resources import Database
from holdfast.events.users.model import ORGANIZER_CHANNEL
from holdfast.kit.contract.bounds import Bound, cache_bound
from holdfast.kit.contract.caller import ADMIN
from holdfast.kit.postgres.group_commit import MAX_WAITING_CALLS, Batcher
from holdfast.kit.postgres.lookup_cache import LookupCache
from holdfast.kit.running.runner import Run

MAX_ORGANIZERS = 500
"""The maximum number of cached organizers. What a page of one shows takes up to 30 kB."""


ORGANIZER_READS = Bound(
    name="Requests that wait for one read of an organizer's page",
    service="events",
    total=f"{MAX_WAITING_CALLS} for one organizer; they share the read",
    tenant="its own",
    address="as many as it has connections",
    reserved="-",
    stranger="Nothing: all of them are answered by one read.",
)
ORGANIZERS = cache_bound("Organizers that pages show", "events", f"{MAX_ORGANIZERS} in a process, for a second")


class VersionedOrganizer(Struct, frozen=True):
    """The content of the first page of an organizer, and a hash of it."""

    content: OrganizerContent
    version: bytes


class OrganizerCache:
    """The first pages of organizers, by slug. `read` reads one."""

    def __init__(self, database: Database, read: Run) -> None:
        self._database = database
        self._read = read
        self._batchers: dict[str, Batcher[None, VersionedOrganizer]] = {}
        self._organizers = LookupCache(
            ORGANIZERS, database, ORGANIZER_CHANNEL, str, self._read_once, max_results=MAX_ORGANIZERS
        )

    async def get(self, slug: str) -> VersionedOrganizer:
        """The first page of an organizer, at most a second old and without an announced change. Raises `not_found`."""
        return await self._organizers.get(slug)

    @contextlib.contextmanager
    def forgetting(self) -> Generator[None]:
        """While the block lasts, drop pages as soon as a change of them is announced."""
        with self._organizers.forgetting(), self._database.listen(CHANGE_CHANNEL, self._forget_all):
            yield

    def _forget_all(self, payload: str) -> None:
        """Drop all pages after a change of what any page may show, which has an empty payload."""
        if not payload:
            self._organizers.forget("")

    async def _read_once(self, slug: str) -> VersionedOrganizer:
        """Read an organizer once for all requests that wait. None of them gets what was read before it came."""
        batcher = self._batchers.get(slug)
        if batcher is None:
            batcher = self._batchers[slug] = Batcher(ORGANIZER_READS, "read_organizer", partial(self._read_for, slug))
            batcher.on_idle = partial(self._batchers.pop, slug)
        return await batcher.submit(None)

    async def _read_for(self, slug: str, requests: Sequence[None]) -> Sequence[VersionedOrganizer]:
        content: OrganizerContent = await self._read(ADMIN, ReadOrganizer(slug=slug))
        organizer = VersionedOrganizer(content, sha256(msgspec.json.encode(content)).digest())
        return [organizer] * len(requests)
