"""The counts that a service shows to every visitor, compared with what its log leads to.

Counts and log change while they are read. So counts are right if they are those after some entry between two readings.
"""

import asyncio
import re
from typing import NamedTuple

import httpx2
from msgspec import Struct

from holdfast_verify.audit.audit import Audit, AuditFinding
from holdfast_verify.audit.entries import Count, decode_foreign
from holdfast_verify.check.catching_up import CaughtUp, LogFollower, wait_until_equal
from holdfast_verify.check.log_source import REQUEST_TIMEOUT_SECONDS, HttpLog, VerificationError, fetch
from holdfast_verify.check.options import CheckProgress

MAX_MESSAGE_BYTES = 1_000_000

_NEWEST_LOG = re.compile(r"(.*)/log/(event|queue)s/(\d+)")
_NUMBERS = re.compile(rb"^event: numbers\ndata: (.*)\n", re.MULTILINE)
_PROGRESS = re.compile(
    r'<main[^>]* data-state="(?!ended|gone)\w+"[^>]* data-serving="([0-9]{1,15})" data-tickets="([0-9]{1,15})"'
)


class Counts(NamedTuple):
    """Free seats and people who wait of an event; the tickets that were let in and that were given of a queue."""

    kind: str
    first: int
    second: int

    def __str__(self) -> str:
        if self.kind == "event":
            seats = "1 free seat" if self.first == 1 else f"{self.first:,} free seats"
            return f"{seats} and {self.second:,} on the waiting list"
        return f"{self.second:,} tickets given, and let in up to ticket {self.first:,}"


class CountsResult(NamedTuple):
    """What was compared; why it was not, as a sentence; and what is wrong."""

    compared: str | None = None
    not_compared: str | None = None
    finding: AuditFinding | None = None


class _Numbers(Struct):
    """What the stream of an event says to a new reader."""

    left: Count
    waiting: Count


async def compare_counts(follower: LogFollower, progress: CheckProgress) -> CountsResult:
    """Compare the public counts with a log that was read."""
    match = _NEWEST_LOG.fullmatch(follower.source.name)
    if match is None or not isinstance(follower.source, HttpLog):
        return CountsResult(not_compared="The counts on the page were not compared: this is not the newest log.")
    client, (address, kind, id) = follower.source.client, match.groups()
    try:
        result = await wait_until_equal(
            follower,
            lambda: _read_counts(client, address, kind, id),
            lambda: _replayed(follower.audit),
            "The page shows {public}. The log leads to {logged}.",
            progress,
        )
    except VerificationError as error:
        return CountsResult(not_compared=f"The counts on the page were not compared: {error}")
    if isinstance(result, CaughtUp):
        return CountsResult(compared=f"{result.value}, and so says the log")
    return CountsResult(
        f"{result.public_value}: not what the log says", finding=AuditFinding("fraud", "counts", str(result))
    )


def _replayed(audit: Audit) -> Counts:
    if places := audit.places:
        return Counts("event", max(0, places.capacity - places.seated), places.waiting)
    return Counts("queue", audit.released, audit.last_number)


async def _read_counts(client: httpx2.AsyncClient, address: str, kind: str, id: str) -> Counts:
    """The counts that the page shows at present. Raises `VerificationError`."""
    if kind == "queue":
        return parse_progress(await fetch(client, f"{address}/queues/{id}/progress"))
    return await _read_numbers(client, f"{address}/events/{id}/stream")


def parse_progress(page: bytes) -> Counts:
    """The counts in the part of a waiting room that all visitors see. Raises `VerificationError`."""
    progress = _PROGRESS.search(page.decode(errors="replace"))
    if progress is None:
        raise VerificationError("The waiting room shows no counts, as after its end.")
    return Counts("queue", int(progress[1]), int(progress[2]))


def parse_numbers(stream: bytes) -> Counts | None:
    """The first counts in what the stream of an event has sent; None: none yet. Raises `VerificationError`."""
    match = _NUMBERS.search(stream)
    if match is None:
        return None
    try:
        numbers: _Numbers = decode_foreign(match[1], _Numbers)
    except ValueError as error:
        raise VerificationError(f"The counts of the page cannot be read: {error}.") from error
    return Counts("event", numbers.left, numbers.waiting)


async def _read_numbers(client: httpx2.AsyncClient, url: str) -> Counts:
    """The first numbers of a stream, which are the present ones. Raises `VerificationError`."""
    content = bytearray()
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS), client.stream("GET", url) as response:
            if response.status_code != 200:
                raise VerificationError(f"{url} is answered with {response.status_code}.")
            async for chunk in response.aiter_bytes():
                content += chunk
                if numbers := parse_numbers(bytes(content)):
                    return numbers
                if len(content) > MAX_MESSAGE_BYTES:
                    break
    except TimeoutError as error:
        raise VerificationError(f"{url} tells no counts.") from error
    except httpx2.HTTPError as error:
        raise VerificationError(f"{url} cannot be read: {str(error).strip() or type(error).__name__}.") from error
    raise VerificationError("The page shows no counts, as after the end of the event.")
