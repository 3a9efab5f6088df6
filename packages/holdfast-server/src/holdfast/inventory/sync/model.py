"""The levels at the platform, the calls that change them, and the commands and answers of the operations on them."""

import datetime as dt
from typing import Annotated, Literal, LiteralString, TypeAlias

from msgspec import Meta, Struct

from holdfast.inventory.cursor import CursorPage
from holdfast.inventory.pools.model import Policy
from holdfast.inventory.stock.model import Filled, PoolId
from holdfast.kit.contract.command import Command, Repeatable, Timestamp

ImportStatus: TypeAlias = Literal["none", "running", "done"]
Rule: TypeAlias = Literal["all", "one", "shares"]
"""How the quantity of a variant is spread: all of it to each location, all to one, or fixed shares."""

PUSH_STREAK: LiteralString = "brisk"
"""The column of `levels` that counts pushes in a row for which no pool had changed.

Processes of release 0.2.0 use its name, and run beside this version during an upgrade.
"""

GRACE_SECONDS = 15
"""How long an unexplained difference may be a sale of which the platform has not told yet."""


ORDER_LAG_SECONDS = 60
"""A read of all levels may find a level that was not known. An order may have changed that level although the platform
says that the order changed later, by at most these seconds: no document says that the two moments are the same. For
other levels there is no such time: an edit just after a level is set for the first time would be taken for an order.
"""


class ObservedLevel(Struct, frozen=True):
    """A level as the platform shows it.

    gid        of the level
    seen_at    when it changed last, by the platform's clock
    """

    item_gid: str
    location_gid: str
    gid: str
    available: int
    seen_at: dt.datetime | None = None


class OrderLevelChange(Struct, frozen=True):
    """A change that the platform has made to the level of a variant because of an order: a sale of two is -2.

    not_before    a moment that is not after the change, by the platform's clock and in whole seconds
    """

    variant_gid: str
    change: int
    not_before: dt.datetime


class LevelChange(Struct, frozen=True):
    """A level that a call changes, from its last known quantity. `gid`: of the level."""

    item_gid: str
    location_gid: str
    gid: str
    before: int
    after: int


class LevelPush(Struct, frozen=True):
    """A call that changes levels. It is repeated with its key until its result is known.

    adjusts    it changes levels by a difference; otherwise it sets them, and compares them first
    age        seconds since it was first to be made
    """

    id: int
    key: str
    adjusts: bool
    age: float
    levels: list[LevelChange]


class LevelRefusal(Struct, frozen=True):
    """A level that the platform refused to change.

    why    the platform's error; None: the level was not as expected, and is to be read again
    """

    item_gid: str
    location_gid: str
    why: str | None


class UnexplainedDifference(Struct, frozen=True):
    """A difference at the levels of a variant that neither our calls nor orders explain.

    amount    how many more units there are than explained
    pools     the pools that the variant draws on, with the units of one sale and their policies
    """

    item_gid: str
    variant_gid: str
    amount: int
    pools: list[tuple[int, int, Policy]]


class GetSyncStatus(Command):
    pool_id: Annotated[PoolId | None, Meta(description="Count only its levels.")] = None


class GetDrift(Command):
    pool_id: Annotated[PoolId | None, Meta(description="Only its levels.")] = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class Reconcile(Repeatable, kw_only=True):
    pool_id: PoolId
    dry_run: Annotated[bool, Meta(description="The default.")] = True


class Resync(Repeatable, kw_only=True):
    pool_id: PoolId


class ListUnsyncedPools(CursorPage):
    """List pools of which the platform has another quantity."""

    query: Filled | None = None


class UnsyncedPools(Struct):
    """The ids of pools."""

    pool_ids: list[int]
    next_cursor: str | None


class LocationPercent(Struct, frozen=True):
    """What a location gets of each quantity."""

    location_gid: str
    percent: int


class ImportProgress(Struct):
    """The import of the shop's variants and levels."""

    status: ImportStatus
    objects: Annotated[int, Meta(description="Objects that the platform has found so far.")]
    stored: Annotated[int, Meta(description="Of these, so many are stored.")]
    requested_at: Timestamp | None
    finished_at: Timestamp | None
    error: str | None


