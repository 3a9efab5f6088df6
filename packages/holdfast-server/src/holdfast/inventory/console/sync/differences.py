"""The differences of the page of the sync, by the pools that their packs draw on, and the correction of a pool."""

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta

from holdfast.inventory.problems import NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.model import AdjustPoolQuantity, StockChange
from holdfast.inventory.stock.operations import adjust
from holdfast.inventory.sync.model import ANOTHER_APP, CHANGED_AT_PLATFORM, Drift, Resync
from holdfast.inventory.sync.operations import resync
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.messages import translatable
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, Problem, refuses
from holdfast.kit.running.operation import Batch, Call

MAX_DIFFERENCES = 20
"""The most differences on the page."""

CAUSES = {
    "pending": translatable("Your shop gets the number of the pool in a moment."),
    "unexplained": translatable("Somebody changed the number in your shop, or a sale was not reported yet."),
    "changed": translatable("Somebody changed the number in your shop."),
    "another_app": translatable("Another app sets this number too."),
    "refused": translatable("Your shop refused the number of the pool:"),
}


class DifferenceHandling(NamedTuple):
    """How the policy of a pool handles numbers that are different.

    question, keep, button    what the page asks, and its two answers
    concerns, meaning         what changes, and how

    All are in English, as they are in the catalogues.
    """

    question: str
    keep: str
    button: str
    icon: str
    concerns: str
    meaning: str


HANDLING_BY_POLICY = {
    "adopt": DifferenceHandling(
        translatable("Use the numbers of your shop for “%(name)s”?"),
        translatable("Keep the stock of the pool"),
        translatable("Use the numbers of your shop"),
        "package",
        translatable("Stock"),
        translatable("The pool takes over the numbers of your shop."),
    ),
    "enforce": DifferenceHandling(
        translatable("Put the numbers of “%(name)s” back in your shop?"),
        translatable("Keep the numbers of your shop"),
        translatable("Put the numbers back"),
        "store",
        translatable("Your shop"),
        translatable("Your shop gets the numbers of the pool again."),
    ),
    "flag": DifferenceHandling(
        translatable("List the differences of “%(name)s”?"),
        translatable("Back to the sync"),
        translatable("List the differences"),
        "list",
        translatable("Sync"),
        translatable(
            "Nothing is changed. The page Sync lists the differences, and you say there which numbers are right."
        ),
    ),
}


class FindDrawnPools(Command):
    """Find the pools that variants draw on."""

    gids: Annotated[list[str], Meta(max_length=MAX_DIFFERENCES)]


class DrawnPool(NamedTuple):
    """A pool that a variant draws on. `units_per_sale`: what one sale of the variant takes of it."""

    id: int
    name: str
    units_per_sale: int


class Difference(NamedTuple):
    """A number that differs. `cause`: a key of `CAUSES`; `note`: why the platform refused it."""

    variant_gid: str
    platform: int
    expected: int
    cause: str
    note: str


class PoolDifferences(NamedTuple):
    """The differences of packs that draw on the same pools."""

    pools: Sequence[DrawnPool]
    differences: list[Difference]

    @property
    def is_decidable(self) -> bool:
        """Whether a number waits for the merchant, and one pool says what it should be."""
        return len(self.pools) == 1 and any(difference.cause != "pending" for difference in self.differences)


async def find_drawn_pools(reader: Reader, caller: Caller, command: FindDrawnPools) -> dict[str, list[DrawnPool]]:
    """The pools that variants draw on, by the ids of the variants."""
    rows = await reader.tuples(
        """
        select variant_gid, pools.id, name, units_per_sale
          from members join pools on pools.id = pool_id
         where members.shop_id = %(shop_id)s and variant_gid = any(%(gids)s)
         order by variant_gid, pools.id
        """,
        {"shop_id": caller.tenant, "gids": [*command.gids]},
    )
    pools: dict[str, list[DrawnPool]] = {}
    for gid, pool_id, name, units in rows:
        pools.setdefault(gid, []).append(DrawnPool(pool_id, name, units))
    return pools


def by_pools(drift: Sequence[Drift], pools_by_gid: Mapping[str, Sequence[DrawnPool]]) -> list[PoolDifferences]:
    """Differences by the pools of their packs, in the order of the first of each."""
    groups: dict[tuple[int, ...], PoolDifferences] = {}
    for level in drift:
        pools = pools_by_gid.get(level.variant_gid, ())
        group = groups.setdefault(tuple(pool.id for pool in pools), PoolDifferences(pools, []))
        group.differences.append(difference_of(level))
    return [*groups.values()]


def difference_of(level: Drift) -> Difference:
    """A difference, as people read it."""
    cause, note = level.cause, level.note or ""
    if cause == "parked":
        cause = (
            "another_app" if note == ANOTHER_APP else "changed" if note.startswith(CHANGED_AT_PLATFORM) else "refused"
        )
    return Difference(level.variant_gid, level.platform, level.expected, cause, note if cause == "refused" else "")


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, NOT_ENOUGH_STOCK, VALIDATION_FAILED)
async def keep_platform_number(tx: Tx, caller: Caller, command: AdjustPoolQuantity) -> StockChange:
    """Correct a pool to the number that the platform shows, and have its levels set again: the number no longer waits.

    Both in one transaction: if one fails, nothing is changed, and the page says so.
    """
    [change] = await adjust(tx, Batch(caller.tenant, [Call(caller, command)]))
    if isinstance(change, Problem):
        raise change
    await resync(tx, caller, Resync(pool_id=command.pool_id, dry_run=command.dry_run))
    return change
