"""The differences on the page of the sync, by the pools of their packs, and the words for them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.inventory.pools.model import SourcePool
from holdfast.inventory.sync.model import Drift, parking_cause
from holdfast.kit.contract.messages import translatable

MAX_DIFFERENCES = 20
"""The most differences on the page."""

CAUSES = {
    "pending": translatable("is about to be set"),
    "unexplained": translatable("somebody changed it in your shop, or a sale was not reported yet"),
    "changed": translatable("Somebody changed the number in your shop. It stays until you say which number is right."),
    "another_app": translatable("Another app sets this number too. It stays until you say which number is right."),
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


class Difference(NamedTuple):
    """A number that differs. `cause`: a key of `CAUSES`; `note`: why the platform refused it."""

    variant_gid: str
    platform: int
    expected: int
    cause: str
    note: str


class PoolDifferences(NamedTuple):
    """The differences of packs that draw on the same pools."""

    pools: Sequence[SourcePool]
    differences: list[Difference]

    @property
    def is_decidable(self) -> bool:
        """Whether a number waits for the merchant, and one pool says what it should be."""
        return len(self.pools) == 1 and any(difference.cause != "pending" for difference in self.differences)


def by_pools(drift: Sequence[Drift], pools_by_gid: Mapping[str, Sequence[SourcePool]]) -> list[PoolDifferences]:
    """Differences by the pools of their packs, in the order of the first of each."""
    groups: dict[tuple[int, ...], PoolDifferences] = {}
    for level in drift:
        pools = pools_by_gid.get(level.variant_gid, ())
        group = groups.setdefault(tuple(pool.id for pool in pools), PoolDifferences(pools, []))
        group.differences.append(difference_of(level))
    return [*groups.values()]


def difference_of(level: Drift) -> Difference:
    """A difference, as people read it."""
    note = level.note or ""
    cause = parking_cause(note) if level.cause == "parked" else level.cause
    return Difference(level.variant_gid, level.platform, level.expected, cause, note if cause == "refused" else "")
