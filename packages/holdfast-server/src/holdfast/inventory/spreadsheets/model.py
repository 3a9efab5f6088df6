"""Spreadsheets: pools, their variants and their history as CSV, and the further scopes that some need."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from holdfast.inventory.cursor import CursorPage
from holdfast.inventory.pools.model import Buffer, Label, LowStockAt, Name, Unit, UnitsPerSale
from holdfast.inventory.stock.model import Delta, ExpectedVersion, PoolId, VariantGid, Write
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import INSUFFICIENT_SCOPE

MAX_ROWS = 2_000


def require_scope(caller: Caller, scope_of_tool: str, scope: str) -> None:
    """Raise `insufficient_scope` if the caller lacks a scope."""
    if not caller.has(scope):
        raise INSUFFICIENT_SCOPE(f"This needs the scope {scope} too.", scope=f"{scope_of_tool} {scope}")


class ExportCsv(CursorPage, kw_only=True):
    kind: Annotated[
        Literal["pools", "members", "history"],
        Meta(description="`pools` and `members` can be imported again; `history` needs read_inventory."),
    ]
    limit: Annotated[int, Meta(ge=1, le=MAX_ROWS, description="Rows at most.")] = MAX_ROWS


class ImportCsv(Write, kw_only=True):
    kind: Annotated[
        Literal["pools", "members"],
        Meta(
            description="`pools`: columns name, and unit, quantity, buffer, low_stock_at, version, pool_id as you "
            "like. `members`: columns pool, units_per_sale, variant_gid or sku, and title, pool_id as you like."
        ),
    ]
    text: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1_000_000,
            description="CSV, also with semicolons or tabs, with a line of column names. At most 2,000 rows. "
            "An empty cell changes nothing.",
            examples=["name,unit,quantity\nHoney jars,units,50\n"],
        ),
    ]
    mode: Annotated[Literal["set", "adjust"], Meta(description="Replace quantities, or add to them.")] = "set"
    dry_run: Annotated[bool, Meta(description="Change nothing: the default.")] = True


class PoolRow(Struct):
    """A row of `pools`."""

    name: Name
    unit: Unit | None = None
    quantity: Delta | None = None
    buffer: Buffer | None = None
    low_stock_at: LowStockAt | None = None
    version: ExpectedVersion | None = None
    pool_id: PoolId | None = None


class MemberRow(Struct):
    """A row of `members`. It names its variant by `variant_gid`, or else by `sku`."""

    pool: Name
    units_per_sale: UnitsPerSale
    variant_gid: VariantGid | None = None
    sku: Label | None = None
    title: Label | None = None
    pool_id: PoolId | None = None


class CsvPage(Struct):
    """A page of a spreadsheet."""

    kind: str
    rows: int
    csv: str
    next_cursor: Annotated[str | None, Meta(description="For the next page; null on the last.")]


class CellChange(Struct):
    """A value that a row sets."""

    column: str
    before: Annotated[int | str | None, Meta(description="Null when there was none.")]
    after: int | str


class Row(Struct):
    """What became of one row."""

    line: Annotated[int, Meta(description="Its line in the text; the names of the columns are line 1.")]
    outcome: Literal["created", "updated", "unchanged"]
    message: str
    changes: Annotated[
        list[CellChange], Meta(description="What is set besides the name; quantities as they are then.")
    ] = []


class RowRefusal(NamedTuple):
    """The reason for which a row cannot be imported."""

    line: int
    message: str


class ImportReport(Struct):
    """What an import did, or in a dry run would do."""

    dry_run: bool
    applied: Annotated[bool, Meta(description="False in a dry run, and when every row was so already.")]
    created: int
    updated: int
    unchanged: int
    version: Annotated[int | None, Meta(description="Version of the shop with it; null when nothing was stored.")]
    rows: Annotated[list[Row], Meta(description="Up to 200 of them.")]
