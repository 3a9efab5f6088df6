"""Row work without its loop: what is due now is handled, and then the test goes on."""

import asyncio
from typing import Any

from holdfast.kit.background.leases import lease_clock
from holdfast.kit.background.row_work import RowWork, handle_leased


async def handle_all(work: RowWork[Any]) -> int:
    """Handle all rows that are due now. Returns how many."""
    handled, leased_at = 0, lease_clock()
    while rows := await work.lease(work.max_concurrent, (), scan_all=True):
        handled += sum(await asyncio.gather(*(handle_leased(work, row, leased_at) for row in rows)))
        leased_at = lease_clock()
    return handled
