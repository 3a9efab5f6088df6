"""The counts that a service shows to everybody, compared with what its log leads to.

Counts and log change while they are read. So counts are right if they are those after some entry between two readings.
"""

import asyncio
import copy
import re
from typing import NamedTuple

import httpx2
from msgspec import Struct

from holdfast.commands.verification.log_reader import LogEnd, open_head, read_growth
from holdfast.commands.verification.log_source import REQUEST_TIMEOUT_SECONDS, HttpLog, VerificationError, fetch
from holdfast.commands.verification.trusted_key import TrustedKey
from holdfast.events.audit.audit import Audit, AuditFinding
from holdfast.events.audit.entries import Count
from holdfast.events.audit.foreign_json import decode_foreign

TIMEOUT_SECONDS = 65.0
"""Seconds for which counts that differ are read again: what is done is in the log within 60."""

PAUSE_SECONDS = 1.0
MAX_MESSAGE_BYTES = 1_000_000

_NEWEST_LOG = re.compile(r"(.*)/log/(event|queue)s/(\d+)")
_NUMBERS = re.compile(rb"^event: numbers\ndata: (.*)\n", re.MULTILINE)
_PROGRESS = re.compile(
    r'<main[^>]* data-state="(?!ended|gone)\w+"[^>]* data-serving="([0-9]{1,15})" data-tickets="([0-9]{1,15})"'
)


class Counts(NamedTuple):
    """Free seats and people who wait of an event; the tickets that were let in and that were given of a queue."""

    of: str
    first: int
    second: int

    def __str__(self) -> str:
        if self.of == "event":
            return f"seats left {self.first:,}, waiting {self.second:,}"
        return f"tickets let in {self.first:,} of {self.second:,}"


class _Numbers(Struct):
    """What the stream of an event says to a new reader."""

    left: Count
    waiting: Count


async def compare_counts(source: HttpLog, key: TrustedKey, audit: Audit, end: LogEnd) -> tuple[str, list[AuditFinding]]:
    """Compare the public counts with a log that was read. Returns what was compared, and what is wrong.

    audit    the audit of the entries up to `end`; it is not changed
    """
    match = _NEWEST_LOG.fullmatch(source.name)
    if match is None or audit.opening is None:
        return "not compared: this is not the newest log", []
    if audit.closing:
        return "not compared: the log has ended", []
    address, of, id = match.groups()
    states, audit = {_replayed(audit)}, copy.deepcopy(audit)
    readings: set[Counts] = set()

    def read(_: int, entry: bytes) -> None:
        audit.read(entry)
        states.add(_replayed(audit))

    give_up_at = asyncio.get_running_loop().time() + TIMEOUT_SECONDS
    while True:
        try:
            counts = await _read_counts(source.client, address, of, id)
            readings.add(counts)
            if counts not in states:
                head = open_head(await source.get("checkpoint"), key, "The newer head of the log")
                end = await read_growth(source, head.checkpoint, end, read)
        except VerificationError as error:
            return f"not compared: {error}", []
        # Under load the log is always a little behind. It reaches counts that were shown a moment before.
        for reached in readings & states:
            return f"{reached}: so says the log", []
        if asyncio.get_running_loop().time() > give_up_at:
            message = f"The page says {counts}. The log leads to {_replayed(audit)}."
            return f"{counts}: not what the log says", [AuditFinding("fraud", "counts", message)]
        await asyncio.sleep(PAUSE_SECONDS)


def _replayed(audit: Audit) -> Counts:
    if places := audit.places:
        return Counts("event", max(0, places.capacity - places.seated), places.waiting)
    return Counts("queue", audit.released, audit.last_number)


async def _read_counts(client: httpx2.AsyncClient, address: str, of: str, id: str) -> Counts:
    """The counts that the page shows at present. Raises `VerificationError`."""
    if of == "queue":
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
