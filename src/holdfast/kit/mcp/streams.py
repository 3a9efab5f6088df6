"""Open streams of changes. Each ends when the credential that opened it is no longer valid."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET

from holdfast.kit.caller import Caller
from holdfast.kit.mcp.jsonrpc import Notification, encode
from holdfast.kit.mcp.model import Change
from holdfast.kit.problems import Problem
from holdfast.kit.streams import EndOfStream, Feed

Authenticated: TypeAlias = Callable[[], Awaitable[Caller]]
"""Authenticates the reader of a stream again at every call. Raises a `Problem`."""

Render: TypeAlias = Callable[[Caller, Sequence[Change] | None, int], bytes]
"""The events for those changes that a caller may read about, up to a position. None instead of changes: they are not
known any more."""

Missed: TypeAlias = Callable[[Caller, int], Awaitable[Change]]
"""All that changed after a position, for a reader whose changes the feed of this process does not have."""


class Stream:
    """One open stream, as `kit.streams.Streams` serves it.

    first    what is sent at once
    since    the position in the feed that the reader has seen
    missed   finds what changed since then when the feed does not have it
    last     what is sent when this process stops
    """

    def __init__(
        self,
        feed: Feed[Change],
        authenticated: Authenticated,
        render: Render,
        *,
        first: bytes,
        since: int,
        missed: Missed | None = None,
        last: bytes = b"",
    ) -> None:
        self.feed = feed
        self.last = last
        self._authenticated = authenticated
        self._render = render
        self._first = first
        self._position = since
        self._missed = missed

    async def pending(self) -> bytes:
        """The events to send now. Raises `EndOfStream` when the reader's credential is no longer valid.

        It does so too when the database cannot say what was missed: the reader then comes again.
        """
        try:
            caller = await self._authenticated()
            since, self._position = self._position, self.feed.position
            changes = self.feed.since(since)
            if changes is None and self._missed:
                changes = [await self._missed(caller, since)]
        except Problem as problem:
            raise EndOfStream from problem
        first, self._first = self._first, b""
        return first if changes == [] else first + self._render(caller, changes, self._position)


def notices(uris: Iterable[str], listed: bool, **members: Any) -> list[bytes]:
    """The notifications that resources changed and, if `listed`, their list; each has `members` as parameters."""
    updated = [encode(Notification("notifications/resources/updated", {"uri": uri, **members})) for uri in uris]
    return (
        [*updated, encode(Notification("notifications/resources/list_changed", members or UNSET))]
        if listed
        else updated
    )
