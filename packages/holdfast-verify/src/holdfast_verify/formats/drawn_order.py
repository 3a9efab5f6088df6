"""The seed of a draw, and the order of tickets that follows from it. `drawn_order.js` computes the same in a browser.

The seed is SHA-256 of these parts, each with its length before it (8 bytes, big-endian): `holdfast/draw/v1` and a line
feed, the origin of the log, the number of entries (8 bytes), the root of the log at the freeze (32 bytes), the chain of
the beacon (32 bytes), its round (8 bytes), and the signature of the round (48 bytes). Tickets are ordered by SHA-256 of
the seed and the ticket (8 bytes), ascending. So no place depends on who it is for, or on when that person came.
"""

import datetime as dt
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import chain as joined
from typing import Any, NamedTuple

from holdfast_verify.formats import beacon

DRAWN_ORDER = files("holdfast_verify.formats").joinpath("drawn_order.js").read_text()
"""Ten lines of JavaScript that compute the order of a draw."""

FORMAT = b"holdfast/draw/v1\n"

PAUSE = dt.timedelta(seconds=120)
"""The least time between the closing of a list and the round that draws it."""

FREEZE_BEFORE = dt.timedelta(seconds=30)
"""The least time between the freeze of a list and the round that draws it."""

MAX_ENTRIES = 2**31 - 1
"""The most tickets of a draw."""


class Freeze(NamedTuple):
    """What a draw is computed from, besides the signature.

    origin    the origin of the log
    entries   the number of tickets, which are 1 to `entries`
    root      the root of the log that has them
    chain     the chain of the beacon, in hex
    round     its round
    """

    origin: str
    entries: int
    root: bytes
    chain: str
    round: int


def round_of(draw_at: dt.datetime) -> int:
    """The number of the round that draws a list that closes at `draw_at`."""
    return beacon.first_round(draw_at + PAUSE)


def freeze_until(round: int) -> dt.datetime:
    """The last time at which a list can be frozen for a round."""
    return beacon.time_of(round) - FREEZE_BEFORE


def seed_of(freeze: Freeze, signature: bytes) -> bytes:
    """The seed of a draw, 32 bytes."""
    parts = (
        *(FORMAT, freeze.origin.encode(), _uint64(freeze.entries), freeze.root),
        *(bytes.fromhex(freeze.chain), _uint64(freeze.round), signature),
    )
    return sha256(b"".join(joined.from_iterable((_uint64(len(part)), part) for part in parts))).digest()


def draw_order(seed: bytes, entries: int) -> list[int]:
    """The tickets 1 to `entries` in their drawn order: the first is let in first."""
    keys = [sha256(seed + ticket.to_bytes(8, "big")).digest() for ticket in range(1, entries + 1)]
    return [index + 1 for index in sorted(range(entries), key=keys.__getitem__)]


def hash_of_order(order: Sequence[int]) -> bytes:
    """SHA-256 of the tickets in their drawn order, 8 bytes each."""
    digest = sha256()
    for start in range(0, len(order), 10_000):
        digest.update(b"".join(map(_uint64, order[start : start + 10_000])))
    return digest.digest()


def freeze_details(entries: int, size: int, root: bytes, round: int) -> dict[str, Any]:
    """The members of the log's `freeze` entry besides its kind and time."""
    return {"entries": entries, "size": size, "root": b64encode(root).decode(), "round": round}


def _uint64(number: int) -> bytes:
    return number.to_bytes(8, "big")
