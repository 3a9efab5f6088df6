"""Collects announced changes for a moment and handles them together, so that many changes cost as much as one.

A notice can be lost: a process may be killed before it sends it, or a listener be cut off. So everything is handled
again after a lost connection, and by a poll if there is one.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Generator, Sequence, Set
from typing import Any

import structlog

from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.postgres.database import Database
from holdfast.kit.postgres.notifications import wait_for_notice

log = structlog.get_logger()

COMBINE_SECONDS = 0.2
"""Seconds for which changes are collected before they are handled together."""

RETRY_SECONDS = 0.5
"""Seconds until changes are handled again after a failure."""

Handle = Callable[[Set[int] | None], Awaitable[None]]
"""Handles the changes of the rows with these ids; with None, every row may have changed."""


class AnnouncedChanges:
    """The changes that the notices of some channels announce. A payload is an id, or empty if any row may have changed.

    is_watched      whether a change of the row with an id is of interest; with None, whether that of any row is
    handle          handles changes; it is called again with the same ones after it has raised an error
    poll_seconds    seconds after which every row is handled, whatever was announced; None: only what is announced
    """

    def __init__(
        self,
        database: Database[Any],
        channels: Sequence[str],
        is_watched: Callable[[int | None], bool],
        handle: Handle,
        poll_seconds: float | None = None,
    ) -> None:
        self._database = database
        self._channels = channels
        self._is_watched = is_watched
        self._handle = handle
        self._poll_seconds = poll_seconds
        self._ids: set[int] = set()
        self._is_any_row_changed = False
        self._handled_ids: Set[int] = set()
        self._handles_every_row = False
        self._announced = asyncio.Event()

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        """Handle changes while the block lasts."""
        with contextlib.ExitStack() as stack:
            for channel in self._channels:
                stack.enter_context(self._database.listen(channel, self.announce))
            work = asyncio.create_task(self._work(), name="announced changes")
            stack.callback(work.cancel)
            yield

    def announce(self, payload: str) -> None:
        """Note the change that a payload announces."""
        id = int(payload) if payload else None
        if not self._is_watched(id):
            return
        if id is None:
            self._is_any_row_changed = True
        else:
            self._ids.add(id)
        self._announced.set()

    def is_pending(self, id: int) -> bool:
        """Whether a change of the row with an id was announced, and is not handled to its end yet."""
        return self._is_any_row_changed or self._handles_every_row or id in self._ids or id in self._handled_ids

    async def _work(self) -> None:
        polled_at = time.monotonic()
        while True:
            await self._wait(polled_at)
            is_poll = self._poll_seconds is not None and time.monotonic() >= polled_at + self._poll_seconds
            every_row, ids = self._is_any_row_changed or is_poll, self._ids
            self._announced.clear()
            self._handles_every_row, self._handled_ids = self._is_any_row_changed, ids
            self._is_any_row_changed, self._ids = False, set()
            try:
                await self._handle(None if every_row else ids)
                if every_row:
                    polled_at = time.monotonic()
            except Exception as error:
                # The database logs when it is unreachable.
                if not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                    log.error("announced changes were not handled; trying again", exc_info=error)
                self._is_any_row_changed = self._is_any_row_changed or every_row
                self._ids |= ids
                await asyncio.sleep(RETRY_SECONDS)
                self._announced.set()
            self._handles_every_row, self._handled_ids = False, set()

    async def _wait(self, polled_at: float) -> None:
        """Wait for a notice, and then for others; or until every row has to be handled."""
        if self._poll_seconds is None:
            await self._announced.wait()
        else:
            await wait_for_notice(self._announced, max(0.0, polled_at + self._poll_seconds - time.monotonic()))
        if self._announced.is_set():
            await asyncio.sleep(COMBINE_SECONDS)
