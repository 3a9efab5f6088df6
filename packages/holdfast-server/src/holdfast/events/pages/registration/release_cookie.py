"""The cookie of a visitor whom the waiting room before an event has released: it holds the release token.

It goes with requests for the form of that event and for what belongs to it, all below `/events/<event_id>`. In a frame
it is partitioned by the top-level site, since browsers allow no other cookie there.
"""

import datetime as dt

from msgspec import Struct

from holdfast.events.queues.event_releases import ReleaseTokenReader
from holdfast.kit.http.handler import Header, Request


class ReleasedVisitor(Struct, frozen=True):
    """A visitor with a release token that is valid by itself. The database knows whether it was used."""

    token: str
    expires_at: dt.datetime


class ReleaseCookie:
    """Reads and sets the cookie.

    framed    whether the form is in a frame of another site
    """

    def __init__(self, reader: ReleaseTokenReader, *, is_secure: bool, framed: bool) -> None:
        self._reader = reader
        self._is_secure = is_secure
        self._framed = framed
        # A browser accepts a cookie with this prefix only over HTTPS.
        self._name = f"{'__Secure-' if is_secure else ''}{'framed_' if framed else ''}event_release"

    async def read(self, request: Request, queue_id: int) -> ReleasedVisitor | None:
        """The visitor who sends the request, if the waiting room has released it."""
        token = request.cookies.get(self._name)
        return await self.check(token, queue_id) if token else None

    async def check(self, token: str, queue_id: int) -> ReleasedVisitor | None:
        claims = await self._reader.read(token, queue_id)
        return ReleasedVisitor(token, dt.datetime.fromtimestamp(claims.exp, dt.UTC)) if claims else None

    def header(self, event_id: int, visitor: ReleasedVisitor | None) -> Header:
        """A header that sets the cookie; with None one that removes it."""
        seconds = int((visitor.expires_at - dt.datetime.now(dt.UTC)).total_seconds()) if visitor else 0
        cookie = f"{self._name}={visitor.token if visitor else ''}; Path=/events/{event_id}; Max-Age={max(0, seconds)}"
        cookie += "; HttpOnly"
        if not self._is_secure:
            cookie += "; SameSite=Lax"
        elif self._framed:
            cookie += "; Secure; SameSite=None; Partitioned"
        else:
            cookie += "; Secure; SameSite=Lax"
        return b"set-cookie", cookie.encode()
