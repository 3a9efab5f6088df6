"""What open streams tell their readers, for as long as the key they came with is good."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET

from holdfast.kit.mcp.jsonrpc import Notification, encode
from holdfast.kit.mcp.model import Change
from holdfast.kit.operation import Caller
from holdfast.kit.problems import Problem
from holdfast.kit.streams import EndOfStream, Feed

Known: TypeAlias = Callable[[], Awaitable[Caller]]
"""Authenticates the reader of a stream anew. Raises a `Problem`."""

Tell: TypeAlias = Callable[[Caller, Sequence[Change] | None], bytes]
"""Changes in the words of an era, as far as a caller may hear of them; None: some are forgotten."""


class Stream:
    """One open stream, as `kit.streams.Streams` serves it.

    first       what is said at once
    since       the position of the feed that the reader has seen
    farewell    what is said when this process stops
    """

    def __init__(
        self, feed: Feed[Change], known: Known, tell: Tell, *, first: bytes, since: int, farewell: bytes = b""
    ) -> None:
        self.feed = feed
        self.farewell = farewell
        self._known = known
        self._tell = tell
        self._first = first
        self._position = since

    async def pending(self) -> bytes:
        """What there is to say. A key that was revoked hears nothing more."""
        try:
            caller = await self._known()
        except Problem as problem:
            raise EndOfStream from problem
        first, self._first = self._first, b""
        changes = self.feed.since(self._position)
        self._position = self.feed.position
        return first if changes == [] else first + self._tell(caller, changes)


def notices(uris: Iterable[str], listed: bool, **members: Any) -> list[bytes]:
    """The notifications about resources, and about the list of them; `members` are added to the parameters of each."""
    told = [encode(Notification("notifications/resources/updated", {"uri": uri, **members})) for uri in uris]
    return [*told, encode(Notification("notifications/resources/list_changed", members or UNSET))] if listed else told
