"""Open streams of changes. Each ends when the credential that opened it is no longer valid."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.event_streams import EndOfStream, Feed
from holdfast.kit.mcp.jsonrpc import Notification, encode
from holdfast.kit.mcp.model import Change

Reauthenticate: TypeAlias = Callable[[], Awaitable[Caller]]
"""Authenticates the reader of a stream again at every call. Raises a `Problem`."""

Render: TypeAlias = Callable[[Caller, Sequence[Change] | None, int], bytes]
"""Renders the events for the changes that a caller may read about, up to a position. None instead of changes means that
they are no longer known."""

Missed: TypeAlias = Callable[[Caller, int], Awaitable[Change]]
"""Returns all changes after a position, for a reader whose changes the feed of this process has dropped."""


class ChangeStream:
    """One open stream, which `http.event_streams.Streams` serves.

    first    the bytes that are sent at once
    since    the position in the feed up to which the reader has seen the changes
    missed   returns the changes since then if the feed has dropped them
    last     the bytes that are sent when this process stops
    """

    def __init__(
        self,
        feed: Feed[Change],
        authenticated: Reauthenticate,
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
        """The events to send now. Raises `EndOfStream` if the reader's credential is no longer valid.

        It also raises it if the database cannot return the missed changes; the reader then reconnects.
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


def encode_notifications(uris: Iterable[str], listed: bool, **members: Any) -> list[bytes]:
    """The notifications that resources and, if `listed`, their list changed; each has `members` as parameters."""
    updated = [encode(Notification("notifications/resources/updated", {"uri": uri, **members})) for uri in uris]
    return (
        [*updated, encode(Notification("notifications/resources/list_changed", members or UNSET))]
        if listed
        else updated
    )
