"""The waiting room: each browser has a random secret in a cookie, and the digest of the secret is its visitor id.

A visitor id, such as from a token or a log, does not reveal the secret. So nobody can use it to take over the place of
another visitor.
"""

import random
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from holdfast.events.problems import QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE
from holdfast.events.queues import joining, release_tokens, sql
from holdfast.events.queues.joining import Visitor
from holdfast.events.queues.model import QueueRow, RoomVisit, Standing
from holdfast.events.resources import Tx
from holdfast.events.site import SITE
from holdfast.kit.batch import Locked
from holdfast.kit.modes import Batch
from holdfast.kit.pages.language import Language
from holdfast.kit.problems import NOT_FOUND, Problem, refuses

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


class Seen(NamedTuple):
    """The data that the page shows to a visitor."""

    queue: QueueRow
    standing: Standing
    release_token: release_tokens.ReleaseToken | None
    now: datetime


@refuses(NOT_FOUND)
async def visit(tx: Tx, batch: Batch[RoomVisit]) -> Sequence[Seen | Problem | Locked]:
    """Read the places of visitors of waiting rooms. Visitors who were released get a release token."""
    visits = [(call.command.queue_id, call.command.visitor_id) for call in batch.calls]
    standings = await sql.find_standings(tx, visits)
    queues = await sql.find_queues(tx, sorted({queue_id for queue_id, _ in visits}))
    now = datetime.now(UTC)
    issued = await release_tokens.issue(tx, [each for each in standings if each], waits=batch.waits)

    def seen(standing: Standing | None, queue_id: int) -> Seen | Problem | Locked:
        if standing is None or queue_id not in queues:
            return NOT_FOUND(f"No queue has the id {queue_id}.")
        token = issued.get(standing.place)
        return token if isinstance(token, Locked) else Seen(queues[queue_id], standing, token, now)

    return [seen(standing, queue_id) for standing, (queue_id, _) in zip(standings, visits, strict=True)]


@refuses(NOT_FOUND, QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE)
async def join(tx: Tx, batch: Batch[RoomVisit]) -> Sequence[joining.Outcome | Problem | Locked]:
    """Give visitors of waiting rooms a place. Anybody may join any queue from its page."""
    visitors = [
        Visitor(place, None, call.command.queue_id, call.command.visitor_id) for place, call in enumerate(batch.calls)
    ]
    return [
        joining.refusal(each, visitor, tx.resources.settings) or each
        for visitor, each in zip(visitors, await joining.join(tx, visitors, waits=batch.waits), strict=True)
    ]


def fresh_secret() -> str:
    """A new random secret for the cookie of a browser."""
    return secrets.token_urlsafe(32)


def is_secret(text: str | None) -> bool:
    return bool(text and _SECRET.fullmatch(text))


def visitor_of(secret: str) -> str:
    """The visitor id of the browser with this secret."""
    return f"room_{urlsafe_b64encode(sha256(secret.encode()).digest()).decode().rstrip('=')}"


def seconds_to_look_again(wait: int) -> int:
    """Seconds after which a page reloads: more for a longer wait, and varied so that pages do not reload together."""
    ladder = next((rest for limit, rest in ((900, 60), (300, 30), (60, 15)) if wait >= limit), 5)
    return max(2, min(wait, round(ladder * random.uniform(0.85, 1.15))))  # noqa: S311 - no secret


def in_words(seconds: int, language: Language) -> str:
    """A wait in words, rounded up. The words stand behind "within", in German in the dative behind "in"."""
    texts = SITE.texts(language)

    def minutes(number: int) -> str:
        return texts.ngettext("a minute", "%(number)s minutes", number) % {"number": number}

    def hours(number: int) -> str:
        return texts.ngettext("an hour", "%(number)s hours", number) % {"number": number}

    def days(number: int) -> str:
        return texts.ngettext("a day", "%(number)s days", number) % {"number": language.number(number)}

    def joined(first: str, second: str) -> str:
        return texts.gettext("%(first)s and %(second)s") % {"first": first, "second": second}

    rest = max(1, -(-seconds // 60))
    if rest < 60:
        return minutes(rest)
    hour, rest = divmod(-(-rest // 5) * 5, 60)
    if hour < 24:
        return joined(hours(hour), minutes(rest)) if rest else hours(hour)
    day, rest = divmod(-(-seconds // 3600), 24)
    return joined(days(day), hours(rest)) if rest else days(day)
