"""Sends push messages to browsers whose registration has moved up from the waiting list, in turns of organizers.

The trigger that notes the move makes their rows due; so a message is sent only after the commit. A row is deleted when
its message was taken, when the push service says that the browser is gone (404, 410) or refuses the message for good,
and after `MAX_ATTEMPTS`. The mail about the seat goes out in any case.
"""

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlsplit

import msgspec
import structlog
from msgspec import Struct

from holdfast.events.push.encryption import encrypt, read_browser_keys, sender_keys
from holdfast.events.push.subscriptions import MAX_SUBSCRIPTIONS, StoredSubscription
from holdfast.events.registrations.links import own_url
from holdfast.events.resources import Database, Reader, Tx
from holdfast.events.site import SITE
from holdfast.events.texts.outbound_texts import outbound_text
from holdfast.kit.background.row_work import LeasedRow, RetryBackoff, RowTable, TableWork
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.problems import Problem
from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast.kit.pages.language import language_with_code
from holdfast.kit.security.service_secret import UnsealError

CHANNEL = "pushes"

MAX_CONCURRENT_MESSAGES = 8

PUSH_MESSAGES = Bound(
    name="Push messages that one process sends at the same time",
    service="events",
    total=f"{MAX_CONCURRENT_MESSAGES}",
    tenant="in turns",
    address=f"{MAX_SUBSCRIPTIONS} browsers of each registration",
    reserved="-",
    stranger="Other organizers wait one turn, at most 5 seconds.",
)

MAX_ATTEMPTS = 6

RETRY_BACKOFF = RetryBackoff(5.0, 300.0)

TTL_SECONDS = 12 * 3600
"""Seconds for which a push service keeps a message for a browser that is offline."""

MAX_TITLE_CHARACTERS = 200
"""The most characters of a title in a message, so that its body stays within the bytes that push services take."""

TABLE = RowTable("push_subscriptions", "id", order="organizer_id, due_at", owner="organizer_id")

log = structlog.get_logger()


class PushMessage(Struct):
    """A message for one browser: that a person has a seat, or is held one until it is paid."""

    sealed: bytes
    language: str
    event_id: int
    public_id: str
    arrival: int
    title: str
    is_held: bool
    organizer_id: int


class PushWork(TableWork):
    """Sends the messages that are due."""

    name = "push messages"
    channels = (CHANNEL,)
    max_concurrent = MAX_CONCURRENT_MESSAGES

    def __init__(self, database: Database) -> None:
        super().__init__(database, TABLE)
        self._previous = -1
        """The organizer that had the last turn."""

    async def lease(self, limit: int, excluded: Sequence[int], *, scan_all: bool) -> Sequence[LeasedRow]:
        """Lease a row of the organizer with the next id; after the last one, of the organizer with the lowest id."""

        async def lease(tx: Tx) -> list[LeasedRow]:
            leased = await self.table.lease_due(tx, 1, excluded, after_owner=self._previous)
            return (
                leased if leased or self._previous < 0 else await self.table.lease_due(tx, 1, excluded, after_owner=-1)
            )

        rows = await self.database.transact(lease)
        if rows:
            self._previous = rows[0].owner
        return rows

    async def handle(self, row: LeasedRow) -> int:
        message = await self.database.read(partial(find_message, id=row.key))
        error = await self._send(message) if message else None
        if error and row.attempts < MAX_ATTEMPTS:
            pause = RETRY_BACKOFF.pause(row.attempts)
            await self.database.transact(partial(self.table.store, row=row, due_at=None, error=error, pause=pause))
            return 1
        if error:
            log.warning("a push message is given up", error=error)
        await self.database.transact(partial(forget, row=row))
        return 1

    async def _send(self, message: PushMessage) -> str | None:
        """Send a message. Returns why it is to be tried again; None: it was taken, or never will be."""
        resources = self.database.resources
        try:
            subscription = msgspec.json.decode(resources.secret.unseal(message.sealed), type=StoredSubscription)
        except UnsealError:
            return None
        keys = [key for key in sender_keys(resources.secret) if key.public_key == subscription.sender_key]
        if not keys:
            return None  # the secret was replaced; the browser takes no message of another key
        address = urlsplit(subscription.endpoint)
        headers = {
            "Authorization": keys[0].authorization(
                f"{address.scheme}://{address.netloc}", contact(resources.settings.base_url)
            ),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_SECONDS),
            "Urgency": "high",
        }
        body = encrypt(self._content(message), read_browser_keys(subscription.p256dh, subscription.auth))
        owner = ("push", f"organizer {message.organizer_id}")
        try:
            answer = await resources.push.post(subscription.endpoint, body, owner=owner, headers=headers)
        except FetchRefusal as refusal:
            return f"The push service {refusal}."
        except Problem as problem:
            return problem.message
        if answer.status == 429 or answer.status >= 500:
            return f"The push service answered {answer.status}."
        if answer.status >= 300 and answer.status not in {404, 410}:
            log.warning("a push service refuses a message", status=answer.status, host=address.hostname)
        return None

    def _content(self, message: PushMessage) -> bytes:
        """The message as the worker in the browser reads it."""
        resources, texts = self.database.resources, SITE.texts(language_with_code(message.language))
        text = (
            texts.gettext("A seat is held for you. Pay to keep it.")
            if message.is_held
            else texts.gettext("You have a seat!")
        )
        url = own_url(resources.settings, resources.secret, message.event_id, message.public_id, message.arrival)
        content = {"title": text, "body": outbound_text(message.title)[:MAX_TITLE_CHARACTERS], "url": url}
        return msgspec.json.encode(content)


def contact(base_url: str) -> str:
    """How the operator can be reached, as push services take it: a secure address, or else one for mails."""
    return base_url if base_url.startswith("https://") else f"mailto:postmaster@{urlsplit(base_url).hostname}"


async def find_message(reader: Reader, id: int) -> PushMessage | None:
    """The message to a browser; None: it is gone, or the person has no seat any more."""
    return await reader.row(
        PushMessage,
        """
        select sealed, push_subscriptions.language, registrations.event_id, public_id, arrival, title,
               status = 'held' as is_held, events.organizer_id
          from push_subscriptions
          join registrations using (event_id, user_id)
          join events on events.id = event_id
          join users on users.id = user_id
         where push_subscriptions.id = %(id)s and status in ('registered', 'held') and cancelled_at is null
        """,
        {"id": id},
    )


async def forget(tx: Tx, row: LeasedRow) -> None:
    """Delete a row, unless another process has leased it."""
    await tx.run(
        "delete from push_subscriptions where id = %(id)s and lease_id = %(lease_id)s",
        {"id": row.key, "lease_id": row.lease_id},
    )