class Lag(Struct):
    """Seconds from the webhook of a sale to the last level that it changes, over the last hour."""

    p50: float | None
    p99: float | None
    count: int


class LocationShare(Struct):
    """A location, and its share of each quantity.

    fulfillment_service    whether a fulfillment service counts what is there; None: not known
    """

    gid: str
    name: str
    active: bool
    percent: int
    fulfillment_service: bool | None


class Spreading(Struct):
    """How the quantity of a variant is spread over locations.

    warning    why more or less could be sold by it than there is
    """

    rule: Rule
    locations: list[LocationShare]
    warning: str | None


class CartCheck(Struct):
    """What the cart check of the shop reads."""

    granted: bool
    variants: int
    pending: int
    error: str | None


class WaitReason(Struct, frozen=True):
    """What must be known before differences are handled: an order that is not counted yet, or the answer to a call."""

    message: Annotated[str, Meta(description="What it is, in a sentence.")]
    topic: Annotated[str | None, Meta(description="Of the webhook that told of the order; null for a call.")]
    variants: Annotated[int | None, Meta(description="How many variants the call is about; null for a webhook.")]
    received_at: Annotated[Timestamp, Meta(description="When the webhook was received, or the call first made.")]
    attempts: int
    next_attempt_at: Annotated[Timestamp | None, Meta(description="Null: an attempt is under way, or due now.")]
    error: Annotated[str | None, Meta(description="Why the last attempt failed.")]


class SyncStatus(Struct):
    """How the levels of the shop at the platform follow its pools."""

    connected: bool
    error: Annotated[str | None, Meta(description="Why levels cannot be set at present.")]
    levels: Annotated[int, Meta(description="Levels that are set from pools.")]
    pending: Annotated[
        int, Meta(description="Levels that are yet to be set, also those of pools whose change is not counted yet.")
    ]
    unexplained: Annotated[int, Meta(description="Levels that changed at the platform, and nothing has said why yet.")]
    parked: Annotated[int, Meta(description="Levels that are not set until resync; get_drift says why.")]
    lag: Lag
    imported: ImportProgress
    rule: Rule
    locations: list[LocationShare]
    rule_warning: Annotated[str | None, Meta(description="What is wrong with the rule.")]
    cart_check: CartCheck
    waiting: Annotated[
        list[WaitReason],
        Meta(description="What has failed and is tried again: orders to be counted, a call. Differences wait for it."),
    ]
    subscription_errors: Annotated[list[str], Meta(description="What the platform does not tell of, and why.")]


ANOTHER_APP = "Another app sets it as often as it is set from here."
CHANGED_AT_PLATFORM = "It was set to "
"""What the note of a parked level is, and how it begins, if no refusal of the platform is the reason."""


def parking_cause(note: str) -> Literal["another_app", "changed", "refused"]:
    """Why a level is parked, by its note, the only thing about it that is stored."""
    if note == ANOTHER_APP:
        return "another_app"
    return "changed" if note.startswith(CHANGED_AT_PLATFORM) else "refused"


class Drift(Struct):
    """A level that is not what its pools have."""

    variant_gid: str
    location_gid: str
    platform: Annotated[int, Meta(description="What the platform has.")]
    expected: Annotated[int, Meta(description="What it is to have.")]
    difference: int
    cause: Annotated[
        Literal["pending", "unexplained", "parked"],
        Meta(description="`unexplained`: it was changed there, or a sale was not reported yet."),
    ]
    note: str | None


class DriftReport(Struct):
    """Levels that are different."""

    drift: list[Drift]


class Reconciliation(Struct):
    """What was different at the platform; without a dry run, the policy has handled it, unless it waits."""

    dry_run: bool
    drift: list[Drift]
    waits_for: Annotated[
        list[WaitReason],
        Meta(
            description="Orders to be counted first, or a call to the platform that has no answer yet; they may explain"
            " the differences. Call again after that."
        ),
    ]


class ResyncedLevels(Struct):
    """How many levels are set again if they are different."""

    dry_run: bool
    levels: int
