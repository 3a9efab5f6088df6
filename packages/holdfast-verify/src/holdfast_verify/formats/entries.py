"""The texts of the entries of a log, and the commitments that stand for people (docs/events/fairness.md).

An entry is compact JSON in UTF-8. Its members have a fixed order. A member without a value is absent. All times are UTC
with six digits of a second.
"""

import os
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

FORMAT = "holdfast-order/1"

_URL_SAFE = bytes.maketrans(b"+/", b"-_")

FIRST_MEMBERS: Final = (
    *("kind", "format", "at", "origin", "of", "number", "person", "received_at", "cut", "from", "to"),
    *("capacity", "waiting_places", "seated", "waiting", "first_number", "released", "event", "release_rate", "active"),
)
LAST_MEMBERS: Final = ("after", "by", "reason")
"""The order of members. All others stand between these, in the order of the alphabet."""

_RANKS: Mapping[str, int] = {
    **{name: rank for rank, name in enumerate(FIRST_MEMBERS)},
    **{name: 1_000 + rank for rank, name in enumerate(LAST_MEMBERS)},
}


def commitment(subject: str, person: str, nonce: bytes) -> bytes:
    """What stands for a person in a log: 32 bytes. Without the nonce it says nothing about the person.

    subject    the event or queue, as `event 7` or `queue 3`
    person     the public id of an account, or the id of a visitor
    nonce      16 random bytes of the registration or the visitor
    """
    return sha256(f"holdfast/person/v1\n{subject}\n{person}\n".encode() + nonce).digest()


def person_text(person: bytes) -> str:
    """A commitment as texts have it: base64url without padding, 43 characters."""
    # Half of the time of `urlsafe_b64encode`.
    return b2a_base64(person, newline=False).translate(_URL_SAFE)[:43].decode()


def parse_commitment(text: str) -> bytes:
    """The commitment that entries write as this text."""
    return urlsafe_b64decode(text + "=")


def nobody_commitment() -> bytes:
    """A commitment that no person and no nonce opens."""
    return os.urandom(32)


def timestamp(at: datetime) -> str:
    """A time as texts have it, such as `2026-11-26T13:00:00.123456Z`."""
    # msgspec is forty times as fast as `isoformat`. It leaves out a fraction of zero, and writes other time zones.
    text = msgspec.json.encode(at)[1:-1].decode()
    if len(text) == 27 and text[-1] == "Z":
        return text
    return at.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def arrival(number: int, at: datetime, person: bytes, outcome: str | None = None) -> bytes:
    """The entry of an arrival. Those of a queue have no outcome, and those that a draw is for."""
    # Written by hand: there are thousands a second.
    outcome_member = f'"outcome":"{outcome}",' if outcome else ""
    return (
        f'{{"kind":"arrival","number":{number},"at":"{timestamp(at)}",{outcome_member}"person":"{person_text(person)}"}}'
    ).encode()


def place(number: int, at: datetime, outcome: str) -> bytes:
    """The entry of the outcome that the arrival with this number gets from a draw."""
    return f'{{"kind":"place","at":"{timestamp(at)}","number":{number},"outcome":"{outcome}"}}'.encode()


def arrival_prefix(number: int) -> bytes:
    """How the entry of the arrival with this number begins, and no other entry."""
    return b'{"kind":"arrival","number":%d,' % number


def entry(kind: str, at: datetime, members: Mapping[str, Any]) -> bytes:
    """An entry of another kind. Its times, which are `cut` and what ends in `_at`, may be texts in ISO 8601."""
    values = {"kind": kind, "at": at, **members}
    names = sorted(
        (name for name, value in values.items() if value is not None), key=lambda name: (_RANKS.get(name, 500), name)
    )
    return msgspec.json.encode({name: _text(name, values[name]) for name in names})


def _text(name: str, value: Any) -> Any:
    if name == "after":
        return {member: value[member] for member in ("origin", "size", "root")}
    if name in ("at", "cut") or name.endswith("_at"):
        return timestamp(datetime.fromisoformat(value) if isinstance(value, str) else value)
    return value
