"""Sealing without its loop."""

from holdfast.events.log.sealing import MAX_ENTRIES, seal_rounds
from holdfast.events.resources import Database


async def seal_once(database: Database, *, max_entries: int = MAX_ENTRIES) -> bool:
    """Seal a part of what is pending of each log, and sign nothing. Returns whether a log may have more.

    max_entries    entries after which a transaction seals no further rows
    """
    rounds = [sealed_round async for sealed_round in seal_rounds(database, max_entries)]
    return any(sealed_round.is_full for sealed_round in rounds)
