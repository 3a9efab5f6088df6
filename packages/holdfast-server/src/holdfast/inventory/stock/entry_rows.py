"""The rows of new entries, as one statement takes them: an array of numbers, and the causes that entries share.

JSON with every field of every entry would cost PostgreSQL more than all indexes of the ledger.
"""

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from holdfast.inventory.stock.model import Entry, EntryKind

WIDTH = 11
"""How many numbers an entry has: those of `EntryRows.add`, with the place of its cause."""


class EntryCause(NamedTuple):
    """What entries can have in common. `by_variant` is JSON."""

    kind: EntryKind
    below_zero: bool
    actor: str
    actor_id: int | None
    agent_name: str | None
    source: str
    source_ref: str | None
    reason: str | None
    idempotency_key: str | None
    by_variant: bytes | None


class EntryRows:
    """The rows of entries that are made at the same time."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.count = 0
        self._numbers: list[int] = []
        self._places: dict[EntryCause, int] = {}

    def add(
        self,
        entry: Entry,
        seq: int,
        *,
        below_zero: bool,
        actor_id: int | None,
        agent_name: str | None,
        idempotency_key: str | None,
    ) -> None:
        """Add an entry, which is number `seq` of its pool."""
        cause = EntryCause(
            entry.kind,
            below_zero,
            entry.actor,
            actor_id,
            agent_name,
            entry.source,
            entry.source_ref,
            entry.reason,
            idempotency_key,
            None if entry.by_variant is None else msgspec.json.encode(entry.by_variant),
        )
        place = self._places.setdefault(cause, len(self._places))
        assert entry.id is not None
        assert entry.version is not None
        self._numbers += (
            *(entry.id, entry.pool_id, seq, entry.delta, entry.held_delta, entry.balance_after, entry.held_after),
            *(entry.version, entry.reverts_id or 0, entry.hold_id or 0, place),
        )
        self.count += 1

    def numbers_text(self) -> str:
        """The numbers of all entries as the text of an array in PostgreSQL; 0 for an id that is missing."""
        return "{" + msgspec.json.encode(self._numbers)[1:-1].decode() + "}"

    def causes_text(self) -> str:
        """The causes as JSON, each with its place."""
        causes: list[dict[str, Any]] = [
            {
                "place": place,
                **{name: value for name, value in cause._asdict().items() if value is not None},
                **({} if cause.by_variant is None else {"by_variant": msgspec.Raw(cause.by_variant)}),
            }
            for cause, place in self._places.items()
        ]
        return msgspec.json.encode(causes).decode()
