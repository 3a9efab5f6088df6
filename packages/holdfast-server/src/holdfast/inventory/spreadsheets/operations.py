"""Imports the rows of a spreadsheet: all are saved as one change, or all are refused.

A pool is recognized by its id, or else by its name; unknown pools are created. A variant is named by its global id, or
by a SKU that one variant only has.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.inventory.cursor import cursor_page
from holdfast.inventory.pools import membership
from holdfast.inventory.pools import operations as pools
from holdfast.inventory.pools.model import ListPools, MemberFields, Pool, PoolsByName
from holdfast.inventory.problems import NOT_ENOUGH_STOCK
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.spreadsheets import sheet
from holdfast.inventory.spreadsheets.model import (
    CellChange,
    CsvPage,
    ExportCsv,
    ImportCsv,
    ImportReport,
    MemberRow,
    PoolRow,
    Row,
    RowRefusal,
    require_scope,
)
from holdfast.inventory.stock import operations as stock
from holdfast.inventory.stock.ledger_rules import Posting, Stock
from holdfast.inventory.stock.model import Entry, GetStockHistory, Write
from holdfast.inventory.stock.remembered_stock import TouchedRows
from holdfast.inventory.stock.shop_versions import STOCK_CHANNEL, increase_version, lock_shop, present_version
from holdfast.inventory.stock.stock_changes import Draft, apply_and_store
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import Message, message
from holdfast.kit.contract.problems import (
    DAILY_LIMIT_REACHED,
    INSUFFICIENT_SCOPE,
    VALIDATION_FAILED,
    Problem,
    invalid,
    refuses,
)
from holdfast.kit.operations.operation import Batch, Call

T = TypeVar("T")

MAX_REPORTED_ROWS = 200
"""The most rows that an answer or a refusal reports."""

POOL_COLUMNS = ("name", "unit", "quantity", "buffer", "low_stock_at", "version", "pool_id")
MEMBER_COLUMNS = ("pool", "variant_gid", "units_per_sale", "sku", "title", "pool_id")
HISTORY_COLUMNS = (*Entry.__struct_fields__, "pool", "skus", "titles")
"""The columns of each kind of file."""


class KnownPools(NamedTuple):
    """The pools of a shop that rows name. An id of another shop is unknown here, so that its files can be imported."""

    by_name: PoolsByName
    by_id: Mapping[int, Pool]

    def key(self, name: str) -> str:
        """The key of a name: names with the same key are the same."""
        return self.by_name.keys[name]

    def pool(self, name: str, pool_id: int | None) -> Pool | None:
        """The pool with an id, else the pool with a name, if there is one."""
        return self.by_id.get(pool_id or 0) or self.by_name.pool(name)

    def conflict(self, name: str, pool_id: int | None) -> Message | None:
        """The message about a row whose id and name belong to two pools."""
        pool, namesake = self.by_id.get(pool_id or 0), self.by_name.pool(name)
        if pool is None or namesake is None or pool.id == namesake.id:
            return None
        return sheet.column_message(
            "pool_id",
            message("pool %(id)s is %(name)s, and %(other)s is another pool", id=pool.id, name=pool.name, other=name),
        )


async def find_pools(reader: Reader, shop_id: int, rows: Sequence[tuple[str, int | None]]) -> KnownPools:
    """The pools that rows name, each row by a name and an id. Archived pools are not found."""
    by_name = await pools.find_by_name(reader, shop_id, [name for name, _ in rows])
    by_id = await pools.find_by_id(reader, shop_id, {id for _, id in rows if id})
    return KnownPools(by_name, {id: pool for id, pool in by_id.items() if pool.status != "archived"})


async def apply(
    tx: Tx, caller: Caller, command: ImportCsv, results: Sequence[Row], save: Callable[[int], Awaitable[None]]
) -> ImportReport:
    """Save all rows as one change, and report it. Raises `validation_failed` if there are no rows."""
    if not results:
        raise invalid({"text": [message("has no rows below the names of the columns")]})
    if all(row.outcome == "unchanged" for row in results):
        return ImportReport(command.dry_run, False, 0, 0, len(results), None, [*results[:MAX_REPORTED_ROWS]])
    await save(await increase_version(tx, caller.tenant))
    version = await present_version(tx, caller.tenant)
    await tx.notify(STOCK_CHANNEL, f"{caller.tenant} {version}")
    return ImportReport(
        dry_run=command.dry_run,
        applied=not command.dry_run,
        created=sum(row.outcome == "created" for row in results),
        updated=sum(row.outcome == "updated" for row in results),
        unchanged=sum(row.outcome == "unchanged" for row in results),
        version=None if command.dry_run else version,
        rows=[*results[:MAX_REPORTED_ROWS]],
    )


def cell_changes(new: Struct, present: Mapping[str, int | str | None]) -> list[CellChange]:
    """The values that a row sets: those of its filled cells that differ from the present ones."""
    return [
        CellChange(column, before, after)
        for column, before in present.items()
        if (after := getattr(new, column)) is not None and after != before
    ]


def nothing_imported(refusals: Sequence[RowRefusal]) -> Problem:
    """The problem of a spreadsheet, with its bad rows in order."""
    messages = [message("line %(line)s: %(message)s", **row._asdict()) for row in sorted(refusals)]
    left_out = len(messages) - MAX_REPORTED_ROWS
    more = [message("and %(count)s more rows", count=left_out)] if left_out > 0 else []
    return VALIDATION_FAILED(
        f"Nothing was imported: {len(refusals)} {'row is' if len(refusals) == 1 else 'rows are'} not acceptable.",
        hint="Correct the rows named in `errors` and import the text again.",
        errors={"text": [*messages[:MAX_REPORTED_ROWS], *more]},
    )


def repeated_message(column: str, name: str) -> Message:
    return sheet.column_message(column, message("%(name)s is in an earlier row too", name=name))


def find_repeated_rows(rows: Sequence[tuple[int, T]], keys: Sequence[object]) -> list[tuple[int, T]]:
    """The rows whose key is in an earlier row too."""
    first = {key: index for index, key in reversed([*enumerate(keys)])}
    return [row for index, row in enumerate(rows) if first[keys[index]] < index]


async def load_pools(tx: Tx, caller: Caller, command: ImportCsv) -> ImportReport:
    """Create and change pools by the rows of a file. If a row is wrong, nothing changes."""
    rows, refusals = sheet.read_rows(command.text, PoolRow)
    if any(row.quantity is not None for _, row in rows):
        require_scope(caller, "write_pools", "write_inventory")
    names = [row.name for _, row in rows]
    known_pools = await find_pools(tx, caller.tenant, [(row.name, row.pool_id) for _, row in rows])
    report = [_pool_result(line, row, known_pools, command) for line, row in rows]
    refusals += [result for result in report if isinstance(result, RowRefusal)]
    refusals += [RowRefusal(line, repeated_message("name", row.name)) for line, row in _repeated(rows, known_pools)]
    if refusals:
        raise nothing_imported(refusals)
    results = [result for result in report if isinstance(result, Row)]
    changed_rows = [row for (_, row), result in zip(rows, results, strict=True) if result.outcome != "unchanged"]

    async def save(version: int) -> None:
        fields = [
            {
                "id": pool.id if (pool := known_pools.pool(row.name, row.pool_id)) else None,
                "name": row.name if pool is None or _is_renamed(row, pool) else None,
                "unit": row.unit,
                "buffer": row.buffer,
                "low_stock_at": row.low_stock_at,
            }
            for row in changed_rows
        ]
        await pools.save(tx, caller.tenant, version, fields)
        saved = await pools.find_by_name(tx, caller.tenant, names)
        counts = {
            pool.id: row.quantity
            for row in changed_rows
            if row.quantity is not None and (pool := saved.pool(row.name)) and _counts(row, pool, command)
        }
        if counts:
            await _count(tx, caller, command, counts)

    return await apply(tx, caller, command, results, save)


def _repeated(rows: Sequence[tuple[int, PoolRow]], known_pools: KnownPools) -> list[tuple[int, PoolRow]]:
    """The rows whose pool or name is in an earlier row too."""
    names = [known_pools.key(row.name) for _, row in rows]
    ids = [pool.id if (pool := known_pools.pool(row.name, row.pool_id)) else f"line {line}" for line, row in rows]
    return [*dict([*find_repeated_rows(rows, names), *find_repeated_rows(rows, ids)]).items()]


def _is_renamed(row: PoolRow, pool: Pool) -> bool:
    """Whether a row gives its pool another name. Only a row that names its pool by its id can."""
    return row.pool_id == pool.id and row.name != pool.name


def _pool_result(line: int, row: PoolRow, known_pools: KnownPools, command: ImportCsv) -> Row | RowRefusal:
    """The result of a row, or its refusal."""
    if conflict := known_pools.conflict(row.name, row.pool_id):
        return RowRefusal(line, conflict)
    pool = known_pools.pool(row.name, row.pool_id)
    if pool and row.version not in {None, pool.version}:
        wrong = message(
            "%(pool)s has changed since; its version is %(version)s", pool=row.name, version=f"{pool.version}"
        )
        return RowRefusal(line, sheet.column_message("version", wrong))
    if row.quantity is not None and row.quantity < 0 and command.mode == "set" and _counts(row, pool, command):
        wrong = message("must be at least %(least)s, not %(value)s", least=0, value=row.quantity)
        return RowRefusal(line, sheet.column_message("quantity", wrong))
    changes = _changes(row, pool, command)
    if pool is None:
        return Row(line, "created", row.name, changes)
    is_renamed = _is_renamed(row, pool)
    name = f"{pool.name} → {row.name}" if is_renamed else row.name
    return Row(line, "updated" if changes or is_renamed else "unchanged", name, changes)


def _changes(row: PoolRow, pool: Pool | None, command: ImportCsv) -> list[CellChange]:
    """The values that a row sets. The quantity is the one that the pool has then."""
    on_hand = pool and pool.on_hand
    base_quantity = on_hand if on_hand and command.mode == "adjust" else 0
    result = row if row.quantity is None else replace(row, quantity=base_quantity + row.quantity)
    present = {column: getattr(pool, column, None) for column in ("unit", "buffer", "low_stock_at")}
    return cell_changes(result, {"unit": present.pop("unit"), "quantity": on_hand, **present})


def _counts(row: PoolRow, pool: Pool | None, command: ImportCsv) -> bool:
    """Whether a row changes a quantity."""
    present = pool.on_hand if pool and command.mode == "set" else 0
    return row.quantity not in {None, present}


async def _count(tx: Tx, caller: Caller, command: ImportCsv, counts: Mapping[int, int]) -> None:
    """Write the quantities of pools, all in one change."""

    def draft(present: Stock, _: Write) -> Draft:
        before = {id: 0 if command.mode == "adjust" else present.require_pool(id).on_hand for id in counts}
        return Draft([Posting(id, "import", quantity - before[id]) for id, quantity in counts.items()])

    batch = Batch(caller.tenant, [Call(caller, Write(reason=command.reason))])
    stock.only_answer(await apply_and_store(tx, batch, "import_csv", lambda _: TouchedRows(counts), draft))


async def load_members(tx: Tx, caller: Caller, command: ImportCsv) -> ImportReport:
    rows, refusals = sheet.read_rows(command.text, MemberRow)
    known_pools = await find_pools(tx, caller.tenant, [(row.pool, row.pool_id) for _, row in rows])
    skus = {row.sku for _, row in rows if row.sku and not row.variant_gid}
    gids_by_sku = await membership.find_by_sku(tx, caller.tenant, skus) if skus else {}
    links: list[tuple[int, MemberFields]] = []
    linked_rows: list[tuple[int, MemberRow]] = []
    for line, row in rows:
        link = _link(row, known_pools, gids_by_sku)
        if isinstance(link, Message):
            refusals.append(RowRefusal(line, link))
        else:
            links.append(link)
            linked_rows.append((line, row))
    keys = [(pool_id, member.variant_gid) for pool_id, member in links]
    refusals += [
        RowRefusal(line, repeated_message("variant_gid" if row.variant_gid else "sku", _variant_name(row)))
        for line, row in find_repeated_rows(linked_rows, keys)
    ]
    if refusals:
        raise nothing_imported(refusals)
    linked = await membership.find_links(tx, caller.tenant, {pool_id for pool_id, _ in links})
    links = [(pool_id, _new_fields(member, linked.get((pool_id, member.variant_gid)))) for pool_id, member in links]
    results = [
        _member_result(line, row, member, linked.get((pool_id, member.variant_gid)))
        for (line, row), (pool_id, member) in zip(linked_rows, links, strict=True)
    ]
    changed_links = [link for link, result in zip(links, results, strict=True) if result.outcome != "unchanged"]
    return await apply(
        tx, caller, command, results, lambda version: pools.link_many(tx, caller.tenant, version, changed_links)
    )


def _link(
    row: MemberRow, known_pools: KnownPools, gids_by_sku: Mapping[str, Sequence[str]]
) -> tuple[int, MemberFields] | Message:
    """The pool and the member of a row, or why the row is refused."""
    if conflict := known_pools.conflict(row.pool, row.pool_id):
        return conflict
    pool = known_pools.pool(row.pool, row.pool_id)
    if pool is None:
        return sheet.column_message("pool", message("no pool is named %(name)s", name=row.pool))
    member = MemberFields(row.variant_gid or "", row.units_per_sale, row.sku, row.title)
    if row.variant_gid:
        return pool.id, member
    if not row.sku:
        return sheet.column_message("variant_gid", message("name a variant by its variant_gid, or by its sku"))
    gids = gids_by_sku.get(row.sku, ())
    if not gids:
        return sheet.column_message("sku", message("no variant has the SKU %(sku)s", sku=row.sku))
    if len(gids) > 1:
        return sheet.column_message(
            "sku", message("several variants have the SKU %(sku)s: name one by its variant_gid", sku=row.sku)
        )
    # The SKU has found the variant, so the variant has it already.
    return pool.id, replace(member, variant_gid=gids[0], sku=None)


def _variant_name(row: MemberRow) -> str:
    return row.variant_gid or row.sku or ""


def _new_fields(member: MemberFields, present: MemberFields | None) -> MemberFields:
    """The new fields of a row: names that an export has from the platform are not stored."""
    if present is None:
        return member
    sku = None if member.sku == present.sku else member.sku
    title = None if member.title == present.title else member.title
    return MemberFields(member.variant_gid, member.units_per_sale, sku, title)


def _member_result(line: int, row: MemberRow, member: MemberFields, present: MemberFields | None) -> Row:
    name = f"{_variant_name(row)} in {row.pool}"
    columns = ("units_per_sale", "sku", "title")
    changes = cell_changes(member, {column: getattr(present, column, None) for column in columns})
    if present is None:
        return Row(line, "created", name, changes)
    return Row(line, "updated" if changes else "unchanged", name, changes)


@refuses(INSUFFICIENT_SCOPE, VALIDATION_FAILED)
async def export(reader: Reader, caller: Caller, command: ExportCsv) -> CsvPage:
    """Read pools, their variants or the history as CSV."""
    if command.kind == "history":
        require_scope(caller, "read_pools", "read_inventory")
        page = await stock.history(reader, caller, GetStockHistory(limit=command.limit, cursor=command.cursor))
        return _csv_page(command, HISTORY_COLUMNS, await _history_rows(reader, caller, page.entries), page.next_cursor)
    if command.kind == "members":
        after = command.after(tuple[int, str]) or (0, "")
        member_rows = await membership.list_members(reader, caller.tenant, after, command.limit + 1)
        members, cursor = cursor_page(member_rows, command, lambda row: (row.pool_id, row.variant_gid))
        return _csv_page(command, MEMBER_COLUMNS, [(*row[1:], row.pool_id) for row in members], cursor)
    pool_page = await pools.list(reader, caller, ListPools(limit=command.limit, cursor=command.cursor))
    rows = [
        (pool.name, pool.unit, pool.on_hand, pool.buffer, pool.low_stock_at, pool.version, pool.id)
        for pool in pool_page.pools
    ]
    return _csv_page(command, POOL_COLUMNS, rows, pool_page.next_cursor)


@refuses(INSUFFICIENT_SCOPE, VALIDATION_FAILED, NOT_ENOUGH_STOCK, DAILY_LIMIT_REACHED)
async def load(tx: Tx, caller: Caller, command: ImportCsv) -> ImportReport:
    """Import pools or variants from CSV: all rows, or none. A dry run unless you say `dry_run: false`.

    `errors` names every bad row. Pools are recognized by their ids, else their names;
    unknown ones are created. Quantities need write_inventory too.
    """
    await lock_shop(tx, caller.tenant)
    return await (load_pools if command.kind == "pools" else load_members)(tx, caller, command)


def _csv_page(
    command: ExportCsv, columns: Sequence[str], rows: Sequence[Sequence[Any]], next_cursor: str | None
) -> CsvPage:
    return CsvPage(command.kind, len(rows), sheet.to_csv(columns, rows), next_cursor)


async def _history_rows(reader: Reader, caller: Caller, entries: Sequence[Entry]) -> Sequence[Sequence[Any]]:
    """The rows of entries: their fields, the name of the pool, and the SKUs and titles of the variants."""
    named_pools = await pools.find_by_id(reader, caller.tenant, {entry.pool_id for entry in entries})
    gids = {gid for entry in entries for gid in entry.by_variant or ()}
    labels = await membership.find_labels(reader, caller.tenant, gids) if gids else {}

    def row(entry: Entry) -> Sequence[Any]:
        named = [labels[gid] for gid in entry.by_variant or () if gid in labels]
        skus = ", ".join(sku for sku, _ in named if sku)
        titles = ", ".join(title for _, title in named if title)
        return [*_cells(entry), pool.name if (pool := named_pools.get(entry.pool_id)) else "", skus, titles]

    return [row(entry) for entry in entries]


def _cells(entry: Entry) -> list[Any]:
    values = msgspec.to_builtins(entry).values()
    return [msgspec.json.encode(value).decode() if isinstance(value, dict) else value for value in values]
