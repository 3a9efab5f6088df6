"""The correction of a pool to the number that the platform shows."""

from holdfast.inventory.problems import NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, STALE
from holdfast.inventory.resources import Tx
from holdfast.inventory.stock.model import AdjustPoolQuantity, StockChange
from holdfast.inventory.stock.operations import adjust
from holdfast.inventory.sync.model import Resync
from holdfast.inventory.sync.operations import resync
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import DAILY_LIMIT_REACHED, NOT_FOUND, VALIDATION_FAILED, Problem, refuses
from holdfast.kit.running.operation import Batch, Call


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, NOT_ENOUGH_STOCK, VALIDATION_FAILED, DAILY_LIMIT_REACHED)
async def keep_platform_number(tx: Tx, caller: Caller, command: AdjustPoolQuantity) -> StockChange:
    """Correct a pool, and have its levels set again, so that the number at the platform no longer waits.

    Both in one transaction: if one fails, nothing is changed, and the page says so.
    """
    [change] = await adjust(tx, Batch(caller.tenant, [Call(caller, command)]))
    if isinstance(change, Problem):
        raise change
    await resync(tx, caller, Resync(pool_id=command.pool_id, dry_run=command.dry_run))
    return change
